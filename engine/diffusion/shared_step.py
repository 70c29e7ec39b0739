"""A denoising step that may be taken together with those of other jobs: `SharedStep`.

The loop of a job offers its step and pauses; whoever drives the loops takes what is offered in one pass. Owns no model
of its own and no order: a step that nobody has taken by the time its job goes on is taken alone.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.models.canvas_model import CanvasModel, JobStep, Prediction


class SharedStep:
    """What a job asks of its model, until it is answered."""

    def __init__(self, model: CanvasModel, wanted: JobStep) -> None:
        self._model = model
        self.wanted = wanted
        self._predictions: list[Prediction] | None = None

    @property
    def canvases(self) -> int:
        """How many canvases it has: lengths of one gap that are tried side by side."""
        return len(self.wanted.inputs)

    @property
    def is_answered(self) -> bool:
        """Whether somebody took it."""
        return self._predictions is not None

    def answer(self, predictions: list[Prediction]) -> None:
        """Hand over what the model said of its canvases."""
        self._predictions = predictions

    def take(self) -> list[Prediction]:
        """What the model says of its canvases, computed now if nobody did. Raises as `CanvasModel.step` does."""
        if self._predictions is None:
            wanted = self.wanted
            self._predictions = self._model.step(wanted.context, wanted.inputs, refresh=wanted.refresh)
        return self._predictions


Offer = Callable[[CanvasModel, JobStep], SharedStep]
