"""A low-rank patch of a model (LoRA, Hu et al. 2021) with a mask embedding: read, checked, fused like the weights.

Owns the patch's file format. A patch belongs to one model file, named by digest in its metadata, and is itself
checked by the digest in the `.sha256` file beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from engine.models.digest import sha256_of_file
from engine.models.shape import PARTS, Qwen2Shape
from engine.protocol.errors import EngineError

_PART_MODULES = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "output": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}


@dataclass(frozen=True, slots=True)
class LowRank:
    """One patched matrix: W + up @ down. down: [rank, in] float32, up: [out, rank] float32."""

    down: torch.Tensor
    up: torch.Tensor

    def dense(self) -> torch.Tensor:
        """[out, in] float32."""
        return self.up @ self.down


@dataclass(frozen=True, slots=True)
class Adapter:
    """name: the file's stem; digest: its sha256; patches by (layer, part); mask_embedding: [hidden] float32."""

    name: str
    digest: str
    patches: Mapping[tuple[int, str], LowRank]
    mask_embedding: torch.Tensor


def load_adapter(path: Path, shape: Qwen2Shape, base_digest: str) -> Adapter:
    """Read and check the patch at `path` for the model whose file has `base_digest`.

    Raises EngineError(model_missing) if it is not there, (model_corrupt) if its digest, its base or a size is wrong.
    """
    digest = _verified_digest(path)
    try:
        with safe_open(path, framework="pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name).float() for name in stored.keys()}  # noqa: SIM118
    except SafetensorError as fault:
        raise _corrupt(path, str(fault)) from fault
    if metadata.get("base_sha256") != base_digest:
        raise EngineError(
            "model_corrupt",
            f"the adapter {path.name} was made for another model file",
            "use the model file the adapter names, or run without an adapter",
        )
    try:
        patches = {(layer, part): _fused(tensors, layer, part) for layer in range(shape.layers) for part in PARTS}
        adapter = Adapter(path.stem, digest, patches, tensors["mask_embedding"])
    except KeyError as fault:
        raise _corrupt(path, f"tensor {fault} is missing") from fault
    _require_sizes(path, adapter, shape)
    return adapter


def block_diagonal(patches: list[LowRank]) -> LowRank:
    """The patch of matrices stacked by rows, from their own: ranks add up, `up` is block-diagonal."""
    down = torch.cat([patch.down for patch in patches])
    up = torch.zeros(sum(patch.up.shape[0] for patch in patches), down.shape[0])
    row = column = 0
    for patch in patches:
        rows, rank = patch.up.shape
        up[row : row + rows, column : column + rank] = patch.up
        row, column = row + rows, column + rank
    return LowRank(down, up)


def _fused(tensors: Mapping[str, torch.Tensor], layer: int, part: str) -> LowRank:
    prefixes = (f"layers.{layer}.{module}" for module in _PART_MODULES[part])
    return block_diagonal([LowRank(tensors[f"{p}.lora_A"], tensors[f"{p}.lora_B"]) for p in prefixes])


def _require_sizes(path: Path, adapter: Adapter, shape: Qwen2Shape) -> None:
    for (layer, part), patch in adapter.patches.items():
        size = (patch.up.shape[0], patch.down.shape[1])
        if size != shape.part_size(part):
            raise _corrupt(path, f"layer {layer} {part} patches a matrix of size {size}")
    if tuple(adapter.mask_embedding.shape) != (shape.hidden,):
        raise _corrupt(path, f"mask_embedding has size {tuple(adapter.mask_embedding.shape)}")


def _verified_digest(path: Path) -> str:
    expected_at = path.with_name(path.name + ".sha256")
    if not path.is_file() or not expected_at.is_file():
        missing = expected_at if path.is_file() else path
        raise EngineError(
            "model_missing", f"the adapter's file {missing} does not exist", "reinstall, or run without an adapter"
        )
    digest = sha256_of_file(path)
    expected = expected_at.read_text(encoding="ascii", errors="replace").split()
    if not expected or expected[0] != digest:
        raise _corrupt(path, f"its sha256 is {digest}, which {expected_at.name} does not confirm")
    return digest


def _corrupt(path: Path, fault: str) -> EngineError:
    return EngineError(
        "model_corrupt",
        f"the adapter {path.name} is damaged: {fault}",
        "reinstall to restore it, or run without an adapter",
    )
