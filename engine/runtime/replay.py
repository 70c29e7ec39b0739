"""Passes of one shape, recorded once and replayed: what a step costs on a GPU is then its kernels, not their launches.

`Replayer` decides when to record and feeds the recording; `CudaGraphs` records with CUDA graphs (Nguyen et al. 2021,
"Accelerating PyTorch with CUDA Graphs"). A recording has addresses baked in, not values: its key must name everything
that is not handed in as an input.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

import torch

MOST = 3
"""Recordings kept: each holds on to the memory of a pass."""
_SEEN = 64

Compute = Callable[..., torch.Tensor]

log = logging.getLogger(__name__)


class Recorder(Protocol):
    """What can record a computation."""

    def record(self, compute: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
        """The tensor that `compute` fills, and what fills it again from whatever its inputs hold by then.

        Raises RuntimeError where the computation cannot be recorded, as when it waits for the device.
        """
        ...


class CudaGraphs:
    """Records with CUDA graphs."""

    def record(self, compute: Callable[[], torch.Tensor]) -> tuple[torch.Tensor, Callable[[], None]]:
        """See `Recorder`. The computation runs once before it is recorded: nothing may be set up while recording."""
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            compute()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = compute()
        return output, graph.replay


@dataclass(frozen=True, slots=True)
class _Recording:
    inputs: tuple[torch.Tensor, ...]
    output: torch.Tensor
    replay: Callable[[], None]


class Replayer:
    """Runs passes. The second one of a key is recorded, those behind it are replayed. Not thread-safe.

    recorder: None to compute always.
    """

    def __init__(self, recorder: Recorder | None) -> None:
        self._recorder = recorder
        self._recordings: dict[Hashable, _Recording] = {}  # the least recently used first
        self._seen: dict[Hashable, None] = {}

    @classmethod
    def of_device(cls, device: torch.device) -> Replayer:
        """One that records where the device can."""
        return cls(CudaGraphs() if device.type == "cuda" else None)

    @property
    def recordings(self) -> int:
        """How many are kept."""
        return len(self._recordings)

    def run(self, key: Hashable, compute: Compute, *inputs: torch.Tensor | None) -> torch.Tensor:
        """`compute(*inputs)`; valid until the next run.

        key: all that `compute` reads beside its inputs: lengths, and the addresses of what it reads and writes. Run
        twice it must do the same as once.
        """
        if self._recorder is None:
            return compute(*inputs)
        whole = (key, *(None if given is None else (tuple(given.shape), given.dtype) for given in inputs))
        recording = self._recordings.pop(whole, None)
        if recording is None:
            if whole not in self._seen:
                self._note(whole)
                return compute(*inputs)
            recording = self._record(compute, inputs)
            if recording is None:
                return compute(*inputs)
        self._recordings[whole] = recording
        while len(self._recordings) > MOST:
            del self._recordings[next(iter(self._recordings))]
        given = (each for each in inputs if each is not None)
        for held, fresh in zip(recording.inputs, given, strict=True):
            held.copy_(fresh)
        recording.replay()
        return recording.output

    def _note(self, whole: Hashable) -> None:
        self._seen[whole] = None
        while len(self._seen) > _SEEN:
            del self._seen[next(iter(self._seen))]

    def _record(self, compute: Compute, inputs: tuple[torch.Tensor | None, ...]) -> _Recording | None:
        """None where it cannot be: then nothing is recorded any more, and all is computed as on a CPU."""
        if self._recorder is None:
            return None
        held = tuple(None if given is None else given.clone() for given in inputs)
        try:
            output, replay = self._recorder.record(lambda: compute(*held))
        except RuntimeError as fault:
            log.warning("passes of this model cannot be recorded, each is launched anew: %s", fault)
            self._recorder = None
            self._recordings.clear()
            return None
        return _Recording(tuple(each for each in held if each is not None), output, replay)
