"""The seam to a core that lets somebody look on: `WatchableCore`. Loads no torch, so that commands can ask for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from engine.job import Core

if TYPE_CHECKING:
    from engine.models.base import Tokenizer


@runtime_checkable
class WatchableCore(Core, Protocol):
    """A core whose steps can be looked at from the same process."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's: steps are told in ids."""
        ...

    def watch(self, watch: Callable[[Any], None] | None) -> None:
        """Tell `watch` what the loop tells of each step of the jobs that run from now on; None to stop.

        A `diffusion.denoise.Pass` or a `diffusion.canvas_step.CanvasStep`, whichever loop it is.
        """
        ...
