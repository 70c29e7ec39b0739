"""From files to a `HybridDenoiser`: converts once, folds the adapter once, then loads from the converted directory.

Owns the order of things and where the packaged adapter lies; formats are `conversion`'s, `gguf_file`'s, `adapter`'s.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import torch
from filelock import FileLock
from safetensors import SafetensorError

from engine.models.adapter import Adapter, load_adapter
from engine.models.base import ModelFacts, SpecialIds
from engine.models.conversion import (
    TOKENIZER,
    Manifest,
    fold_adapter,
    folded_name,
    is_current,
    is_folded,
    read_manifest,
    source_digest,
    special_ids,
    write_converted,
    write_failure,
)
from engine.models.folder_record import converted_folder
from engine.models.gguf_file import GgufFile, corrupt
from engine.models.hybrid import MASK_ID, HybridDenoiser, HybridWeights
from engine.models.int8_weights import load_int8_weights
from engine.models.network import LayerWeights, Stack
from engine.models.shape import PARTS, Qwen2Shape
from engine.models.stale import remove_other_adapters, remove_replaced
from engine.protocol.errors import EngineError
from engine.runtime.cache import MOST_BYTES
from engine.runtime.embedding import FloatEmbedding
from engine.runtime.linear import (
    FloatLinear,
    Linear,
    LowRankLinear,
    configure_runtime,
    int8_is_supported,
)
from engine.tokenizer import BpeTokenizer

PACKAGED_ADAPTER = "qwen2.5-coder-0.5b-fim.safetensors"
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}

# What a truncated, changed or missing file of the converted model shows itself by.
_DAMAGE = (SafetensorError, KeyError, OSError, ValueError)

Progress = Callable[[str, float], None]


def packaged_weights() -> Path:
    """The folder of the adapters that ship with the engine; the registry names them."""
    return Path(__file__).parent.parent / "weights"


def adapter_path() -> Path:
    """The adapter shipped for the default model."""
    return packaged_weights() / PACKAGED_ADAPTER


def load_denoiser(
    model_path: Path,
    cache_dir: Path,
    *,
    name: str,
    precision: str = "int8",
    device: str = "cpu",
    adapter: Path | None,
    threads: int | None,
    window_tokens: int = 4096,
    cache_bytes: int = MOST_BYTES,
    progress: Progress | None = None,
) -> HybridDenoiser:
    """Load the GGUF at `model_path`, converting it under `cache_dir` if that has not been done.

    precision: "int8" (CPU only), "fp32" or "bf16"; the float ones read the GGUF itself and cache nothing.
    cache_bytes: what prompts kept resident between requests may take together.
    progress: called with a stage ("read", "convert", "fold", "load") and a fraction of it.
    Raises EngineError: model_missing, model_corrupt, model_unsupported, no_space, internal.
    """
    configure_runtime(threads)
    source = _Source(model_path, progress)
    if precision == "int8" and device == "cpu":
        parts = _load_int8(source, cache_dir, name, adapter)
    elif precision in _DTYPES:
        parts = _load_float(source, cache_dir, _DTYPES[precision], torch.device(device), adapter)
    else:
        raise EngineError(
            "model_unsupported",
            f"precision {precision!r} on {device!r} is not available",
            "use int8 on the CPU, or fp32 or bf16 anywhere",
        )
    weights, tokenizer, special, patch = parts
    facts = ModelFacts(
        name=name,
        family="hybrid",
        device=device,
        precision=_spoken_precision(precision),
        adapter=patch.name if patch else "",
        vocab_size=weights.shape.vocab,
        window_tokens=min(window_tokens, weights.shape.trained_tokens),
        mask_id=MASK_ID,
        confidence=patch.confidence if patch else None,
        special=special,
    )
    cache_dtype = torch.float32 if precision == "int8" else _DTYPES[precision]
    return HybridDenoiser(weights, tokenizer, facts, cache_dtype=cache_dtype, cache_bytes=cache_bytes)


_Parts = tuple[HybridWeights, BpeTokenizer, SpecialIds, Adapter | None]


class _Source:
    """The GGUF, opened at most once and only if something needs it."""

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self.path = path
        self._progress = progress

    @cached_property
    def file(self) -> GgufFile:
        self.report("read", 0.0)
        return GgufFile(self.path)

    def report(self, stage: str, fraction: float) -> None:
        if self._progress is not None:
            self._progress(stage, fraction)


def _load_int8(source: _Source, cache_dir: Path, name: str, adapter_file: Path | None) -> _Parts:
    """Load the converted model; a damaged one is only a cache, so it is made anew once from the model's own file."""
    out = converted_folder(cache_dir, name)
    with _alone_with(out):
        try:
            return _load_converted(source, out, name, adapter_file)
        except _DAMAGE:
            shutil.rmtree(out, ignore_errors=True)
        try:
            return _load_converted(source, out, name, adapter_file)
        except _DAMAGE as fault:
            raise EngineError(
                "model_corrupt", f"the converted model in {out} is damaged: {fault}", f"remove {out} and start again"
            ) from fault


@contextmanager
def _alone_with(out: Path) -> Iterator[None]:
    """Hold the lock of `out`, where no unfinished conversion lies: whoever left one was killed over it."""
    lock = FileLock(out.with_name(f"{out.name}.lock"))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except OSError as fault:
        raise write_failure(out, fault) from fault
    try:
        for unfinished in out.parent.glob(f".{out.name}-*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        yield
    finally:
        lock.release()


def _load_converted(source: _Source, out: Path, name: str, adapter_file: Path | None) -> _Parts:
    manifest, adapter = _converted(source, out, name, adapter_file)
    weights = load_int8_weights(out, manifest.shape, adapter, lambda done: source.report("load", done))
    tokenizer = BpeTokenizer.load(out / TOKENIZER)
    return weights, tokenizer, manifest.special, adapter


def _converted(source: _Source, out: Path, name: str, adapter_file: Path | None) -> tuple[Manifest, Adapter | None]:
    """Make sure that `out` holds the model and the folded adapter. What that replaces is removed."""
    digest = source_digest(source.path, out)
    found = read_manifest(out) if is_current(out, digest) else None
    shape = found.shape if found else source.file.shape()
    adapter = _adapter(adapter_file, shape, digest)
    if found is None:
        write_converted(
            source.file, source.path, out, adapter=adapter, progress=lambda done: source.report("convert", done)
        )
        found = read_manifest(out)
        if found is None:
            raise corrupt(out, "it changed while it was being loaded")
        remove_replaced(out, name)
    elif adapter is not None and not is_folded(out, adapter):
        fold_adapter(source.file, shape, adapter, out, progress=lambda done: source.report("fold", done))
        remove_other_adapters(out, folded_name(adapter))
    return found, adapter


def _load_float(
    source: _Source, cache_dir: Path, dtype: torch.dtype, device: torch.device, adapter_file: Path | None
) -> _Parts:
    file, shape = source.file, source.file.shape()
    digest = source_digest(source.path, cache_dir) if adapter_file else ""
    adapter = _adapter(adapter_file, shape, digest)
    plain, adapted = [], []
    for index in range(shape.layers):
        layer = _float_layer(file, shape, index, dtype, device)
        plain.append(layer)
        if adapter is not None:
            adapted.append(patched_layer(layer, adapter, index, dtype, device))
        source.report("load", (index + 1) / shape.layers)
    norm = file.final_norm(shape).to(device)
    weights = HybridWeights(
        shape=shape,
        embedding=FloatEmbedding(file.embedding(shape).to(device, dtype)),
        plain=Stack(tuple(plain), norm),
        head=FloatLinear(file.head(shape).to(device, dtype)),
        adapted=Stack(tuple(adapted), norm) if adapter else None,
        mask_embedding=adapter.mask_embedding.to(device) if adapter else None,
    )
    vocabulary = file.vocabulary()
    tokenizer = BpeTokenizer.from_vocabulary(vocabulary.tokens, vocabulary.special, vocabulary.merges)
    return weights, tokenizer, special_ids(vocabulary, source.path), adapter


def _float_layer(
    file: GgufFile, shape: Qwen2Shape, index: int, dtype: torch.dtype, device: torch.device
) -> LayerWeights:
    attention_norm, mlp_norm = (norm.to(device) for norm in file.norms(shape, index))
    parts: dict[str, Linear] = {part: FloatLinear(file.matrix(shape, index, part).to(device, dtype)) for part in PARTS}
    return LayerWeights(attention_norm, mlp_norm, file.qkv_bias(shape, index).to(device), **parts)


def patched_layer(
    layer: LayerWeights, adapter: Adapter, index: int, dtype: torch.dtype, device: torch.device
) -> LayerWeights:
    """`layer` with the adapter's patches beside its own matrices, which are shared, not copied."""
    parts: dict[str, Linear] = {}
    for part in PARTS:
        patch = adapter.patch(index, part)
        base: Linear = getattr(layer, part)
        parts[part] = LowRankLinear(base, *(FloatLinear(factor.to(device, dtype)) for factor in (patch.down, patch.up)))
    return LayerWeights(layer.attention_norm, layer.mlp_norm, layer.qkv_bias, **parts)


def _adapter(path: Path | None, shape: Qwen2Shape, base_digest: str) -> Adapter | None:
    return load_adapter(path, shape, base_digest) if path is not None else None


def _spoken_precision(precision: str) -> str:
    return "fp32 of int8 weights" if precision == "int8" and not int8_is_supported() else precision
