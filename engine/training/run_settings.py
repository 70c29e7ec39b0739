"""What makes a training run what it is: `RunSettings`, and how they are read from a file and from words.

A run keeps its settings beside its checkpoint, and is only ever resumed with the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.training.batches import ContextChoice
from engine.training.canvas_rows import BlockChoice
from engine.training.objective import LossWeights
from engine.training.optimiser import OptimiserChoice
from engine.training.settings_text import changed, require


@dataclass(frozen=True, slots=True)
class RunSettings:
    """gaps_per_step: gaps whose gradients are summed; frequent: ids in the output layer.

    Raises ValueError for a number that is not positive.
    """

    seed: int = 1
    gaps_per_step: int = 8
    frequent: int = 24576
    blocks: BlockChoice = field(default_factory=BlockChoice)
    contexts: ContextChoice = field(default_factory=ContextChoice)
    weights: LossWeights = field(default_factory=LossWeights)
    optimiser: OptimiserChoice = field(default_factory=OptimiserChoice)

    def __post_init__(self) -> None:
        require(self.gaps_per_step > 0, "gaps_per_step must be at least 1")
        require(self.frequent > 0, "frequent must be at least 1")

    def to_json(self) -> str:
        """The text of a run's settings.json, which `read_settings` reads."""
        return json.dumps(asdict(self), indent=1, sort_keys=True)


def read_settings(path: Path | None, changes: Mapping[str, str]) -> RunSettings:
    """Settings from a JSON file (see `RunSettings.to_json`; what it leaves out is as by default), then `changes`.

    changes: JSON values by name or `section.name`. Raises ValueError for a file that is no JSON object, a name there
    is not, a value of another type or out of its range; OSError from the disk.
    """
    stored = _stored(path) if path else {}
    try:
        settings = changed(RunSettings(), stored, {})
    except ValueError as fault:
        raise ValueError(f"{path}: {fault}") from fault
    return changed(settings, {}, changes)


def _stored(path: Path) -> dict[str, Any]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise ValueError(f"{path} is no JSON ({fault}): write it as a run's settings.json is") from fault
    if not isinstance(stored, dict):
        raise ValueError(f"{path} holds no JSON object: write it as a run's settings.json is")
    return stored
