"""A GGUF file of the Qwen2 architecture, read: its shape, its vocabulary, its matrices as float32.

Owns the GGUF names and the checks that a file holds what they promise. Every fault of the file is an EngineError:
`model_unsupported` for another architecture or tokenizer, `model_corrupt` for anything damaged or missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.models.gguf_format import GgufHeader, StoredTensor, read_header
from engine.models.shape import Qwen2Shape
from engine.protocol.errors import EngineError

_NORMAL_TOKEN = 1
_PART_TENSORS = {
    "qkv": ("attn_q", "attn_k", "attn_v"),
    "output": ("attn_output",),
    "gate_up": ("ffn_gate", "ffn_up"),
    "down": ("ffn_down",),
}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """A byte-level BPE vocabulary: token strings by id, which of them are special, and the merges in rank order."""

    tokens: tuple[str, ...]
    special: frozenset[int]
    merges: tuple[str, ...]


class GgufFile:
    """An open file; tensors are read from disk on demand. Raises EngineError as the module describes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _faults_named(path):
            self._header = read_header(path)
        architecture = self._field("general.architecture", str)
        if architecture != "qwen2":
            raise _unsupported(path, f"its architecture is {architecture!r}, and only 'qwen2' is supported")

    def shape(self) -> Qwen2Shape:
        heads = self._field("qwen2.attention.head_count", int)
        hidden = self._field("qwen2.embedding_length", int)
        if heads <= 0 or hidden % heads:
            raise corrupt(self._path, f"{hidden} dimensions cannot be split into {heads} heads")
        kv_heads = self._field("qwen2.attention.head_count_kv", int)
        if kv_heads <= 0 or heads % kv_heads:
            raise corrupt(self._path, f"{heads} heads cannot share {kv_heads} key-value heads")
        return Qwen2Shape(
            layers=self._field("qwen2.block_count", int),
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=hidden // heads,
            intermediate=self._field("qwen2.feed_forward_length", int),
            vocab=len(self._field("tokenizer.ggml.tokens", list)),
            trained_tokens=self._field("qwen2.context_length", int),
            rope_theta=self._field("qwen2.rope.freq_base", float),
            norm_epsilon=self._field("qwen2.attention.layer_norm_rms_epsilon", float),
        )

    def vocabulary(self) -> Vocabulary:
        model = self._field("tokenizer.ggml.model", str)
        split = self._field("tokenizer.ggml.pre", str)
        if (model, split) != ("gpt2", "qwen2"):
            raise _unsupported(self._path, f"its tokenizer is {model}/{split}, and only gpt2/qwen2 is supported")
        kinds = self._field("tokenizer.ggml.token_type", list)
        return Vocabulary(
            tokens=tuple(self._field("tokenizer.ggml.tokens", list)),
            special=frozenset(index for index, kind in enumerate(kinds) if kind != _NORMAL_TOKEN),
            merges=tuple(self._field("tokenizer.ggml.merges", list)),
        )

    def embedding(self, shape: Qwen2Shape) -> torch.Tensor:
        """[vocab, hidden] float32."""
        return self._tensor("token_embd.weight", (shape.vocab, shape.hidden))

    def head(self, shape: Qwen2Shape) -> torch.Tensor:
        """[vocab, hidden] float32; the embedding where the file ties the two."""
        return self._tensor(self._head_name, (shape.vocab, shape.hidden))

    def outer_rows(self, shape: Qwen2Shape, step: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(embedding, head) a few rows at a time, each [step or what is left, hidden] float32.

        Either of them whole takes several times the memory of a converted model.
        """
        sizes = {tuple(self._stored(name).shape) for name in ("token_embd.weight", self._head_name)}
        if sizes != {(shape.vocab, shape.hidden)}:
            raise corrupt(self._path, f"its embedding and head are not [{shape.vocab}, {shape.hidden}]: {sizes}")
        for start in range(0, shape.vocab, step):
            rows = slice(start, min(start + step, shape.vocab))
            size = (rows.stop - rows.start, shape.hidden)
            yield self._tensor("token_embd.weight", size, rows), self._tensor(self._head_name, size, rows)

    @property
    def _head_name(self) -> str:
        return "output.weight" if "output.weight" in self._header.tensors else "token_embd.weight"

    def final_norm(self, shape: Qwen2Shape) -> torch.Tensor:
        """[hidden] float32."""
        return self._tensor("output_norm.weight", (shape.hidden,))

    def norms(self, shape: Qwen2Shape, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(attention, mlp) norm weights of a layer: each [hidden] float32."""
        first, second = (f"blk.{layer}.{name}.weight" for name in ("attn_norm", "ffn_norm"))
        return self._tensor(first, (shape.hidden,)), self._tensor(second, (shape.hidden,))

    def qkv_bias(self, shape: Qwen2Shape, layer: int) -> torch.Tensor:
        """[(heads + 2 kv_heads) * head_dim] float32."""
        names = (f"blk.{layer}.{name}.bias" for name in _PART_TENSORS["qkv"])
        fused = torch.cat([self._tensor(name, None) for name in names])
        return self._checked(f"blk.{layer} attention bias", fused, shape.part_size("qkv")[:1])

    def matrix(self, shape: Qwen2Shape, layer: int, part: str) -> torch.Tensor:
        """A fused matrix of a layer, [out, in] float32, rows in the order of the names it is fused from."""
        names = (f"blk.{layer}.{name}.weight" for name in _PART_TENSORS[part])
        fused = torch.cat([self._tensor(name, None) for name in names])
        return self._checked(f"blk.{layer} {part}", fused, shape.part_size(part))

    def _tensor(self, name: str, size: tuple[int, ...] | None, rows: slice = slice(None)) -> torch.Tensor:
        stored = self._stored(name)
        with _faults_named(self._path):
            tensor = _dequantised(self._header, stored, rows)
        return tensor if size is None else self._checked(name, tensor, size)

    def _stored(self, name: str) -> StoredTensor:
        if name not in self._header.tensors:
            raise corrupt(self._path, f"tensor {name!r} is missing")
        return self._header.tensors[name]

    def _checked(self, name: str, tensor: torch.Tensor, size: tuple[int, ...]) -> torch.Tensor:
        if tuple(tensor.shape) != size:
            raise corrupt(self._path, f"{name} has size {tuple(tensor.shape)} where {size} was expected")
        return tensor

    def _field(self, name: str, kind: type) -> Any:
        if name not in self._header.fields:
            raise corrupt(self._path, f"key {name!r} is missing")
        value = self._header.fields[name]
        if not isinstance(value, kind):
            raise corrupt(self._path, f"key {name!r} holds a {type(value).__name__}, not a {kind.__name__}")
        return value


def _dequantised(header: GgufHeader, stored: StoredTensor, rows: slice) -> torch.Tensor:
    """`rows` of the tensor, as a float32 copy. Raises ValueError for an unknown type or a file cut short."""
    import gguf

    kind = gguf.GGMLQuantizationType(stored.kind)
    *outer, row_bytes = gguf.quant_shape_to_byte_shape(stored.shape, kind)
    raw = np.frombuffer(header.data, np.uint8, count=math.prod(outer) * row_bytes, offset=stored.offset)
    dense = gguf.quants.dequantize(_typed(raw.reshape(*outer, row_bytes)[rows], kind.name), kind)
    return torch.from_numpy(np.array(dense, dtype=np.float32))


def _typed(raw: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any]:
    # `dequantize` wants the plain float types as numbers and everything else as bytes.
    plain = {"F32": np.float32, "F16": np.float16}.get(kind)
    return raw if plain is None else raw.view(plain)


def corrupt(path: Path, fault: str) -> EngineError:
    """The error for a model file that does not hold what it should."""
    return EngineError(
        "model_corrupt",
        f"{path.name} is damaged: {fault}",
        "remove the file and fetch the model again (`lacuna models remove NAME`, `lacuna models pull NAME`)",
    )


def _unsupported(path: Path, reason: str) -> EngineError:
    return EngineError("model_unsupported", f"{path.name} cannot be used: {reason}", "choose another model file")


@contextmanager
def _faults_named(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as fault:
        raise EngineError("model_missing", f"{path} does not exist", "run `lacuna models pull NAME`") from fault
    except (ValueError, LookupError, TypeError, ArithmeticError, OSError, MemoryError) as fault:
        raise corrupt(path, str(fault) or type(fault).__name__) from fault
