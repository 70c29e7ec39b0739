"""From a checkpoint's folder to a `MaskedModel`: owns the order of things. Nothing in the folder is ever executed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from engine.diffusion.length import LengthCalibration
from engine.models import memory
from engine.models.canvas_model import CanvasFacts
from engine.models.checkpoint_json import damaged, read_object
from engine.models.masked.config import Architecture, architecture_of
from engine.models.masked.families import Layout, detect, layout_named
from engine.models.masked.model import MaskedModel
from engine.models.masked.vocabulary import (
    Roles,
    Vocabulary,
    forbidden_ids,
    read_vocabulary,
    require_rows,
    roles_of,
)
from engine.models.masked.weights import STOCK_NAMES, load_network, plain_name
from engine.protocol.errors import EngineError

CONFIG = "config.json"
CALIBRATION = "length_calibration.json"
"""What `LengthCalibration.save` wrote of a model, beside its weights."""
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_FULL_ROWS = 2
"""Rows of a cache, each as long as the window, that are counted as memory: what a usual gap fills."""
_PLACES = 256
"""Places of a canvas whose work is counted."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A loaded checkpoint: the model and what prompts need to know of it."""

    model: MaskedModel
    layout: Layout
    roles: Roles


def load_masked(
    folder: Path,
    *,
    layout: str | Layout = "",
    name: str = "",
    device: str = "cpu",
    precision: str = "fp32",
    window_tokens: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Masked:
    """Load a published checkpoint.

    layout: one of `families.LAYOUTS`, or its name; found out by itself when empty, from files and `name` (else the
        folder's).
    precision: one of fp32, bf16 and fp16, or "auto": bf16 on a GPU, on a CPU fp32 where that fits and else bf16, which
        is slower there. window_tokens: a smaller window than the checkpoint's own, 0 for that.

    Raises EngineError: model_missing, model_corrupt, model_unsupported (an unknown layout, device or precision),
    out_of_memory.
    """
    _require_runnable(precision, device)
    config = read_object(folder / CONFIG)
    vocabulary = read_vocabulary(folder)
    if isinstance(layout, str):
        layout = layout_named(layout) if layout else _detected(folder, config, vocabulary, name)
    chosen = layout
    architecture = architecture_of(config, chosen)
    if not vocabulary.says_split and architecture.stock == "llama":
        raise EngineError(
            "model_unsupported",
            f"{folder} has no tokenizer.json, and how a {chosen.name} checkpoint cuts its text is written nowhere else",
            "use the checkpoint with its tokenizer.json",
        )
    require_rows(vocabulary, architecture.vocab, folder)
    roles = roles_of(chosen, vocabulary, config, architecture.vocab)
    sizes = estimates(memory.values_in(folder), architecture, _window(architecture, chosen, window_tokens))
    free, shown = memory.free_bytes(device), name or folder.name
    precision = memory.fitting_precision(shown, _wanted(precision, device), sizes, free, device)
    network = load_network(
        folder,
        architecture,
        dtype=_DTYPES[precision],
        device=device,
        stock_name=STOCK_NAMES.get(chosen.name, plain_name),
        progress=progress,
    )
    facts = facts_of(
        shown,
        chosen,
        architecture,
        roles,
        forbidden_ids(vocabulary, roles, architecture.vocab).to(device),
        precision=precision,
        window_tokens=window_tokens,
        calibration=_calibration(folder),
    )
    model = MaskedModel(network, chosen, vocabulary.tokenizer, facts, start_id=roles.start)
    return Masked(model, chosen, roles)


def facts_of(
    name: str,
    layout: Layout,
    architecture: Architecture,
    roles: Roles,
    forbidden: torch.Tensor,
    *,
    precision: str,
    window_tokens: int = 0,
    calibration: LengthCalibration | None = None,
) -> CanvasFacts:
    """What the loop needs to know of a checkpoint of a layout."""
    return CanvasFacts(
        name=name,
        family="masked",
        device=str(forbidden.device),
        precision=precision,
        vocab_size=architecture.vocab,
        window_tokens=_window(architecture, layout, window_tokens),
        noise="mask",
        mask_id=roles.mask,
        end_ids=frozenset(roles.ends),
        forbidden=forbidden,
        right_context=layout.block == 0,
        expand_id=roles.expand,
        delete_id=roles.delete,
        block=layout.block,
        trained_steps=layout.trained_steps,
        exact_cache=layout.block > 0,
        calibration=calibration or LengthCalibration(),
    )


def estimates(values: int, architecture: Architecture, window: int) -> dict[str, memory.MemoryEstimate]:
    """What a checkpoint of so many numbers takes in each precision."""
    row = 2 * architecture.layers * architecture.kv_heads * architecture.head_dim * window
    work = memory.canvas_work(_PLACES, architecture.vocab)
    return {
        precision: memory.MemoryEstimate(values * size, _FULL_ROWS * row * size, work)
        for precision, size in memory.BYTES_PER_VALUE.items()
    }


def _require_runnable(precision: str, device: str) -> None:
    if precision not in {*_DTYPES, "auto"} or (device != "cpu" and not torch.cuda.is_available()):
        raise EngineError(
            "model_unsupported",
            f"masked models cannot run in {precision!r} on {device!r} here",
            f"use one of {', '.join(_DTYPES)} on the CPU, or on a CUDA device that torch can see",
        )


def _wanted(precision: str, device: str) -> list[str]:
    if precision != "auto":
        return [precision]
    return ["bf16"] if device.startswith("cuda") else ["fp32", "bf16"]


def _window(architecture: Architecture, layout: Layout, asked: int) -> int:
    return min(limit for limit in (architecture.window, layout.window, asked) if limit > 0)


def _calibration(folder: Path) -> LengthCalibration | None:
    file = folder / CALIBRATION
    if not file.is_file():
        return None
    try:
        return LengthCalibration.load(file)
    except (OSError, ValueError) as fault:
        raise damaged(file, str(fault)) from fault


def _detected(folder: Path, config: dict[str, Any], vocabulary: Vocabulary, name: str) -> Layout:
    found = detect(config, vocabulary.special_texts, name or folder.name)
    if found is None:
        raise EngineError(
            "model_unsupported",
            f"{folder} holds a {config.get('model_type', 'nameless')!r}, which is no known masked-diffusion family",
            "name its layout, or use a checkpoint of a family that `lacuna models list` shows",
        )
    return found
