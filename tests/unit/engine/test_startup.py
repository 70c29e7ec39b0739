"""Before a model is loaded: whether the device that was asked for is there."""

from __future__ import annotations

import pytest
import torch

from engine.config import EngineConfig
from engine.protocol.errors import EngineError
from engine.startup import load_core, require_device


@pytest.mark.parametrize(("device", "gpus"), [("auto", 0), ("cpu", 0), ("cuda", 1), ("cuda:0", 1), ("cuda:1", 2)])
def test_a_device_that_is_there_passes(device: str, gpus: int) -> None:
    require_device(device, gpus)


@pytest.mark.parametrize(
    ("device", "gpus", "says", "remedy"),
    [
        ("cuda", 0, "torch finds no CUDA GPU", "device to cpu"),
        ("cuda:0", 0, "torch finds no CUDA GPU", "device to cpu"),
        ("cuda:1", 1, "there is only 1 GPU here", "use cuda:0"),
        ("cuda:2", 2, "there are only 2 GPUs here", "cuda:0 to cuda:1"),
    ],
)
def test_a_device_that_is_missing_is_named_with_a_way_out(device: str, gpus: int, says: str, remedy: str) -> None:
    with pytest.raises(EngineError, match=says) as caught:
        require_device(device, gpus)
    assert caught.value.kind == "model_unsupported"
    assert remedy in caught.value.remedy


def test_loading_asks_for_the_device_first() -> None:
    """No machine has a thousand GPUs, so this holds with and without CUDA, and before any model is looked for."""
    assert torch.cuda.device_count() < 999
    with pytest.raises(EngineError, match="cuda:999 was asked for"):
        load_core(EngineConfig(model="no-such-model", device="cuda:999"), lambda stage, done: None)
