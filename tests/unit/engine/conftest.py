"""What engine tests share: one torch thread (tiny tensors gain nothing from two), tiny models, trained ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from tests.fakes.tiny_model import write_tiny_adapter, write_tiny_gguf

if TYPE_CHECKING:
    from engine.models.masked.model import MaskedModel


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A two-layer GGUF with random weights."""
    path = tmp_path / "tiny.gguf"
    write_tiny_gguf(path)
    return path


@pytest.fixture
def adapter(tmp_path: Path, tiny: Path) -> Path:
    """A random adapter that belongs to `tiny`."""
    path = tmp_path / "patch.safetensors"
    write_tiny_adapter(path, write_tiny_gguf(tiny))
    return path


@pytest.fixture(scope="session")
def shifted_answerer() -> MaskedModel:
    """A masked model trained to a known answer, whose logits are shifted by one place; trained once for all tests."""
    from tests.fakes.known_answer import train

    return train(shift=True)


@pytest.fixture(scope="session")
def unshifted_answerer() -> MaskedModel:
    """The same without the shift."""
    from tests.fakes.known_answer import train

    return train(shift=False)
