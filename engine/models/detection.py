"""Which family can load some weights, told from their headers and configuration alone. Imports no torch.

The families' own tables say what they know (`masked.families.detect`); here they are asked in turn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.models.checkpoint_json import object_or_empty
from engine.models.special_tokens import special_tokens

FAMILIES = ("hybrid", "masked", "diffusion_gemma")
"""Every family this version loads."""
_GGUF = {"qwen2": "hybrid"}
_DIFFUSION_GEMMA = "diffusion_gemma"


def family_of(architecture: str, path: Path, name: str = "") -> str | None:
    """The family of a GGUF file that names `architecture`, or of a folder with a config.json; None for none.

    name: what the model is called where it was published, if the folder's own name does not tell.
    """
    if path.is_file():
        return _GGUF.get(architecture)
    config = read_config_json(path)
    if config.get("model_type") == _DIFFUSION_GEMMA:
        return "diffusion_gemma"
    from engine.models.masked.families import candidates

    return "masked" if candidates(config, special_tokens(path), name or path.name) else None


def family_and_layout(told: str) -> tuple[str, str]:
    """The family a person named, and its layout: the name of a layout of the masked family says both. "" for none."""
    from engine.models.masked.families import LAYOUTS

    return ("masked", told) if told in LAYOUTS else (told, "")


def read_config_json(folder: Path) -> dict[str, Any]:
    """The configuration of a model's folder; empty when it cannot be read."""
    return object_or_empty(folder / "config.json")
