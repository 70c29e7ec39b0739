"""What a file or folder of weights is, told from its own bytes: GGUF or safetensors, and which architecture.

Reads headers only. Pickled weights are never opened: loading them would run code from the file.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.protocol.errors import EngineError

GGUF_MAGIC = b"GGUF"
GGUF_VERSIONS = (2, 3)

BESIDE_WEIGHTS = frozenset(
    {
        *("config.json", "generation_config.json", "model.safetensors.index.json", "length_calibration.json"),
        *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
        *("vocab.json", "merges.txt"),
    }
)
"""What a loader may read in a folder besides weights: data, each file with a digest like the weights themselves."""

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_MAX_HEADER = 100 << 20
_MAX_TEXT = 1 << 20


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
        with path.open("rb") as stream:
            architecture, context = _gguf_header(stream)
    except (struct.error, ValueError, UnicodeDecodeError) as error:
        message = f"{path} is not a GGUF file this version can read: {error}."
        raise EngineError(
            "bad_request", message, "Name a GGUF file (version 2 or 3), or a safetensors folder."
        ) from error
    return Weights("gguf", architecture, context, (path,))


def _gguf_header(stream: BinaryIO) -> tuple[str, int | None]:
    """Architecture and context length from a GGUF header (format: gguf specification, little-endian)."""
    if stream.read(4) != GGUF_MAGIC:
        raise ValueError("it does not begin with GGUF")
    version, _tensors, pairs = struct.unpack("<IQQ", _exactly(stream, 20))
    if version not in GGUF_VERSIONS:
        raise ValueError(f"its version is {version}")
    architecture, context = "", None
    for _ in range(pairs):
        key, value = _gguf_text(stream), _gguf_value(stream)
        if key == "general.architecture":
            architecture = str(value)
        elif key.endswith(".context_length") and isinstance(value, int):
            context = value
        if architecture and context is not None:
            break
    if not architecture:
        raise ValueError("it names no architecture")
    return architecture, context


def _gguf_value(stream: BinaryIO, kind: int | None = None) -> object:
    """The next value; of an array only that it has been passed over."""
    if kind is None:
        (kind,) = struct.unpack("<I", _exactly(stream, 4))
    if kind == _STRING:
        return _gguf_text(stream)
    if kind == _ARRAY:
        item, count = struct.unpack("<IQ", _exactly(stream, 12))
        for _ in range(count):
            _gguf_value(stream, item)
        return None
    if kind not in _SCALARS:
        raise ValueError(f"it holds a value of unknown type {kind}")
    code = "<" + _SCALARS[kind]
    return struct.unpack(code, _exactly(stream, struct.calcsize(code)))[0]


def _gguf_text(stream: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", _exactly(stream, 8))
    if length > _MAX_TEXT:
        raise ValueError("a text in its header is too long")
    return _exactly(stream, length).decode("utf-8")


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise ValueError("it ends inside its header")
    return data


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
    """Refuse a file whose header is not that of safetensors: its length in 8 bytes, then a JSON object."""
    with file.open("rb") as stream:
        head = stream.read(9)
    length = int.from_bytes(head[:8], "little")
    if len(head) < 9 or head[8:] != b"{" or not 2 <= length <= min(_MAX_HEADER, file.stat().st_size - 8):
        raise EngineError("bad_request", f"{file} is not a safetensors file.", "Fetch it again, then add the folder.")


def _config(folder: Path) -> dict[str, object]:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"{folder} has no config.json that can be read."
        raise EngineError("bad_request", message, "Add the whole model folder, with its config.json.") from error
    return config if isinstance(config, dict) else {}
