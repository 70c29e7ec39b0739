"""GGUF to a directory the engine loads in seconds: `convert_gguf`, `fold_adapter` and the manifest they leave.

Owns the layout of the converted directory and that it appears whole or not at all:

    manifest.json                      format, digest of the source, shape, special ids, size of every file
    tokenizer.json                     vocabulary and merges
    embedding.safetensors              embedding (float16), final_norm
    head.safetensors                   head.weight (int8), head.scale
    layer-NNN.safetensors              attention_norm, mlp_norm, qkv_bias, and PART.weight (int8), PART.scale
    adapter-DIGEST/layer-NNN.safetensors   PART.weight, PART.scale of the weights with an adapter folded in
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from engine.models.adapter import Adapter
from engine.models.base import SpecialIds
from engine.models.digest import sha256_of_file
from engine.models.gguf_file import GgufFile, Vocabulary, corrupt
from engine.models.shape import PARTS, Qwen2Shape
from engine.protocol.errors import EngineError
from engine.runtime.linear import quantise_per_channel
from engine.tokenizer import BpeTokenizer

FORMAT = 2
MANIFEST = "manifest.json"
TOKENIZER = "tokenizer.json"
EMBEDDING = "embedding.safetensors"
HEAD = "head.safetensors"
SMALL_TENSORS = ("attention_norm", "mlp_norm", "qkv_bias")
"""The float32 tensors of a layer's file."""

_ROWS_AT_ONCE = 16384
_SPECIAL_TEXT = {
    "fim_prefix": "<|fim_prefix|>",
    "fim_suffix": "<|fim_suffix|>",
    "fim_middle": "<|fim_middle|>",
    "chat_start": "<|im_start|>",
    "chat_end": "<|im_end|>",
}
_END_TEXTS = ("<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a converted directory says of itself. `source_mtime_ns` only saves hashing an untouched source again."""

    source_sha256: str
    source_bytes: int
    source_mtime_ns: int
    shape: Qwen2Shape
    special: SpecialIds


def convert_gguf(gguf: Path, out: Path, *, progress: Progress | None = None) -> None:
    """Convert the file `gguf` into the directory `out`, replacing it.

    Raises EngineError: model_missing, model_corrupt or model_unsupported for the source, internal when `out`
    cannot be written.
    """
    write_converted(GgufFile(gguf), gguf, out, progress=progress)


def write_converted(
    file: GgufFile, gguf: Path, out: Path, *, adapter: Adapter | None = None, progress: Progress | None = None
) -> None:
    """`convert_gguf` of a file that is open already; with `adapter`, its folded weights are written as well."""
    shape = file.shape()
    vocabulary = file.vocabulary()
    special = special_ids(vocabulary, gguf)
    source = gguf.stat()
    manifest = Manifest(sha256_of_file(gguf), source.st_size, source.st_mtime_ns, shape, special)
    tokenizer = BpeTokenizer.from_vocabulary(vocabulary.tokens, vocabulary.special, vocabulary.merges)
    with _written_whole(out) as target:
        tokenizer.save(target / TOKENIZER)
        if adapter is not None:
            (target / folded_name(adapter)).mkdir()
        for layer in range(shape.layers):
            _write_layer(target, file, shape, layer, adapter)
            _report(progress, (layer + 1) / (shape.layers + 4))
        save_file(
            {"embedding": file.embedding(shape).half(), "final_norm": file.final_norm(shape)},
            target / EMBEDDING,
        )
        save_file(_quantised("head", file.head(shape)), target / HEAD)
        _write_manifest(target, manifest)
    _report(progress, 1.0)


def fold_adapter(
    file: GgufFile, shape: Qwen2Shape, adapter: Adapter, out: Path, *, progress: Progress | None = None
) -> None:
    """Write int8 weights of `file` with `adapter` folded in (W + B A) into the converted directory `out`."""
    with _written_whole(out / folded_name(adapter)) as target:
        for layer in range(shape.layers):
            folded = (
                _quantised(part, file.matrix(shape, layer, part) + adapter.patch(layer, part).dense()) for part in PARTS
            )
            save_file(_merged(folded), target / layer_name(layer))
            _report(progress, (layer + 1) / shape.layers)


def is_current(out: Path, source_digest: str) -> bool:
    """Whether `out` is a whole conversion, by this version, of the file with that sha256."""
    manifest = read_manifest(out)
    return manifest is not None and manifest.source_sha256 == source_digest


def is_folded(out: Path, adapter: Adapter, shape: Qwen2Shape) -> bool:
    """Whether `out` holds the folded weights of `adapter`. Folded directories appear whole, so names suffice."""
    return all((out / folded_name(adapter) / layer_name(layer)).is_file() for layer in range(shape.layers))


def read_manifest(out: Path) -> Manifest | None:
    """The manifest of a whole conversion by this version; None if there is none or a file is missing or cut."""
    try:
        stored = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
        if stored["format"] != FORMAT or not _files_are_whole(out, stored["files"]):
            return None
        return Manifest(
            stored["source_sha256"],
            stored["source_bytes"],
            stored["source_mtime_ns"],
            Qwen2Shape(**stored["shape"]),
            _special_from_json(stored["special"]),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def source_digest(gguf: Path, out: Path) -> str:
    """sha256 of `gguf`, taken from the manifest in `out` when size and time of the source are those recorded."""
    try:
        found = gguf.stat()
        manifest = read_manifest(out)
        if manifest and (found.st_size, found.st_mtime_ns) == (manifest.source_bytes, manifest.source_mtime_ns):
            return manifest.source_sha256
        return sha256_of_file(gguf)
    except OSError as fault:
        raise EngineError(
            "model_missing", f"{gguf} cannot be read: {fault}", "run `lacuna models pull NAME`"
        ) from fault


def special_ids(vocabulary: Vocabulary, gguf: Path) -> SpecialIds:
    """The special ids by their text. Raises EngineError(model_corrupt) if the vocabulary lacks one."""
    ids = {vocabulary.tokens[index]: index for index in vocabulary.special if index < len(vocabulary.tokens)}
    try:
        named = {name: ids[text] for name, text in _SPECIAL_TEXT.items()}
        end = frozenset(ids[text] for text in _END_TEXTS)
    except KeyError as fault:
        raise corrupt(gguf, f"its vocabulary lacks the special token {fault}") from fault
    return SpecialIds(**named, end=end, special=vocabulary.special)


def layer_name(layer: int) -> str:
    return f"layer-{layer:03}.safetensors"


def folded_name(adapter: Adapter) -> str:
    return f"adapter-{adapter.digest[:16]}"


def _write_layer(target: Path, file: GgufFile, shape: Qwen2Shape, layer: int, adapter: Adapter | None) -> None:
    attention_norm, mlp_norm = file.norms(shape, layer)
    plain = {
        "attention_norm": attention_norm,
        "mlp_norm": mlp_norm,
        "qkv_bias": file.qkv_bias(shape, layer),
    }
    folded: dict[str, torch.Tensor] = {}
    for part in PARTS:
        dense = file.matrix(shape, layer, part)
        plain |= _quantised(part, dense)
        if adapter is not None:
            folded |= _quantised(part, dense + adapter.patch(layer, part).dense())
    save_file(plain, target / layer_name(layer))
    if adapter is not None:
        save_file(folded, target / folded_name(adapter) / layer_name(layer))


def _merged(tensors: Iterable[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {name: tensor for group in tensors for name, tensor in group.items()}


def _quantised(name: str, dense: torch.Tensor) -> dict[str, torch.Tensor]:
    # In pieces, so that the temporaries of a vocabulary-sized matrix stay small.
    pieces = [quantise_per_channel(piece) for piece in torch.split(dense, _ROWS_AT_ONCE)]
    return {
        f"{name}.weight": torch.cat([weight for weight, _ in pieces]),
        f"{name}.scale": torch.cat([scale for _, scale in pieces]),
    }


def _write_manifest(target: Path, manifest: Manifest) -> None:
    content: dict[str, Any] = {
        "format": FORMAT,
        "source_sha256": manifest.source_sha256,
        "source_bytes": manifest.source_bytes,
        "source_mtime_ns": manifest.source_mtime_ns,
        "shape": manifest.shape.to_json(),
        "special": {name: getattr(manifest.special, name) for name in _SPECIAL_TEXT}
        | {"end": sorted(manifest.special.end), "special": sorted(manifest.special.special)},
        "files": {path.name: path.stat().st_size for path in sorted(target.iterdir()) if path.is_file()},
    }
    (target / MANIFEST).write_text(json.dumps(content), encoding="utf-8")


def _special_from_json(stored: dict[str, Any]) -> SpecialIds:
    named = {name: int(stored[name]) for name in _SPECIAL_TEXT}
    return SpecialIds(**named, end=frozenset(stored["end"]), special=frozenset(stored["special"]))


def _files_are_whole(out: Path, sizes: dict[str, int]) -> bool:
    return all((out / name).stat().st_size == size for name, size in sizes.items())


@contextmanager
def _written_whole(out: Path) -> Iterator[Path]:
    """A temporary directory beside `out` that takes its place when the block ends without an error."""
    temporary = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        yield temporary
        if out.exists():
            shutil.rmtree(out)
        os.replace(temporary, out)  # noqa: PTH105
    except OSError as fault:
        raise EngineError(
            "internal",
            f"the converted model cannot be written to {out}: {fault}",
            "free about 1.5 GB there and check that the folder is yours, or set LACUNA_HOME to another place",
        ) from fault
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _report(progress: Progress | None, fraction: float) -> None:
    if progress is not None:
        progress(fraction)
