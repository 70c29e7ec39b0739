"""The record of a canvas from noise to text: frozen values, and their JSON. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

VERSION = 1

State = Literal["locked", "settled", "new", "open", "changing", "refused"]
"""locked: given. settled: decided in an earlier step. new: decided in this one. open: a guess that may still change.
changing: a guess that is another than a step ago. refused: a guess this step did not keep."""
STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True, slots=True)
class Token:
    """One place of the canvas in one step.

    text: what it writes; empty for noise, and for a token that ends inside a character: the one behind shows it. kind:
    `text`, `noise` (nothing is known as yet) or `end`. chance: probability of the token, None where nobody judged it.
    entropy: of that place, in nats. source: who guessed it. others: likely tokens in its place, (text, probability).
    """

    text: str
    state: State
    chance: float | None = None
    entropy: float | None = None
    source: str = ""
    others: tuple[tuple[str, float], ...] = ()
    kind: Literal["text", "noise", "end"] = "text"


@dataclass(frozen=True, slots=True)
class Step:
    """The canvas after one step. entropy: mean of the places the step judged, in nats, None where it is not known."""

    tokens: tuple[Token, ...]
    entropy: float | None = None

    def count(self, *states: State) -> int:
        """How many tokens are in one of the states."""
        return sum(token.state in states for token in self.tokens)


@dataclass(frozen=True, slots=True)
class GapTrace:
    """One gap. line: where it stands, from 1. before, after: text around it. result: what went into the file, None
    when nothing did; note: why. facts: what is worth telling of the job, (name, value)."""

    line: int
    before: str
    after: str
    steps: tuple[Step, ...]
    result: str | None
    note: str = ""
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Recording:
    """All gaps of a file. facts: of the model, (name, value)."""

    file: str
    facts: tuple[tuple[str, str], ...]
    gaps: tuple[GapTrace, ...]


def to_data(recording: Recording) -> dict[str, Any]:
    """The record as JSON values, compact: equal tokens are told once, and a step only from where it differs.

    `tokens` is a table of [text, state, chance, entropy, source, others, kind]; a step is `[kept, indices, entropy]`:
    the first `kept` tokens of the step before it, then those of the table.
    """
    table: dict[Token, int] = {}
    gaps = [_gap_data(gap, table) for gap in recording.gaps]
    return {
        "version": VERSION,
        "file": recording.file,
        "facts": [list(fact) for fact in recording.facts],
        "gaps": gaps,
        "tokens": [_token_data(token) for token in table],
    }


def from_data(data: Mapping[str, Any]) -> Recording:
    """What `to_data` made, read again; numbers come back rounded. Raises ValueError for another version."""
    if data.get("version") != VERSION:
        raise ValueError(f"a recording of version {data.get('version')!r}, not {VERSION}")
    table = [_token_of(values) for values in data["tokens"]]
    return Recording(data["file"], _pairs(data["facts"]), tuple(_gap_of(gap, table) for gap in data["gaps"]))


def _gap_data(gap: GapTrace, table: dict[Token, int]) -> dict[str, Any]:
    steps: list[list[Any]] = []
    previous: tuple[Token, ...] = ()
    for step in gap.steps:
        pairs = zip(previous, step.tokens, strict=False)
        kept = next((index for index, (old, new) in enumerate(pairs) if old != new), None)
        kept = min(len(previous), len(step.tokens)) if kept is None else kept
        indices = [table.setdefault(token, len(table)) for token in step.tokens[kept:]]
        steps.append([kept, indices, _rounded(step.entropy)])
        previous = step.tokens
    return {
        "line": gap.line,
        "before": gap.before,
        "after": gap.after,
        "result": gap.result,
        "note": gap.note,
        "facts": [list(fact) for fact in gap.facts],
        "steps": steps,
    }


def _gap_of(data: Mapping[str, Any], table: list[Token]) -> GapTrace:
    steps: list[Step] = []
    previous: tuple[Token, ...] = ()
    for kept, indices, entropy in data["steps"]:
        previous = (*previous[:kept], *(table[index] for index in indices))
        steps.append(Step(previous, entropy))
    return GapTrace(
        line=data["line"],
        before=data["before"],
        after=data["after"],
        steps=tuple(steps),
        result=data["result"],
        note=data["note"],
        facts=_pairs(data["facts"]),
    )


def _token_data(token: Token) -> list[Any]:
    others = [[text, _rounded(chance)] for text, chance in token.others]
    chance, entropy = _rounded(token.chance), _rounded(token.entropy)
    return [token.text, STATES.index(token.state), chance, entropy, token.source, others, token.kind]


def _token_of(values: list[Any]) -> Token:
    text, state, chance, entropy, source, others, kind = values
    return Token(text, STATES[state], chance, entropy, source, tuple((text, share) for text, share in others), kind)


def _pairs(facts: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in facts)


def _rounded(number: float | None) -> float | None:
    """JSON has no word for what is not a number: it is not known."""
    return round(number, 4) if number is not None and math.isfinite(number) else None
