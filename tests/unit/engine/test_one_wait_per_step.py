"""What a step computes of the logits stays where they live: the host waits once for it, whatever the sampler.

The device is pretended: every tensor that comes of a model's logits counts as being on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engine.diffusion import reading
from engine.diffusion.sampling import SamplingConfig
from engine.models.canvas_model import CanvasContext, CanvasJob, Known, Part, Prediction, StepInput
from tests.fakes.scripted_canvas import (
    DELETE,
    EXPAND,
    ScriptedCanvasModel,
    denoised,
    random_script,
    scripted_facts,
    uniform_facts,
)

_ATEN = torch.ops.aten
_WAITS = {_ATEN._local_scalar_dense, _ATEN.nonzero, _ATEN.equal, _ATEN.is_nonzero, _ATEN.masked_select}


class PretendedDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """arrivals: copies to the host. waits: other operations for which the host would wait, by name."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._there: dict[int, torch.Tensor] = {}
        self.arrivals = 0
        self.waits: list[str] = []

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        self._there[id(tensor)] = tensor
        return tensor

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not any(id(leaf) in self._there for leaf in tree_leaves((args, kwargs))):
            return result
        if func.overloadpacket is _ATEN._to_copy and kwargs.get("device") is not None:
            self.arrivals += 1
            return result
        if func.overloadpacket in _WAITS:
            self.waits.append(str(func))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.put(leaf)
        return result


class OnDevice(ScriptedCanvasModel):
    device: PretendedDevice

    def step(self, context: CanvasContext, inputs: Sequence[StepInput], *, refresh: bool = False) -> list[Prediction]:
        found = super().step(context, inputs, refresh=refresh)
        for prediction in found:
            self.device.put(prediction.logits)
        return found


UNIFORM = SamplingConfig(
    sampler="entropy_bound",
    steps=6,
    temperature_start=0.8,
    temperature_end=0.4,
    deterministic=False,
    stable_steps=1,
    stop_entropy=0.5,
)
CASES = {
    "uniform": (uniform_facts(canvas_length=12), UNIFORM),
    "confidence": (scripted_facts(), SamplingConfig(confidence_threshold=0.3)),
    "drawn": (scripted_facts(), SamplingConfig(temperature_start=0.7, deterministic=False, top_p=0.9)),
    "remask": (
        scripted_facts(),
        SamplingConfig(sampler="remask", remask="cap", remask_strength=0.3, schedule="linear"),
    ),
    "blocks": (scripted_facts(block=4, right_context=False), SamplingConfig()),
    "resizing": (scripted_facts(expand_id=EXPAND, delete_id=DELETE), SamplingConfig(steps=20)),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_the_host_waits_once_in_a_step(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    facts, config = CASES[case]
    monkeypatch.setattr(reading, "is_on_host", lambda tensor: False)
    model = OnDevice(random_script(3, 4.0), facts)
    model.device = PretendedDevice()
    job = CanvasJob(Known((1, 2), (3,) if facts.right_context else ()), (Part(is_hole=True, length=12),))
    with model.device:
        steps, _ = denoised(model, job, config)
    assert len(steps) > 1
    assert (model.device.waits, model.device.arrivals) == ([], len(steps))
