"""Everything a training or evaluation command needs, put together from files: `Laboratory`.

Owns the order of loading; each part is its own file's. Loads the base model once, as the trainer sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

import torch

from engine.models.adapter import load_adapter
from engine.models.base import SpecialIds
from engine.models.conversion import special_ids
from engine.models.digest import sha256_of_file
from engine.models.gguf_file import GgufFile
from engine.training.batches import ContextChoice, GapSequence, PromptOrder, TrainingGap, training_gap
from engine.training.canvas_rows import BlockChoice
from engine.training.checkpoint import Checkpoint, present_path, read_latest
from engine.training.differentiable import FrozenModel, load_frozen
from engine.training.frequency import frequent_ids, require_known
from engine.training.frozen_precision import fastest_on_cpu
from engine.training.low_rank import LowRankTerms, fresh_parameters
from engine.training.objective import ReducedHead
from engine.training.run import TrainingRun
from engine.training.run_folder import CHECKPOINT, keep_settings, require_same_settings
from engine.training.run_settings import RunSettings
from engine.training.shards import Shard

HELD_OUT = "held_out.safetensors"
_WINDOW = 4096
_EVALUATION_SEED = 7


@dataclass(frozen=True)
class Laboratory:
    """model_file: the base model's GGUF. shards: a folder with `train-*.safetensors` and `held_out.safetensors`.

    precision of the frozen weights: "packed" and "int8" (CPU only), "fp32", "bf16"; "" for bf16 on a GPU, and for the
    fastest on a CPU, which is measured. Raises ValueError for a device torch does not have, or a precision the device
    cannot do.
    """

    model_file: Path
    shards: Path
    precision: str = ""
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_device(self.device)
        if self.precision == "int8" and self._on_gpu:
            raise ValueError(f"int8 is for the CPU: use bf16 or fp32 on {self.device}")

    @property
    def _on_gpu(self) -> bool:
        return torch.device(self.device).type != "cpu"

    @cached_property
    def chosen_precision(self) -> str:
        return self.precision or ("bf16" if self._on_gpu else fastest_on_cpu())

    @cached_property
    def base_sha256(self) -> str:
        return sha256_of_file(self.model_file)

    @cached_property
    def model(self) -> FrozenModel:
        """Raises EngineError for a file that is not there, damaged or of another family."""
        return load_frozen(self._file, precision=self.chosen_precision, window=_WINDOW, device=self.device)

    @cached_property
    def special(self) -> SpecialIds:
        return special_ids(self._file.vocabulary(), self.model_file)

    @property
    def end(self) -> int:
        """The id that ends a gap."""
        return min(self.special.end)

    @cached_property
    def training_shards(self) -> tuple[Shard, ...]:
        """Raises FileNotFoundError when the folder holds none, ValueError for a damaged one."""
        paths = sorted(self.shards.glob("train-*.safetensors"))
        if not paths:
            raise FileNotFoundError(
                f"{self.shards} holds no train-*.safetensors: build them with `python -m engine.training shards`"
            )
        return tuple(Shard(path) for path in paths)

    def held_out(self, limit: int, order: PromptOrder | None = None) -> list[TrainingGap]:
        """The first `limit` held-out gaps, always the same; in one order of the prompt, or mixed as in training."""
        shard = Shard(self.shards / HELD_OUT)
        for index in range(min(limit, len(shard))):
            require_known(shard[index], self._file.shape().vocab)
        share = {"prefix_first": 0.0, "suffix_first": 1.0, None: ContextChoice().suffix_first}[order]
        blocks = BlockChoice(widths=(8,), revealed_share=0.0, island_share=0.0)
        contexts = ContextChoice(suffix_first=share)
        return [
            training_gap(shard[index], self.special, self.end, _dice(index), blocks, contexts)
            for index in range(min(limit, len(shard)))
        ]

    def head(self, frequent: int) -> ReducedHead:
        """The output layer over the ids the shards use most."""
        ids = frequent_ids(self.training_shards, frequent, self.special.end, self.model.shape.vocab)
        return ReducedHead(self.model, ids.to(self.device), self.chosen_precision)

    def fresh(self, rank: int, seed: int) -> LowRankTerms:
        """Terms that change nothing yet; masks start at the mean of all embeddings."""
        generator = torch.Generator().manual_seed(seed)
        mean = self.model.embedding.mean(0).cpu()
        return self._terms(fresh_parameters(self.model.shape, rank, mean, generator))

    def adapter(self, path: Path) -> LowRankTerms:
        """The terms of an adapter file, checked by digest. Raises EngineError(model_missing, model_corrupt)."""
        return self._terms(load_adapter(path, self.model.shape, self.base_sha256).tensors)

    def checkpoint(self, folder: Path) -> Checkpoint:
        """A run's last whole checkpoint. Raises ValueError when there is none of this model."""
        return read_latest(folder / CHECKPOINT, self.base_sha256)

    def averaged(self, folder: Path) -> LowRankTerms:
        """The averaged terms of a run's checkpoint. Raises ValueError when there is none of this model."""
        return self._terms(self.checkpoint(folder).average)

    def run(
        self, folder: Path, settings: RunSettings, held_out: int, *, initial: Path | None, rank: int, workers: int = 1
    ) -> TrainingRun:
        """The run in `folder`, which the caller holds, new or resumed; `held_out` gaps are scored each time,
        `workers` trained on at once.

        A new one starts from the adapter file `initial`, or from terms of `rank` that change nothing. Raises
        ValueError when the folder holds another run, and what the other methods raise.
        """
        require_same_settings(folder, settings)
        checkpoint = folder / CHECKPOINT
        reached = read_latest(checkpoint, self.base_sha256) if present_path(checkpoint) else None
        gaps = GapSequence(
            self.training_shards,
            self.special,
            self.end,
            seed=settings.seed,
            blocks=settings.blocks,
            contexts=settings.contexts,
        )
        if reached is not None:
            terms = self._terms(reached.parameters)
        else:
            terms = self.adapter(initial) if initial else self.fresh(rank, settings.seed)
        scored = self.held_out(held_out)
        head = self.head(settings.frequent)
        keep_settings(folder, settings)
        return TrainingRun(
            folder,
            self.model,
            self.base_sha256,
            terms,
            gaps,
            scored,
            head,
            settings,
            reached=reached,
            workers=workers,
        )

    @cached_property
    def _file(self) -> GgufFile:
        return GgufFile(self.model_file)

    def _terms(self, parameters: Mapping[str, torch.Tensor]) -> LowRankTerms:
        return LowRankTerms(self.model.shape, {name: tensor.to(self.device) for name, tensor in parameters.items()})


def require_device(name: str) -> None:
    """Raise ValueError unless torch can compute on the device of this name."""
    try:
        device = torch.device(name)
    except RuntimeError as fault:
        raise ValueError(f"{name!r} is no device: use cpu, cuda or cuda:N") from fault
    if device.type not in {"cpu", "cuda"}:
        raise ValueError(f"training runs on cpu and cuda, not on {name}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"torch sees no {name} on this machine: use cpu, or install a CUDA build of torch")


def _dice(index: int) -> Random:
    """A held-out gap's own, so that it is cut alike in every evaluation."""
    return Random(f"{_EVALUATION_SEED}:{index}")  # noqa: S311
