"""Before a model is loaded: whether the device that was asked for is there."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.config import DEFAULT_MODEL, EngineConfig
from engine.models.adapter import require_digest
from engine.models.digest import sha256_of_file
from engine.models.loading import adapter_path, packaged_weights
from engine.protocol.errors import EngineError
from engine.startup import load_core, require_device
from engine.store.registry import Registry


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


def test_the_registry_names_the_adapter_that_ships() -> None:
    adapter = Registry.built_in().find(DEFAULT_MODEL).adapter
    assert adapter is not None
    path = packaged_weights() / adapter.name
    assert path == adapter_path()
    assert (path.stat().st_size, sha256_of_file(path)) == (adapter.size, adapter.sha256)
    assert path.stat().st_size < 40_000_000
    require_digest(path, sha256_of_file(path))


def test_an_adapter_the_registry_does_not_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "patch.safetensors"
    with pytest.raises(EngineError, match="does not exist") as missing:
        require_digest(path, "0" * 64)
    path.write_bytes(b"weights")
    path.with_name("patch.safetensors.sha256").write_text("1" * 64)
    with pytest.raises(EngineError, match="not the one the registry names") as other:
        require_digest(path, "0" * 64)
    assert (missing.value.kind, other.value.kind) == ("model_missing", "model_corrupt")


def test_loading_asks_for_the_device_first() -> None:
    """No machine has a thousand GPUs, so this holds with and without CUDA, and before any model is looked for."""
    assert torch.cuda.device_count() < 999
    with pytest.raises(EngineError, match="cuda:999 was asked for"):
        load_core(EngineConfig(model="no-such-model", device="cuda:999"), lambda stage, done: None)
