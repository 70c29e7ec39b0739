"""A run's state in one safetensors file: parameters, their moving average, the optimiser's moments, where it stands.

Owns the format, that a file appears whole, that it holds finite numbers only and that the one before it is kept. A
checkpoint of another base model is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

_FORMAT = "lacuna-training-1"
_KINDS = ("parameters", "average", "first", "second")


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a run is. step: optimiser steps; gap: gaps seen; seconds: processor time of all cores over all
    resumptions, with evaluations and without loading; a pause does not count."""

    step: int
    gap: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A run's tensors by parameter name, all float32: the parameters, their average, Adam's two moments."""

    standing: Standing
    base_sha256: str
    parameters: Mapping[str, torch.Tensor]
    average: Mapping[str, torch.Tensor]
    first: Mapping[str, torch.Tensor]
    second: Mapping[str, torch.Tensor]


def previous_path(path: Path) -> Path:
    """Where the checkpoint before the one at `path` is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def present_path(path: Path) -> Path | None:
    """The newest whole checkpoint: `path`, or the one before it if writing was cut short there; None without any."""
    return next((found for found in (path, previous_path(path)) if found.exists()), None)


def write_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write beside `path` and put it in place; what was there is kept at `previous_path`.

    Raises ValueError for numbers that are not finite, before anything is written; OSError.
    """
    tensors = {
        f"{kind}.{name}": tensor.detach().cpu().contiguous()
        for kind in _KINDS
        for name, tensor in getattr(checkpoint, kind).items()
    }
    if broken := _not_finite(tensors):
        raise ValueError(f"{broken} holds numbers that are not finite: the checkpoint before it stays in place")
    metadata = {
        "format": _FORMAT,
        "standing": json.dumps(asdict(checkpoint.standing)),
        "base_sha256": checkpoint.base_sha256,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    save_whole(partial, tensors, metadata)
    if path.exists():
        os.replace(path, previous_path(path))  # noqa: PTH105
    os.replace(partial, path)  # noqa: PTH105


def save_whole(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file down to the disk. Raises OSError, for what safetensors has an error of its own too."""
    try:
        save_file(dict(tensors), path, dict(metadata))
    except SafetensorError as fault:
        raise OSError(f"{path} cannot be written: {fault}") from fault
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def read_checkpoint(path: Path, base_sha256: str) -> Checkpoint:
    """Read what `write_checkpoint` wrote for the same base model. Raises ValueError that says what to do."""
    try:
        with safe_open(path, framework="pt") as stored:
            metadata = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as fault:
        raise _damaged(path, str(fault)) from fault
    if metadata.get("format") != _FORMAT:
        raise ValueError(f"{path} is no checkpoint of this version: give the run a folder of its own")
    if metadata.get("base_sha256") != base_sha256:
        raise ValueError(f"{path} belongs to another model file: give the run a folder of its own")
    if problem := _problem(tensors):
        raise _damaged(path, problem)
    try:
        standing = _standing(json.loads(metadata["standing"]))
    except (KeyError, TypeError, ValueError) as fault:
        raise _damaged(path, f"it does not say where the run stands: {fault}") from fault
    grouped = {kind: _of_kind(tensors, kind) for kind in _KINDS}
    return Checkpoint(standing, base_sha256, **grouped)


def read_latest(path: Path, base_sha256: str) -> Checkpoint:
    """The checkpoint at `present_path`. Raises ValueError when there is none, and as `read_checkpoint` does."""
    found = present_path(path)
    if found is None:
        raise ValueError(f"{path.parent} holds no checkpoint: let a run there reach its first one")
    return read_checkpoint(found, base_sha256)


def _standing(stored: Mapping[str, Any]) -> Standing:
    return Standing(int(stored["step"]), int(stored["gap"]), float(stored["seconds"]))


def _problem(tensors: Mapping[str, torch.Tensor]) -> str | None:
    """What is wrong with the tensors together, so that a run resumed from them cannot go astray."""
    layouts = [{name: tensor.shape for name, tensor in _of_kind(tensors, kind).items()} for kind in _KINDS]
    if not layouts[0] or any(layout != layouts[0] for layout in layouts) or len(tensors) != 4 * len(layouts[0]):
        return "its parts do not belong together"
    if any(tensor.dtype != torch.float32 for tensor in tensors.values()):
        return "its numbers are not float32"
    broken = _not_finite(tensors)
    return f"{broken} holds numbers that are not finite" if broken else None


def _of_kind(tensors: Mapping[str, torch.Tensor], kind: str) -> dict[str, torch.Tensor]:
    start = f"{kind}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}


def _not_finite(tensors: Mapping[str, torch.Tensor]) -> str | None:
    return next((name for name, tensor in tensors.items() if not bool(tensor.isfinite().all())), None)


def _damaged(path: Path, fault: str) -> ValueError:
    previous = previous_path(path)
    if path != previous and previous.exists():
        return ValueError(f"{path} is damaged ({fault}): go back with `mv {previous} {path}`")
    return ValueError(f"{path} is damaged ({fault}): remove it to start again")
