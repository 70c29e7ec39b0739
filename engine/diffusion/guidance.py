"""Classifier-free guidance (Ho and Salimans 2022, arXiv 2207.12598), for families that can predict without the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from engine.models.canvas_model import CanvasContext, Prediction, StepInput


@runtime_checkable
class Unconditional(Protocol):
    """What a `CanvasModel` offers besides when it supports guidance."""

    def step_unconditional(self, context: CanvasContext, inputs: Sequence[StepInput]) -> list[Prediction]:
        """As `CanvasModel.step`, with the known text of the context hidden from the model."""
        ...


def guided(conditional: Prediction, unconditional: Prediction, scale: float) -> Prediction:
    """u + (scale + 1) * (c - u) of the logits, LLaDA's convention: scale 0 is the conditional prediction itself."""
    base = unconditional.logits
    return replace(conditional, logits=base + (scale + 1) * (conditional.logits - base))
