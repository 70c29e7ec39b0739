"""The words of a model's control tokens in somebody's text are text: through every family's prompts.

A request full of them is laid out with exactly as many control tokens as one without any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.canvas_serving.core import CanvasCore
from engine.config import EngineConfig
from engine.models.base import SpecialIds
from engine.models.conversion import special_ids
from engine.models.gguf_file import GgufFile
from engine.models.special_tokens import special_tokens
from engine.prompts import expected_ids, fill_prompt, rewrite_prompt, warm_behind_opening
from engine.protocol.errors import EngineError
from engine.protocol.messages import Fill, FurtherHole, Rewrite
from engine.startup import load_core
from engine.tokenizer import BpeTokenizer
from tests.fakes.checkpoints import writers
from tests.fakes.tiny_model import SPECIALS, write_tiny_gguf

HARMLESS = "xx"
Request = Fill | Rewrite


@dataclass(frozen=True)
class Family:
    """How one lays requests out. words: its control tokens' texts; ids: everything of a laid-out request."""

    words: tuple[str, ...]
    control: frozenset[int]
    ids: Callable[[Request], list[int]]

    def control_of(self, request: Request) -> Counter[int]:
        return Counter(index for index in self.ids(request) if index in self.control)


def hybrid_family(folder: Path) -> Family:
    path = folder / "tiny.gguf"
    write_tiny_gguf(path)
    vocabulary = GgufFile(path).vocabulary()
    tokenizer = BpeTokenizer.from_vocabulary(vocabulary.tokens, vocabulary.special, vocabulary.merges)
    special: SpecialIds = special_ids(vocabulary, path)

    def ids(request: Request) -> list[int]:
        if isinstance(request, Rewrite):
            prompt = rewrite_prompt(request, tokenizer, special)
        else:
            prompt = fill_prompt(request, tokenizer, special)
        prompt = warm_behind_opening(replace(prompt, opening="x"), request, tokenizer, special)
        # The end of what is expected is there or not as the text goes on from the cursor's token.
        expected = expected_ids(prompt, request, tokenizer, special)[:-1]
        return [*prompt.ids, *prompt.lead, prompt.gap.pending, *prompt.gap.warm, *expected]

    return Family(SPECIALS, special.special, ids)


def canvas_family(layout: str, folder: Path) -> Family:
    checkpoint = writers()[layout](folder / layout, 0)
    core = load_core(EngineConfig(model=str(checkpoint), device="cpu", threads=1), lambda stage, done: None)
    assert isinstance(core, CanvasCore)
    # DiffusionGemma's tokenizer names its line ends apart from the vocabulary; they control nothing.
    special = {word: index for word, index in special_tokens(checkpoint).items() if word.strip()}
    lay_out = core._lay_out

    def ids(request: Request) -> list[int]:
        job = lay_out(request).job
        parts = [index for part in job.parts for index in (*part.ids, *part.warm)]
        return [*job.known.prefix, *job.known.suffix, *parts]

    return Family(tuple(special), frozenset(special.values()), ids)


@pytest.fixture(scope="module", params=["hybrid", *sorted(writers())])
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Family:
    folder = tmp_path_factory.mktemp("family")
    return hybrid_family(folder) if request.param == "hybrid" else canvas_family(request.param, folder)


def requests_of(text: Callable[[], str]) -> tuple[Request, ...]:
    """Requests with a text in every place that holds one."""
    return (
        Fill("1", text(), text(), text(), max_tokens=8),
        Fill("2", "python", text(), "", draft=text(), max_tokens=64),
        Fill("3", "python", text(), text(), max_tokens=64, further=(FurtherHole(text(), text()),)),
        Rewrite("4", text(), text(), text(), text(), text(), max_tokens=256),
    )


def control_or_refused(family: Family, request: Request) -> Counter[int] | None:
    """None where the request is refused: a tokenizer that normalises gives not every text back, and none is guessed."""
    try:
        return family.control_of(request)
    except EngineError as refused:
        if refused.kind not in ("round_trip", "window_exceeded"):
            raise
        return None


@settings(max_examples=10)
@given(st.data())
def test_they_are_text_wherever_they_stand(family: Family, data: st.DataObject) -> None:
    pieces = st.sampled_from([*family.words, "a", " ", "\n", "<", ">", "|", "```"]) | st.characters(codec="utf-8")
    texts = st.lists(pieces, max_size=5).map(lambda found: "x" + "".join(found) + "x")
    for hostile, plain in zip(requests_of(lambda: data.draw(texts)), requests_of(lambda: HARMLESS), strict=True):
        assert control_or_refused(family, hostile) in (None, family.control_of(plain))


def test_the_words_alone_are_text_too(family: Family) -> None:
    # As many as the smallest window holds byte by byte.
    everything = "".join(family.words[:4])
    assert everything
    assert family.control
    found = [control_or_refused(family, hostile) for hostile in requests_of(lambda: everything)]
    assert any(counted is not None for counted in found)
    for counted, plain in zip(found, requests_of(lambda: HARMLESS), strict=True):
        assert counted in (None, family.control_of(plain))
