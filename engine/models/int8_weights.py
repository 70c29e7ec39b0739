"""From a converted folder to `HybridWeights` on the int8 path, reading the weights where they are mapped.

Owns which file holds which tensor of which layer; the folder's layout is `conversion`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import torch

from engine.models.adapter import Adapter
from engine.models.conversion import DOWN, HEAD, OUTER, UP, folded_name, layer_name
from engine.models.hybrid import HybridWeights
from engine.models.network import LayerWeights, Stack
from engine.models.shape import PARTS, Qwen2Shape
from engine.models.weight_files import read_weights
from engine.runtime.embedding import Embedding, FloatEmbedding, PackedEmbedding
from engine.runtime.linear import Linear, LowRankLinear, int8_linears, packed_linear
from engine.runtime.packed import find_kernel
from engine.runtime.packed_matrix import PackedMatrix

_File = Mapping[str, torch.Tensor]
_Sized = tuple[PackedMatrix, int]
"""A matrix and its number of inputs."""


def load_int8_weights(
    out: Path, shape: Qwen2Shape, adapter: Adapter | None, progress: Callable[[float], None]
) -> HybridWeights:
    """The weights in the converted folder `out`, with the adapter's where there is one.

    progress: told the fraction that is done. Raises SafetensorError, KeyError, OSError or ValueError for files that are
    not as they were written.
    """
    names = [layer_name(index) for index in range(shape.layers)]
    plain = [read_weights(out / name) for name in names]
    folded = [read_weights(out / folded_name(adapter) / name) for name in names] if adapter else []
    outer, head = read_weights(out / OUTER), _matrix(read_weights(out / HEAD), "head")
    needed = [{"head": (head, shape.hidden)}, *(_matrices(file, shape) for file in (*plain, *folded))]
    made = _linears([matrix for group in needed for matrix in group.values()], progress)
    (outermost, *layers) = [{name: next(made) for name in group} for group in needed]
    adapted = [_patched(*pair) for pair in zip(layers, layers[shape.layers :], strict=False)]
    return HybridWeights(
        shape=shape,
        embedding=_embedding(outer, head, shape.hidden),
        plain=_stack(plain, layers[: shape.layers], outer),
        head=outermost["head"],
        adapted=_stack(plain, adapted, outer) if adapter else None,
        mask_embedding=adapter.mask_embedding if adapter else None,
    )


def _matrices(file: _File, shape: Qwen2Shape) -> dict[str, _Sized]:
    """A layer's matrices by name: a part, or the two factors of its patch where that is not folded in."""
    found: dict[str, _Sized] = {}
    for part in PARTS:
        inputs = shape.part_size(part)[1]
        if f"{part}.weight" in file:
            found[part] = (_matrix(file, part), inputs)
        else:
            down = _matrix(file, part + DOWN)
            found[part + DOWN] = (down, inputs)
            found[part + UP] = (_matrix(file, part + UP), down.scale.shape[0])
    return found


def _linears(matrices: Sequence[_Sized], progress: Callable[[float], None]) -> Iterator[Linear]:
    """A layer for each matrix; without the kernel that reads them as they are, each is packed anew for torch's."""
    if find_kernel() is None:
        unpacked = [partial(matrix.unpacked, inputs) for matrix, inputs in matrices]
        yield from int8_linears(unpacked, packed=lambda count: progress(count / len(matrices)))
        return
    for index, (matrix, inputs) in enumerate(matrices):
        matrix.touch()
        yield packed_linear(matrix.weight, matrix.scale, columns=inputs, correction=matrix.correction)
        progress((index + 1) / len(matrices))


def _patched(plain: Mapping[str, Linear], own: Mapping[str, Linear]) -> dict[str, Linear]:
    """The parts of an adapted layer: its own matrix, or the plain one with a patch beside it."""
    return {
        part: own[part] if part in own else LowRankLinear(plain[part], own[part + DOWN], own[part + UP])
        for part in PARTS
    }


def _stack(files: Sequence[_File], layers: Sequence[Mapping[str, Linear]], outer: _File) -> Stack:
    built = (
        LayerWeights(file["attention_norm"], file["mlp_norm"], file["qkv_bias"], **layer)
        for file, layer in zip(files, layers, strict=True)
    )
    return Stack(tuple(built), outer["final_norm"])


def _embedding(outer: _File, head: PackedMatrix, hidden: int) -> Embedding:
    return FloatEmbedding(outer["embedding"]) if "embedding" in outer else PackedEmbedding(head, hidden)


def _matrix(file: _File, name: str) -> PackedMatrix:
    return PackedMatrix(*(file[f"{name}.{piece}"] for piece in ("weight", "scale", "correction")))
