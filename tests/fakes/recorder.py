"""A recorder of passes without a GPU: it computes again from the buffers it was given, as a CUDA graph would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass
class Recomputing:
    """recorded, replayed: how often. fails: refuse, as a pass that waits for the device is refused."""

    fails: bool = False
    recorded: int = 0
    replayed: int = 0

    def record(self, compute: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
        if self.fails:
            raise RuntimeError("operation not permitted when stream is capturing")
        self.recorded += 1
        # As after a capture, nothing stands in the output yet.
        output = torch.full_like(compute(), torch.nan)

        def replay() -> None:
            self.replayed += 1
            output.copy_(compute())

        return output, replay
