"""From an `EngineConfig` to a serving core: find the model, load it, measure the machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import torch

from engine.canvas_serving.startup import Wanted, load_canvas_core
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.job import Core
from engine.machine_costs import MachineCosts
from engine.models.adapter import require_digest
from engine.models.base import Denoiser
from engine.models.detection import FAMILIES, family_and_layout
from engine.models.loading import load_denoiser, packaged_weights
from engine.protocol.errors import EngineError
from engine.runtime.heap import map_large_blocks, trim_heap
from engine.store import Entry, Located, Store

WINDOW_TOKENS = 4096
Progress = Callable[[str, float], None]


def load_core(config: EngineConfig, progress: Progress) -> Core:
    """Load the configured model, named or by its path.

    Raises EngineError: bad_request, model_missing, model_corrupt, model_unsupported, no_space, out_of_memory.
    """
    require_device(config.device, torch.cuda.device_count() if torch.cuda.is_available() else 0)
    located = Store.of_user(os.environ).locate(config.model)
    family, layout = family_and_layout(located.entry.family if config.family == "auto" else config.family)
    threads = config.threads or os.cpu_count() or 1
    require_family(family, located)
    if family == "hybrid":
        return _hybrid(config, located, threads, progress)
    wanted = Wanted(
        folder=located.path,
        name=located.entry.name,
        called=f"{located.entry.repository} {located.entry.name} {located.path.name}",
        device="cpu" if config.device == "auto" else config.device,
        precision=config.precision,
        window_tokens=config.window_tokens or WINDOW_TOKENS,
        threads=threads,
        layout=layout,
        hole_order=config.hole_order,
    )
    return load_canvas_core(family, wanted, progress)


def require_family(family: str, located: Located) -> None:
    """Raise EngineError(model_unsupported) unless this version has `family` and the weights are in its form."""
    if family not in FAMILIES:
        raise EngineError(
            "model_unsupported",
            f"this version of Lacuna has no family {family!r}, which {located.entry.name} was to be loaded as",
            f"use one of {', '.join(FAMILIES)}, or leave the family to be found",
        )
    wants_file = family == "hybrid"
    if located.path.is_file() != wants_file:
        form = "one GGUF file" if wants_file else "a folder of safetensors files with its config.json"
        raise EngineError(
            "model_unsupported",
            f"the family {family} is loaded from {form}, and {located.path.name} is a "
            f"{'folder' if wants_file else 'file'}",
            "leave the family to be found",
        )


def _hybrid(config: EngineConfig, located: Located, threads: int, progress: Progress) -> EngineCore:
    map_large_blocks()
    model = load_denoiser(
        located.path,
        located.cache,
        name=located.entry.name,
        precision=_precision(config),
        device="cpu" if config.device == "auto" else config.device,
        adapter=_adapter(config, located.entry),
        threads=threads,
        window_tokens=config.window_tokens or WINDOW_TOKENS,
        cache_bytes=config.cache_mib * 2**20,
        progress=progress,
    )
    trim_heap()
    costs = _costs(model, located.cache, threads, progress)
    share, order = config.diffusion_share, config.hole_order
    return EngineCore(model, costs=costs, threads=threads, hole_order=order, diffusion_share=share)


def require_device(device: str, gpus: int) -> None:
    """Raise EngineError(model_unsupported) if `device` is a GPU that is not among the `gpus` torch can use."""
    kind, _, index = device.partition(":")
    if kind != "cuda" or int(index or 0) < gpus:
        return
    if gpus == 0:
        raise EngineError(
            "model_unsupported",
            f"the device {device} was asked for, and torch finds no CUDA GPU here",
            "set the device to cpu, or install a CUDA build of torch and the GPU's driver",
        )
    raise EngineError(
        "model_unsupported",
        f"the device {device} was asked for, and there {'is' if gpus == 1 else 'are'} only {gpus} GPU"
        f"{'' if gpus == 1 else 's'} here",
        f"use one of cuda:0 to cuda:{gpus - 1}" if gpus > 1 else "use cuda:0",
    )


def _costs(model: Denoiser, folder: Path, threads: int, progress: Progress) -> MachineCosts:
    progress("measure", 0.0)
    return MachineCosts.at_start(model, folder / f"costs-{model.facts.precision}.json", threads, perf_counter)


def _precision(config: EngineConfig) -> str:
    if config.precision != "auto":
        return config.precision
    return "bf16" if config.device.startswith("cuda") else "int8"


def _adapter(config: EngineConfig, entry: Entry) -> Path | None:
    """The patch that ships for this model, if any; that both files are those it names is checked on loading."""
    if not config.adapter or entry.adapter is None or entry.adapter.sha256 is None:
        return None
    path = packaged_weights() / entry.adapter.name
    require_digest(path, entry.adapter.sha256)
    return path
