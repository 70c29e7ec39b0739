"""What a file or folder of weights is, told from its own bytes: GGUF or safetensors, and which architecture.

Reads headers only. Pickled weights are never opened: loading them would run code from the file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engine.models.gguf_format import fields_in_order
from engine.models.safetensors_header import shapes_in
from engine.protocol.errors import EngineError

BESIDE_WEIGHTS = frozenset(
    {
        *("config.json", "generation_config.json", "model.safetensors.index.json", "length_calibration.json"),
        *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
        *("vocab.json", "merges.txt"),
    }
)
"""What a loader may read in a folder besides weights: data, each file with a digest like the weights themselves."""


@dataclass(frozen=True, slots=True)
class Weights:
    """What was found at a path: the format, the architecture it names, its context length, and its files."""

    format: str
    architecture: str
    context_tokens: int | None
    files: tuple[Path, ...]


def inspect(path: Path) -> Weights:
    """What `path` holds. Raises EngineError(bad_request) when it is not there or not weights we accept."""
    if path.is_dir():
        return _safetensors_folder(path)
    if path.is_file():
        return _gguf(path)
    raise EngineError("bad_request", f"{path} does not exist.", "Name a GGUF file or a folder of safetensors files.")


def _gguf(path: Path) -> Weights:
    try:
        architecture, context = _gguf_facts(path)
    except ValueError as error:
        message = f"{path} is not a GGUF file this version can read: {error}."
        raise EngineError(
            "bad_request", message, "Name a GGUF file (version 2 or 3), or a safetensors folder."
        ) from error
    return Weights("gguf", architecture, context, (path,))


def _gguf_facts(path: Path) -> tuple[str, int | None]:
    """Architecture and context length, which stand in front of everything long. Raises ValueError."""
    architecture, context = "", None
    for key, value in fields_in_order(path):
        if key == "general.architecture":
            architecture = str(value)
        elif key.endswith(".context_length") and isinstance(value, int):
            context = value
        if architecture and context is not None:
            break
    if not architecture:
        raise ValueError("it names no architecture")
    return architecture, context


def _safetensors_folder(folder: Path) -> Weights:
    weights = sorted(folder.glob("*.safetensors"))
    if not weights:
        message = f"{folder} holds no safetensors files."
        remedy = "Pickled weights (.bin, .pt) are refused: convert them to safetensors, or name a GGUF file."
        raise EngineError("bad_request", message, remedy)
    for file in weights:
        _check_safetensors(file)
    config = _config(folder)
    context = config.get("max_position_embeddings")
    others = (folder / name for name in sorted(BESIDE_WEIGHTS))
    return Weights(
        "safetensors",
        str(config.get("model_type", "")),
        context if isinstance(context, int) else None,
        (*weights, *(file for file in others if file.is_file())),
    )


def _check_safetensors(file: Path) -> None:
    """Refuse a file whose header is not that of safetensors."""
    try:
        shapes_in(file)
    except ValueError as error:
        message = f"{file} is not a safetensors file: {error}."
        raise EngineError("bad_request", message, "Fetch it again, then add the folder.") from error


def _config(folder: Path) -> dict[str, object]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        message = f"{folder} has no config.json that can be read."
        raise EngineError("bad_request", message, "Add the whole model folder, with its config.json.") from error
    return config if isinstance(config, dict) else {}
