"""What was measured so far, in a file of JSON lines that outlives a run: `Measurements`."""

from __future__ import annotations

import json
from pathlib import Path

from tests.bench.beside.pipe import Answer
from tests.bench.beside.table import Measurement
from tests.bench.beside.texts import Case


class Measurements:
    """Reads what a file holds and appends to it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._rows: dict[str, Measurement] = {}
        self.limits: Answer = {}
        self.facts: dict[str, list[Answer]] = {}
        for line in file.read_text(encoding="utf-8").split("\n") if file.exists() else ():
            try:
                self._take(json.loads(line))
            except json.JSONDecodeError:
                continue  # empty, or cut short when a run was ended

    @property
    def rows(self) -> list[Measurement]:
        """Every measurement, in the order they were made."""
        return list(self._rows.values())

    def missing_of(self, case: Case) -> list[int]:
        """Which of a case's requests, by number, were not measured."""
        return [number for number in range(len(case.requests)) if f"{case.key}/{number}" not in self._rows]

    def keep(self, one: Measurement) -> None:
        """Keep a measurement."""
        self._keep({"measured": one})

    def keep_check(self, one: Measurement, check: Answer) -> None:
        """Keep what was found of a measurement's text."""
        self._keep({"measured": one | {"check": check}})

    def keep_limits(self, limits: Answer) -> None:
        """Keep what the machine can do."""
        self._keep({"limits": limits})

    def keep_facts(self, facts: dict[str, Answer]) -> None:
        """Keep what the engines told of themselves at the end of a run."""
        self._keep({"facts": facts})

    def _keep(self, entry: Answer) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(entry) + "\n")
        self._take(entry)

    def _take(self, entry: Answer) -> None:
        if "measured" in entry:
            self._rows[entry["measured"]["key"]] = entry["measured"]
        self.limits = entry.get("limits", self.limits)
        for name, facts in entry.get("facts", {}).items():
            self.facts.setdefault(name, []).append(facts)
