"""GGUF to a directory the engine loads in seconds: `convert_gguf`, `fold_adapter` and the manifest they leave.

Owns the layout of the converted directory and that it appears whole or not at all:

    manifest.json                      format, digest of the source, shape, special ids, size and time of every file
    tokenizer.json                     vocabulary and merges
    outer.safetensors                  final_norm, and embedding (float16) unless the head's rows serve as one
    head.safetensors                   head.weight, head.scale, head.correction: see `runtime.packed`
    layer-NNN.safetensors              attention_norm, mlp_norm, qkv_bias, and PART.weight, PART.scale, PART.correction
    adapter-DIGEST/layer-NNN.safetensors   PART.weight, PART.scale, PART.correction with an adapter folded in; for the
                                           parts in LOW_RANK_PARTS those of PART.lora_A and PART.lora_B instead
    adapter-DIGEST/manifest.json           format, size and time of every file of the folded weights
"""

from __future__ import annotations

import errno
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from engine.models.adapter import Adapter, LowRank
from engine.models.base import SpecialIds
from engine.models.digest import sha256_of_file
from engine.models.folder_record import FOLDED_PREFIX, read_record, write_record
from engine.models.gguf_file import GgufFile, Vocabulary, corrupt
from engine.models.shape import PARTS, Qwen2Shape
from engine.models.weight_files import save_weights
from engine.protocol.errors import EngineError
from engine.runtime.heap import trim_heap
from engine.runtime.packed_matrix import PackedMatrix
from engine.tokenizer import BpeTokenizer

TOKENIZER = "tokenizer.json"
OUTER = "outer.safetensors"
HEAD = "head.safetensors"

LOW_RANK_PARTS = ("gate_up",)
"""The parts whose patch is kept beside them."""
DOWN, UP = ".lora_A", ".lora_B"
"""What such a patch's factors are called behind the part's name."""

_ROWS_AT_ONCE = 8192
_TIED_DISTANCE = 0.1
"""How far apart, relative to their length, an embedding and a head are that one matrix was rounded to. The default
model's file has one with 5 bits and one with 8, 0.044 apart; matrices of their own are about 1.4 apart."""
# The tokenizer, norms, scales and file headers, beside the matrices themselves.
_BESIDE_MATRICES_BYTES = 64 << 20
_SPECIAL_TEXT = {
    "fim_prefix": "<|fim_prefix|>",
    "fim_suffix": "<|fim_suffix|>",
    "fim_middle": "<|fim_middle|>",
    "chat_start": "<|im_start|>",
    "chat_end": "<|im_end|>",
}
_END_TEXTS = ("<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")

Progress = Callable[[float], None]
FreeBytes = Callable[[Path], int]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a converted directory says of itself. `source_mtime_ns` only saves hashing an untouched source again."""

    source_sha256: str
    source_bytes: int
    source_mtime_ns: int
    shape: Qwen2Shape
    special: SpecialIds


def free_bytes(folder: Path) -> int:
    """Bytes this user may still write where `folder` is, or would be made. Raises OSError."""
    return shutil.disk_usage(next(place for place in (folder, *folder.parents) if place.exists())).free


def convert_gguf(gguf: Path, out: Path, *, progress: Progress | None = None, free: FreeBytes = free_bytes) -> None:
    """Convert the file `gguf` into the directory `out`, replacing it.

    Raises EngineError: model_missing, model_corrupt or model_unsupported for the source; no_space when
    `out` needs more than `free` says, or more than there turns out to be; internal when it cannot be written.
    """
    write_converted(GgufFile(gguf), gguf, out, progress=progress, free=free)


def write_converted(
    file: GgufFile,
    gguf: Path,
    out: Path,
    *,
    adapter: Adapter | None = None,
    progress: Progress | None = None,
    free: FreeBytes = free_bytes,
) -> None:
    """`convert_gguf` of a file that is open already; with `adapter`, its folded weights are written as well."""
    shape = file.shape()
    # A header whose numbers its own tensors contradict is a damaged file, not a lack of space.
    _read_layer(file, shape, shape.layers - 1)
    vocabulary = file.vocabulary()
    _require_space(out, converted_bytes(shape, folded=adapter is not None), free)
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
            trim_heap()  # What one layer leaves free has holes that the next one does not fit in.
            _report(progress, (layer + 1) / (shape.layers + 4))
        _write_ends(target, file, shape)
        if adapter is not None:
            write_record(target / folded_name(adapter), {})
        _write_manifest(target, manifest)
    _report(progress, 1.0)


def fold_adapter(
    file: GgufFile, shape: Qwen2Shape, adapter: Adapter, out: Path, *, progress: Progress | None = None
) -> None:
    """Write int8 weights of `file` with `adapter` folded in (W + B A) into the converted directory `out`."""
    _require_space(out, folded_bytes(shape) + _BESIDE_MATRICES_BYTES, free_bytes)
    with _written_whole(out / folded_name(adapter)) as target:
        for layer in range(shape.layers):
            folded = (_adapted(part, file.matrix(shape, layer, part), adapter.patch(layer, part)) for part in PARTS)
            save_weights(_merged(folded), target / layer_name(layer))
            _report(progress, (layer + 1) / shape.layers)
        write_record(target, {})


def converted_bytes(shape: Qwen2Shape, *, folded: bool) -> int:
    """At most how much a conversion takes on disk; a float16 embedding is not written where it is tied."""
    layers = _matrix_bytes(shape, PARTS) + (folded_bytes(shape) if folded else 0)
    return layers + 3 * shape.vocab * shape.hidden + _BESIDE_MATRICES_BYTES


def folded_bytes(shape: Qwen2Shape) -> int:
    """About how much the folded matrices of all layers take on disk; the patches beside the others are small."""
    return _matrix_bytes(shape, [part for part in PARTS if part not in LOW_RANK_PARTS])


def _matrix_bytes(shape: Qwen2Shape, parts: Iterable[str]) -> int:
    return shape.layers * sum(math.prod(shape.part_size(part)) for part in parts)


def is_current(out: Path, source_digest: str) -> bool:
    """Whether `out` is a whole conversion, by this version, of the file with that sha256."""
    manifest = read_manifest(out)
    return manifest is not None and manifest.source_sha256 == source_digest


def is_folded(out: Path, adapter: Adapter) -> bool:
    """Whether `out` holds the folded weights of `adapter` as they were written."""
    return read_record(out / folded_name(adapter)) is not None


def read_manifest(out: Path) -> Manifest | None:
    """The manifest of a whole conversion by this version; None if there is none or a file is not as it was written."""
    stored = read_record(out)
    if stored is None:
        return None
    try:
        return Manifest(
            stored["source_sha256"],
            stored["source_bytes"],
            stored["source_mtime_ns"],
            Qwen2Shape(**stored["shape"]),
            _special_from_json(stored["special"]),
        )
    except (ValueError, LookupError, TypeError, AttributeError):
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
    return f"{FOLDED_PREFIX}{adapter.digest[:16]}"


def _read_layer(file: GgufFile, shape: Qwen2Shape, layer: int) -> None:
    """Raise EngineError(model_corrupt) unless the file's layer has the sizes that `shape` says."""
    file.norms(shape, layer)
    for part in PARTS:
        file.matrix(shape, layer, part)


def _write_ends(target: Path, file: GgufFile, shape: Qwen2Shape) -> None:
    """What stands before and behind the layers. Rows of a tied head are at least as exact as its embedding's."""
    outer = {"final_norm": file.final_norm(shape)}
    if not _is_tied(file, shape):
        outer["embedding"] = torch.cat([rows.half() for rows, _ in file.outer_rows(shape, _ROWS_AT_ONCE)])
    save_weights(outer, target / OUTER)
    head = PackedMatrix.of_rows(rows for _, rows in file.outer_rows(shape, _ROWS_AT_ONCE))
    save_weights(_named("head", head), target / HEAD)


def _is_tied(file: GgufFile, shape: Qwen2Shape) -> bool:
    apart = whole = 0.0
    for embedding, head in file.outer_rows(shape, _ROWS_AT_ONCE):
        apart += float((embedding - head).square().sum())
        whole += float(head.square().sum())
    return apart <= _TIED_DISTANCE**2 * whole


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
        plain |= _packed(part, dense)
        if adapter is not None:
            folded |= _adapted(part, dense, adapter.patch(layer, part))
    save_weights(plain, target / layer_name(layer))
    if adapter is not None:
        save_weights(folded, target / folded_name(adapter) / layer_name(layer))


def _adapted(part: str, dense: torch.Tensor, patch: LowRank) -> dict[str, torch.Tensor]:
    if part in LOW_RANK_PARTS:
        return _packed(part + DOWN, patch.down) | _packed(part + UP, patch.up)
    return _packed(part, dense + patch.dense())


def _merged(tensors: Iterable[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {name: tensor for group in tensors for name, tensor in group.items()}


def _packed(name: str, dense: torch.Tensor) -> dict[str, torch.Tensor]:
    return _named(name, PackedMatrix.of_rows([dense]))


def _named(name: str, matrix: PackedMatrix) -> dict[str, torch.Tensor]:
    return {f"{name}.weight": matrix.weight, f"{name}.scale": matrix.scale, f"{name}.correction": matrix.correction}


def _write_manifest(target: Path, manifest: Manifest) -> None:
    content: dict[str, Any] = {
        "source_sha256": manifest.source_sha256,
        "source_bytes": manifest.source_bytes,
        "source_mtime_ns": manifest.source_mtime_ns,
        "shape": manifest.shape.to_json(),
        "special": {name: getattr(manifest.special, name) for name in _SPECIAL_TEXT}
        | {"end": sorted(manifest.special.end), "special": sorted(manifest.special.special)},
    }
    write_record(target, content)


def _special_from_json(stored: dict[str, Any]) -> SpecialIds:
    named = {name: int(stored[name]) for name in _SPECIAL_TEXT}
    return SpecialIds(**named, end=frozenset(stored["end"]), special=frozenset(stored["special"]))


def write_failure(out: Path, fault: OSError | SafetensorError) -> EngineError:
    """What a fault while writing `out` means to a person. Safetensors gives the system's number in words only."""
    told = re.search(r"\(os error (\d+)\)", str(fault)) if isinstance(fault, SafetensorError) else None
    number = int(told[1]) if told else getattr(fault, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT):
        return EngineError(
            "no_space",
            f"the disk is full: the converted model does not fit in {out.parent}",
            "free space there, or set LACUNA_HOME to a folder on a larger disk",
        )
    return EngineError(
        "internal",
        f"the converted model cannot be written to {out}: {fault}",
        "check that the folder is yours and its disk is sound, or set LACUNA_HOME to another place",
    )


def _require_space(out: Path, needed: int, free: FreeBytes) -> None:
    """Raise EngineError(no_space) unless `needed` bytes fit where `out` goes."""
    try:
        there = free(out.parent)
    except OSError as fault:
        raise write_failure(out, fault) from fault
    if there < needed:
        raise EngineError(
            "no_space",
            f"the converted model needs {_gigabytes(needed)} in {out.parent}, where {_gigabytes(there)} are free",
            f"free {_gigabytes(needed - there)} there, or set LACUNA_HOME to a folder on a larger disk",
        )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB"


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
    except (OSError, SafetensorError) as fault:
        raise write_failure(out, fault) from fault
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _report(progress: Progress | None, fraction: float) -> None:
    if progress is not None:
        progress(fraction)
