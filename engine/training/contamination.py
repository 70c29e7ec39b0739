"""Keeps a benchmark's problems out of the corpus by content: `Benchmark`.

Files that share a run of 13 code tokens with a problem, that define many of its functions, or that name it are
refused (the 13-gram rule of Brown et al. 2020, appendix C, on tokens without white space). Pure but for `load`.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

_TOKEN = re.compile(r"\w+|[^\w\s]")
_RUN, _BEGINNING = 13, 3
_FEWEST_WORDS, _FEWEST_DISTINCT = 5, 8
_MOST_NAMES = 2
_NAMED = re.compile(r"human[-_ ]?eval", re.IGNORECASE)
_FIELDS = ("prompt", "suffix", "canonical_solution")


@dataclass(frozen=True)
class Benchmark:
    """What must not be learned: token runs of the problems and the names of their functions."""

    runs: frozenset[tuple[str, ...]]
    names: frozenset[str]

    @cached_property
    def _beginnings(self) -> frozenset[tuple[str, ...]]:
        """The first tokens of all runs: most places of a file are ruled out by them alone."""
        return frozenset(run[:_BEGINNING] for run in self.runs)

    def found_in(self, text: str) -> str | None:
        """Why this text is contaminated; None when it is clean."""
        if not self.runs:
            return None
        if _NAMED.search(text):
            return "names the benchmark"
        if len(self.names.intersection(_defined(text))) > _MOST_NAMES:
            return "defines the benchmark's functions"
        return "shares code with the benchmark" if self._shares_a_run(_TOKEN.findall(text)) else None

    def _shares_a_run(self, tokens: list[str]) -> bool:
        beginnings = zip(*(tokens[start:] for start in range(_BEGINNING)), strict=False)
        places = (place for place, beginning in enumerate(beginnings) if beginning in self._beginnings)
        return any(tuple(tokens[place : place + _RUN]) in self.runs for place in places)


def benchmark_of(rows: Iterable[Mapping[str, Any]]) -> Benchmark:
    """From rows with `prompt`, `suffix`, `canonical_solution` and, where present, `entry_point`.

    Raises ValueError for a row without those texts.
    """
    runs: set[tuple[str, ...]] = set()
    names: set[str] = set()
    for number, row in enumerate(rows, start=1):
        if not all(isinstance(row.get(field), str) for field in _FIELDS):
            raise ValueError(f"row {number} lacks one of {', '.join(_FIELDS)}: is this a fill-in-the-middle benchmark?")
        text = row["prompt"] + row["canonical_solution"] + row["suffix"]
        runs.update(_runs(_TOKEN.findall(text)))
        if isinstance(name := row.get("entry_point"), str):
            names.add(name)
    return Benchmark(frozenset(runs), frozenset(names))


def load(path: Path) -> Benchmark:
    """Read JSON lines, packed by gzip or not. Raises ValueError that names the file for anything else."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            return benchmark_of([json.loads(line) for line in lines if line.strip()])
    except (ValueError, AttributeError, EOFError, zlib.error, gzip.BadGzipFile) as fault:
        raise ValueError(f"{path} holds no benchmark rows: {fault}") from fault


def _runs(tokens: list[str]) -> Iterator[tuple[str, ...]]:
    """Runs of 13 tokens that say something: rows of numbers and brackets are in every file."""
    for start in range(len(tokens) - _RUN + 1):
        run = tuple(tokens[start : start + _RUN])
        distinct = set(run)
        if len(distinct) >= _FEWEST_DISTINCT and sum(map(str.isidentifier, distinct)) >= _FEWEST_WORDS:
            yield run


def _defined(text: str) -> set[str]:
    return set(re.findall(r"\b(?:def|function|func|fn)\s+(\w+)", text))
