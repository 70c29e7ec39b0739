"""A low-rank patch of a model (LoRA, Hu et al. 2021) with a mask embedding: read, checked, fused like the weights.

Owns the patch's file format. A patch belongs to one model file, named by digest in its metadata, and is itself
checked by the digest in the `.sha256` file beside it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from engine.diffusion.confidence import MaskConfidence
from engine.models.digest import sha256_of_file
from engine.models.shape import PARTS, Qwen2Shape
from engine.protocol.errors import EngineError

CONFIDENCE = "mask_confidence"
"""Metadata key: a JSON object of `MaskConfidence`'s fields."""
PART_MODULES = {
    "qkv": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "output": ("self_attn.o_proj",),
    "gate_up": ("mlp.gate_proj", "mlp.up_proj"),
    "down": ("mlp.down_proj",),
}


@dataclass(frozen=True, slots=True)
class LowRank:
    """One patched matrix: W + up @ down. down: [rank, in], up: [out, rank]."""

    down: torch.Tensor
    up: torch.Tensor

    def dense(self) -> torch.Tensor:
        """[out, in] float32."""
        return self.up @ self.down


@dataclass(frozen=True, slots=True)
class Adapter:
    """name: the file's stem; digest: its sha256; mask_embedding: [hidden] float32; tensors: the file's own.

    confidence: what its masks' predictions are worth, from the file's metadata where it has been measured.
    """

    name: str
    digest: str
    confidence: MaskConfidence
    mask_embedding: torch.Tensor
    tensors: Mapping[str, torch.Tensor]

    def patch(self, layer: int, part: str) -> LowRank:
        """The patch of a fused matrix, computed anew from the file's tensors."""
        return block_diagonal(_module_patches(self.tensors, layer, part))


def load_adapter(path: Path, shape: Qwen2Shape, base_digest: str) -> Adapter:
    """Read and check the patch at `path` for the model whose file has `base_digest`.

    Raises EngineError(model_missing) if it is not there, (model_corrupt) if its digest, its base or a size is wrong.
    """
    digest = _verified_digest(path)
    try:
        with safe_open(path, framework="pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except SafetensorError as fault:
        raise _corrupt(path, str(fault)) from fault
    if metadata.get("base_sha256") != base_digest:
        raise EngineError(
            "model_corrupt",
            f"the adapter {path.name} was made for another model file",
            "use the model file the adapter names, or run without an adapter",
        )
    try:
        _require_sizes(path, tensors, shape)
        return Adapter(path.stem, digest, _confidence(path, metadata), tensors["mask_embedding"].float(), tensors)
    except KeyError as fault:
        raise _corrupt(path, f"tensor {fault} is missing") from fault


def require_digest(path: Path, sha256: str) -> None:
    """Raise EngineError(model_corrupt) unless the adapter's digest file names `sha256`, (model_missing) without one.

    That the adapter has that digest is checked when it is loaded.
    """
    if _recorded_digest(path) != sha256:
        raise _corrupt(path, "it is not the one the registry names")


def block_diagonal(patches: Sequence[LowRank]) -> LowRank:
    """The float32 patch of matrices stacked by rows, from their own: ranks add up, `up` is block-diagonal."""
    down = torch.cat([patch.down.float() for patch in patches])
    up = torch.zeros(sum(patch.up.shape[0] for patch in patches), down.shape[0])
    row = column = 0
    for patch in patches:
        rows, rank = patch.up.shape
        up[row : row + rows, column : column + rank] = patch.up
        row, column = row + rows, column + rank
    return LowRank(down, up)


def _module_patches(tensors: Mapping[str, torch.Tensor], layer: int, part: str) -> list[LowRank]:
    prefixes = (f"layers.{layer}.{module}" for module in PART_MODULES[part])
    return [LowRank(tensors[f"{prefix}.lora_A"], tensors[f"{prefix}.lora_B"]) for prefix in prefixes]


def _require_sizes(path: Path, tensors: Mapping[str, torch.Tensor], shape: Qwen2Shape) -> None:
    for layer, part in product(range(shape.layers), PARTS):
        patches = _module_patches(tensors, layer, part)
        rows, columns = shape.part_size(part)
        matching = all(p.down.shape == (p.up.shape[1], columns) for p in patches)
        if not matching or sum(patch.up.shape[0] for patch in patches) != rows:
            raise _corrupt(path, f"the patch of layer {layer} {part} does not fit a matrix of {rows} x {columns}")
    if tuple(tensors["mask_embedding"].shape) != (shape.hidden,):
        raise _corrupt(path, f"mask_embedding has size {tuple(tensors['mask_embedding'].shape)}")


def _confidence(path: Path, metadata: Mapping[str, str]) -> MaskConfidence:
    stored = metadata.get(CONFIDENCE)
    if stored is None:
        return MaskConfidence()
    try:
        numbers = {name: tuple(float(value) for value in values) for name, values in json.loads(stored).items()}
        return MaskConfidence(**numbers)
    except (ValueError, TypeError, AttributeError) as fault:
        raise _corrupt(path, f"its {CONFIDENCE} is unreadable: {fault}") from fault


def _verified_digest(path: Path) -> str:
    expected = _recorded_digest(path)
    digest = sha256_of_file(path)
    if expected != digest:
        raise _corrupt(path, f"its sha256 is {digest}, which {path.name}.sha256 does not confirm")
    return digest


def _recorded_digest(path: Path) -> str:
    recorded_at = path.with_name(path.name + ".sha256")
    if not path.is_file() or not recorded_at.is_file():
        missing = recorded_at if path.is_file() else path
        raise EngineError(
            "model_missing", f"the adapter's file {missing} does not exist", "reinstall, or run without an adapter"
        )
    words = recorded_at.read_text(encoding="ascii", errors="replace").split()
    return words[0] if words else ""


def _corrupt(path: Path, fault: str) -> EngineError:
    return EngineError(
        "model_corrupt",
        f"the adapter {path.name} is damaged: {fault}",
        "reinstall to restore it, or run without an adapter",
    )
