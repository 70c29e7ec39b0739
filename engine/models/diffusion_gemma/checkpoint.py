"""Which tensors a checkpoint's safetensors files hold, and their names in the network: nothing may be left over.

Reads headers; values are read one tensor at a time. The shared stack lies in the files once, under the decoder as
published, or under the encoder; the image tower is left out, as an editor shows no images.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from engine.models.checkpoint_json import damaged
from engine.models.diffusion_gemma.settings import unsupported
from engine.protocol.errors import EngineError

_ENCODER, _DECODER = "model.encoder.language_model.", "model.decoder."
_IMAGES = ("model.encoder.vision_tower.", "model.encoder.embed_vision.")
_HEAD, _EMBEDDING = "lm_head.weight", "model.decoder.embed_tokens.weight"
# A scalar of each layer is a buffer, which the encoder and the decoder do not share.
_OWN = "layer_scalar"
_DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
_NAMED = 3


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor of a file. name: in the file."""

    file: Path
    name: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def values(self) -> int:
        """How many numbers it holds."""
        return prod(self.shape)

    def read(self) -> torch.Tensor:
        """The values, on the CPU. Raises EngineError(model_corrupt)."""
        try:
            with safe_open(self.file, framework="pt", device="cpu") as stored:
                found: torch.Tensor = stored.get_tensor(self.name)
                return found
        except (SafetensorError, OSError) as fault:
            raise damaged(self.file, f"{self.name} cannot be read: {fault}") from fault


def read_index(folder: Path) -> dict[str, StoredTensor]:
    """The text model's tensors by the network's name.

    Raises EngineError: model_missing, model_corrupt, model_unsupported.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise EngineError(
            "model_missing",
            f"{folder} holds no safetensors files",
            "name the folder of a checkpoint with safetensors weights; others are never read",
        )
    stored: dict[str, StoredTensor] = {}
    for tensor in (found for file in files for found in _tensors_of(file)):
        if tensor.name in stored:
            raise damaged(tensor.file, f"{tensor.name} is there twice")
        stored[tensor.name] = tensor
    text = [name for name in stored if not name.startswith(_IMAGES)]
    # Of copies the decoder's counts, as in transformers; the head's is the last choice.
    text.sort(key=lambda name: (network_name(name) == name, name != _HEAD))
    return {network_name(name): stored[name] for name in text}


def network_name(stored: str) -> str:
    """Under which name the network holds a stored tensor: shared ones are the decoder's, the head's the embedding's."""
    if stored == _HEAD:
        return _EMBEDDING
    if stored.startswith(_ENCODER) and not stored.endswith(_OWN):
        return _DECODER + stored.removeprefix(_ENCODER)
    return stored


def require_all(folder: Path, index: Mapping[str, StoredTensor], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Raise EngineError(model_corrupt) unless `index` holds just the `wanted` names and shapes."""
    if missing := sorted(wanted.keys() - index.keys()):
        raise damaged(folder, f"{len(missing)} tensors are missing, {_some(missing)}")
    if left_over := sorted(index.keys() - wanted.keys()):
        raise damaged(folder, f"{len(left_over)} tensors belong to no part of the model, {_some(left_over)}")
    wrong = [name for name, shape in sorted(wanted.items()) if index[name].shape != shape]
    if wrong:
        found, shape = index[wrong[0]].shape, wanted[wrong[0]]
        raise damaged(folder, f"{wrong[0]} has the shape {list(found)}, and config.json makes it {list(shape)}")


def _tensors_of(file: Path) -> list[StoredTensor]:
    try:
        with safe_open(file, framework="pt", device="cpu") as stored:
            return [_described(file, name, stored.get_slice(name)) for name in stored.keys()]  # noqa: SIM118 -- no mapping
    except (SafetensorError, OSError) as fault:
        raise damaged(file, str(fault)) from fault


def _described(file: Path, name: str, found: Any) -> StoredTensor:
    kind = found.get_dtype()
    if kind not in _DTYPES:
        raise unsupported(f"{file} holds {name} as {kind}", "use a checkpoint in bf16, fp16 or fp32")
    return StoredTensor(file, name, tuple(found.get_shape()), _DTYPES[kind])


def _some(names: Iterable[str]) -> str:
    first = list(names)[: _NAMED + 1]
    return ", ".join(first[:_NAMED]) + (" …" if len(first) > _NAMED else "")
