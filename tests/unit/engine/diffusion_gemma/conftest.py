"""The tiny checkpoint, loaded through the real path, and transformers' own model of the same files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from engine.models.diffusion_gemma.loading import LoadedGemma, load_diffusion_gemma
from tests.fakes.tiny_gemma import write_diffusion_gemma

if TYPE_CHECKING:
    from transformers import DiffusionGemmaForBlockDiffusion


@pytest.fixture(scope="session")
def gemma_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint; tests that change it copy it first."""
    return write_diffusion_gemma(tmp_path_factory.mktemp("gemma") / "tiny")


@pytest.fixture
def gemma(gemma_folder: Path) -> LoadedGemma:
    """Loaded anew for each test, as its contexts stay resident."""
    return load_diffusion_gemma(gemma_folder, threads=1)


@pytest.fixture(scope="session")
def reference(gemma_folder: Path) -> DiffusionGemmaForBlockDiffusion:
    """transformers' model, loaded by transformers."""
    from transformers import DiffusionGemmaForBlockDiffusion

    loaded: Any = DiffusionGemmaForBlockDiffusion.from_pretrained(gemma_folder, local_files_only=True)
    loaded.eval()
    return cast("DiffusionGemmaForBlockDiffusion", loaded)
