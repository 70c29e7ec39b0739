"""Recording what an engine did: what a watcher notes, how the record travels, and the page as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core import EngineCore
from engine.diffusion.competition import Candidate
from engine.diffusion.denoise import Pass
from engine.diffusion.drafts import Leftover
from engine.models.tiny import tiny_denoiser
from engine.protocol.messages import Done, Fill
from engine.quality import Gates
from engine.tokenizer import ByteTokenizer
from engine.trace.page import render, script_safe
from engine.trace.recording import GapTrace, Recording, Step, Token, from_data, to_data
from engine.trace.watching import Watcher, offered_and_kept
from engine.watchable import WatchableCore
from tests.fakes.clock import Clock
from tests.fakes.traces import HOSTILE, recording

FILL = Fill("1", "python", "def f(x):\n    return ", "\n\nprint(f(2))\n", max_tokens=40)


def answered(core: EngineCore, watcher: Watcher | None) -> Done:
    core.watch(watcher)
    run = core.start(FILL)
    while True:
        try:
            next(run)
        except StopIteration as finished:
            done: Done = finished.value
            return done


def core() -> EngineCore:
    return EngineCore(tiny_denoiser(seed=3), clock=Clock(), threads=1, gates=Gates.open())


def test_watching_changes_nothing_and_sees_every_pass_and_token() -> None:
    watched = core()
    watcher = Watcher(watched.tokenizer)
    done = answered(watched, watcher)
    assert isinstance(watched, WatchableCore)
    assert done.text == answered(core(), None).text
    assert len(watcher.steps) == done.stats.passes
    new = [token for step in watcher.steps for token in step.tokens if token.state == "new"]
    assert len(new) == done.stats.tokens
    assert "".join(token.text for token in new).startswith(done.text)
    assert done.stats.passes < done.stats.tokens, "no draft was kept, so nothing about drafts was tried"
    for token in new:
        assert token.chance is not None
        assert all(chance <= token.chance for _, chance in token.others), "greedy text takes the likeliest token"


def test_a_core_nobody_watches_any_more_tells_nothing() -> None:
    watched = core()
    watcher = Watcher(watched.tokenizer)
    answered(watched, watcher)
    seen = len(watcher.steps)
    answered(watched, None)
    assert len(watcher.steps) == seen


def told(draft: str, accepted: int, bonus: int, settled: tuple[int, ...] = ()) -> Pass:
    guesses = tuple(Candidate(token, "masks", 0.5) for token in draft.encode())
    logits = torch.zeros(len(guesses) + 1, ByteTokenizer.vocab_size)
    logits[:, bonus] = 2.0
    return Pass(settled, guesses, accepted, bonus, Leftover((ord("m"),), (0.25,)), logits)


def test_what_was_refused_stands_in_front_of_what_took_its_place() -> None:
    watcher = Watcher(ByteTokenizer())
    watcher(told("abc", 1, ord("X")))
    row = watcher.steps[0].tokens
    assert [(token.text, token.state) for token in row] == [
        *(("a", "new"), ("b", "refused"), ("c", "refused"), ("X", "new"), ("m", "open")),
    ]
    assert row[2].chance is None, "behind a wrong token nothing was judged"
    assert row[4].chance == 0.25
    assert (row[0].source, row[3].source) == ("masks", "the model")
    watcher(told("", 0, ord("Y"), (ord("a"), ord("X"))))
    assert [(token.text, token.state) for token in watcher.steps[1].tokens[:3]] == [
        *(("a", "settled"), ("X", "settled"), ("Y", "new"))
    ]


def test_the_token_that_completes_a_character_shows_it() -> None:
    watcher = Watcher(ByteTokenizer())
    first, second = "é".encode()
    watcher(told("", 0, first))
    watcher(told("", 0, second))
    assert [token.text for token in watcher.steps[1].tokens[:2]] == ["", "é"]


def test_entropy_is_in_nats_and_a_certain_place_has_none() -> None:
    watcher = Watcher(ByteTokenizer())
    even = told("", 0, 0)
    watcher(Pass((), (), 0, 0, Leftover(), torch.zeros(1, 8)))
    watcher(Pass((), (), 0, 0, Leftover(), torch.tensor([[0.0, -torch.inf, -torch.inf]])))
    assert even.logits.shape == (1, 262)
    assert watcher.steps[0].entropy == pytest.approx(2.0794, abs=1e-3)
    assert watcher.steps[1].entropy == 0.0
    assert watcher.steps[1].tokens[-1].chance == 1.0


def test_an_end_is_told_as_an_end() -> None:
    watcher = Watcher(ByteTokenizer())
    watcher(told("a", 1, 260))
    assert [token.kind for token in watcher.steps[0].tokens[:2]] == ["text", "end"]
    text, chance = watcher.steps[0].tokens[0].others[0]
    assert text == "end of text"
    assert chance == pytest.approx(0.0275, abs=0.01)


def test_sources_are_told_in_words() -> None:
    assert offered_and_kept((("masks", 6, 2), ("ngram", 3, 0))) == (
        ("drafts: masks", "2 of 6 kept"),
        ("drafts: a repeat in the text", "0 of 3 kept"),
    )


chances = st.none() | st.floats(0, 1).map(lambda share: round(share, 4))
tokens = st.builds(
    Token,
    text=st.text(max_size=3),
    state=st.sampled_from(["locked", "settled", "new", "open", "changing", "refused"]),
    chance=chances,
    entropy=chances,
    source=st.sampled_from(["", "masks"]),
    others=st.lists(st.tuples(st.text(max_size=2), st.just(0.25)), max_size=2).map(tuple),
    kind=st.sampled_from(["text", "noise", "end"]),
)
steps = st.builds(Step, st.lists(tokens, max_size=5).map(tuple), chances)
gaps = st.builds(
    GapTrace,
    line=st.integers(1, 9),
    before=st.text(max_size=3),
    after=st.text(max_size=3),
    steps=st.lists(steps, max_size=4).map(tuple),
    result=st.none() | st.text(max_size=3),
)
recordings = st.builds(
    Recording, st.text(max_size=5), st.just((("model", "m"),)), st.lists(gaps, max_size=2).map(tuple)
)


@settings(max_examples=100)
@given(recordings)
def test_a_recording_survives_json(made: Recording) -> None:
    assert from_data(json.loads(json.dumps(to_data(made)))) == made


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version 99"):
        from_data({**to_data(recording()), "version": 99})


def test_a_long_run_stays_small() -> None:
    """What is settled is not told again: 500 steps of one token each are far from 500 times 500 tokens."""
    settled = tuple(Token(f"t{number}", "settled", 0.9) for number in range(500))
    long = tuple(Step((*settled[:number], Token("x", "new", 0.5))) for number in range(500))
    made = Recording("f", (), (GapTrace(1, "", "", long, ""),))
    assert len(render(made)) < 150_000
    assert from_data(to_data(made)) == made


class Seen(HTMLParser):
    """The elements of a page, their attributes, and the text inside each script and style."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.titles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        last = self.lasttag
        if last in self.inside and data.strip():
            self.inside[last].append(data)
        elif last == "title" and data.strip():
            self.titles.append(data)


def seen(page: str) -> Seen:
    parser = Seen()
    parser.feed(page)
    parser.close()
    return parser


def test_a_person_s_text_is_text_in_the_page() -> None:
    found = seen(render(recording()))
    assert [tag for tag, _ in found.elements if tag in ("script", "b", "title")] == ["title", "script", "script"]
    assert found.titles[0].startswith(f"a{HOSTILE}.py")
    data, _ = found.inside["script"]
    assert from_data(json.loads(data)) == recording()


def test_the_page_asks_nobody_and_runs_only_its_own_script() -> None:
    page = render(recording())
    found = seen(page)
    assert not [(tag, name) for tag, names in found.elements for name in names if name in ("src", "href", "action")]
    assert "url(" not in found.inside["style"][0]
    assert "@import" not in found.inside["style"][0]
    policy = next(names["content"] for tag, names in found.elements if names.get("http-equiv"))
    assert policy is not None
    digests = re.findall(r"'sha256-([^']+)'", policy)
    inside = [found.inside["style"][0], found.inside["script"][1]]
    assert digests == [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inside]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


@given(st.text() | st.characters(categories=["Cs"]))
def test_json_in_a_script_is_still_the_same_json(text: str) -> None:
    safe = script_safe(json.dumps([text], ensure_ascii=False))
    assert json.loads(safe) == [text]
    assert not set("<>&\u2028\u2029") & set(safe)
    assert safe.encode()
