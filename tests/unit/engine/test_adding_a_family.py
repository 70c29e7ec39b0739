"""The steps of "A family in a day" (ARCHITECTURE.md), done for a family that is no network at all.

It fills a gap with the word that stands right behind it, so it has an answer to be right about, and one that cannot be
known without the right-hand side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.canvas_serving.core import CanvasCore
from engine.canvas_serving.prompt_style import PromptStyle
from engine.canvas_serving.prompts import styled
from engine.config import EngineConfig
from engine.diffusion.sampling import SamplingConfig
from engine.job import Run
from engine.models.canvas_model import CanvasFacts, Known, Prediction, StepInput
from engine.protocol.messages import Done, Fill
from engine.startup import load_core
from engine.tokenizer import ByteTokenizer
from tests.fakes.checkpoints import writers
from tests.fakes.family_checks import check_family

END, MASK, EXPAND, DELETE, VOCAB = 256, 257, 258, 259, 260


@dataclass
class EchoContext:
    """What is known around the canvas."""

    known: Known
    cached: int = 0


class EchoModel:
    """Says in a gap what stands behind it, up to a blank. It tells the gap's length itself, as DreamOn does."""

    def __init__(self) -> None:
        self.tokenizer = ByteTokenizer()
        forbidden = torch.zeros(VOCAB, dtype=torch.bool)
        forbidden[MASK:] = True
        self.facts = CanvasFacts(
            name="echo",
            family="echo",
            device="cpu",
            precision="fp32",
            vocab_size=VOCAB,
            window_tokens=512,
            noise="mask",
            mask_id=MASK,
            end_ids=frozenset({END}),
            forbidden=forbidden,
            expand_id=EXPAND,
            delete_id=DELETE,
        )

    def open(self, known: Known) -> EchoContext:
        return EchoContext(known)

    def step(self, context: Any, inputs: Sequence[StepInput], *, refresh: bool = False) -> list[Prediction]:
        word = self.tokenizer.encode(bytes(context.known.suffix).decode().split(" ")[0])
        return [self._saying(word, each.canvas.length) for each in inputs]

    def read_on(self, context: Any) -> bool:
        return False

    def commit(self, context: Any, ids: Sequence[int]) -> None:
        context.known = Known((*context.known.prefix, *ids), context.known.suffix)

    def close(self, context: Any) -> None:
        """Nothing is kept."""

    @staticmethod
    def _saying(word: Sequence[int], places: int) -> Prediction:
        """The word; what it leaves over of the gap is to go, and where it does not fit the gap is to grow."""
        ids = [*word, *[DELETE] * places][:places]
        if len(word) > places:
            ids[-1] = EXPAND
        return Prediction(8.0 * torch.nn.functional.one_hot(torch.tensor(ids), VOCAB).float())


def done(run: Run) -> Done:
    while True:
        try:
            next(run)
        except StopIteration as end:
            result: Done = end.value
            return result


def test_it_keeps_what_every_family_must() -> None:
    check_family(EchoModel(), SamplingConfig())


@pytest.mark.parametrize(("suffix", "text"), [("same again", "same"), ("other again", "other"), ("", "")])
def test_it_is_served_and_its_answer_comes_from_the_right_hand_side(suffix: str, text: str) -> None:
    model = EchoModel()
    core = CanvasCore(model, lay_out=styled(PromptStyle("raw"), model.tokenizer, model.facts))
    assert done(core.start(Fill("1", "python", "say ", suffix, max_tokens=16))).text == text


@pytest.mark.parametrize("layout", sorted(writers()))
def test_every_published_layout_keeps_it_too(layout: str, tmp_path: Path) -> None:
    folder = writers()[layout](tmp_path / layout, 0)
    core = load_core(EngineConfig(model=str(folder), device="cpu", threads=1), lambda stage, done: None)
    assert isinstance(core, CanvasCore)
    check_family(core.model, core.sampling)
