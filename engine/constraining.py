"""From what a request's texts must obey to the rules that denoising keeps.

`canvas_constraint` makes them for families that denoise whole canvases, `causal_rules` for causal ones. Owns what the
texts of `Constraints` mean; how a rule is kept is written beside each rule.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.diffusion.constraint import Constraint
from engine.diffusion.constraints import AllowedCharacters, Combined, Extent, Reviewed, Vocabulary
from engine.diffusion.constraints.causal import CausalRules, Check
from engine.diffusion.constraints.json_schema import schema_faults
from engine.diffusion.constraints.reviewed import Faults
from engine.diffusion.stopping import cut_at_stop_text
from engine.grammars import Span, error_spans, parser_for
from engine.protocol.errors import EngineError
from engine.protocol.messages import Constraints, Fill
from engine.python_syntax import bodies_between, python_error

_NEUTRAL = ("", "x", "pass", "0", '"x": 0')
"""What may stand in a hole that nobody filled: nothing, any name or statement, a value or a member of JSON."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The known text in front of what is denoised and behind it; `stop_text` ends the text where it is written."""

    before: str
    after: str
    stop_text: str = ""


def require_sound(constraints: Constraints) -> None:
    """Raise EngineError(bad_request) for limits below 0."""
    for name in ("max_lines", "max_characters"):
        if getattr(constraints, name) < 0:
            raise EngineError("bad_request", f"{name} is {getattr(constraints, name)}", "use 0 for any number")


def canvas_constraint(
    request: Fill, around: Surroundings, vocabulary: Callable[[], Vocabulary], *, is_last: bool = True
) -> Constraint | None:
    """What a canvas between `around` must obey; None where nothing is asked. Raises EngineError(bad_request).

    is_last: whether the document is whole with these holes filled; else it is only judged for what they hold.
    """
    wanted = request.constraints
    if wanted is None:
        return None
    require_sound(wanted)
    checks = _checks(request, wanted, is_last=is_last)
    rules: list[Constraint] = []
    if wanted.allowed:
        rules.append(AllowedCharacters(vocabulary(), vocabulary().writing_only(wanted.allowed)))
    if wanted.max_lines or wanted.max_characters:
        rules.append(Extent(vocabulary(), wanted.max_lines, wanted.max_characters))
    for check in checks:
        faults = _ended(check.faults, around)
        rules.append(Reviewed(vocabulary(), faults, check.wanted, around.before, around.after))
    return Combined(rules) if rules else None


def causal_rules(request: Fill, vocabulary: Callable[[], Vocabulary], *, is_last: bool = True) -> CausalRules | None:
    """What the gap of a one-hole request must obey; None where nothing is asked. Raises EngineError(bad_request).

    is_last: as in `canvas_constraint`.
    """
    wanted = request.constraints
    if wanted is None:
        return None
    require_sound(wanted)
    checks = _checks(request, wanted, is_last=is_last)
    if not (wanted.allowed or wanted.max_lines or wanted.max_characters or checks):
        return None
    return CausalRules(
        vocabulary(),
        allowed=vocabulary().writing_only(wanted.allowed) if wanted.allowed else None,
        max_lines=wanted.max_lines,
        max_characters=wanted.max_characters,
        checks=checks,
        before=request.prefix,
        after=request.suffix,
    )


def _checks(request: Fill, wanted: Constraints, *, is_last: bool) -> tuple[Check, ...]:
    checks = []
    if wanted.must_parse:
        checks.append(Check(syntax_faults(request), "parses"))
    if wanted.json_schema:
        faults = schema_faults(_schema(wanted.json_schema))
        checks.append(Check(faults if is_last else _inside(faults, request), "is JSON of the schema"))
    return tuple(checks)


def _schema(text: str) -> dict[str, Any]:
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise EngineError("bad_request", f"the JSON Schema is no JSON: {fault}", "mend the schema") from None
    if schema is False:
        raise EngineError("bad_request", "the JSON Schema false allows no document at all", "use {} to allow any")
    if schema is True:
        return {}
    if not isinstance(schema, dict):
        raise EngineError("bad_request", "the JSON Schema is no JSON object", "give an object such as {}, or true")
    return schema


def _inside(faults: Faults, request: Fill) -> Faults:
    """Only what is wrong within the gap: values that stand for holes still to come break what they will not break."""

    def inside(text: str) -> Sequence[Span]:
        start, end = len(request.prefix), len(text) - len(request.suffix)
        return [(first, last) for first, last in faults(text) if start <= first <= end or start < last <= end]

    return inside


def syntax_faults(request: Fill) -> Faults:
    """The spans where the text with the holes filled does not parse and would have, had nobody filled them.

    A text that was broken before may stay so: there are faults only where there are more of them than without the
    holes' texts. Python that its own parser takes unfilled must be taken filled, too. Raises EngineError(bad_request)
    for a language without a grammar.
    """
    parser = parser_for(request.language)
    is_python = request.language == "python"
    bodies = bodies_between(request.prefix, request.suffix) if is_python else ()
    unfilled = [_unfilled(request, neutral) for neutral in (*_NEUTRAL, *bodies)]
    least = min((error_spans(parser, text) for text in unfilled), key=len)
    is_sound_python = is_python and any(python_error(text) is None for text in unfilled)

    def faults(text: str) -> Sequence[Span]:
        spans = error_spans(parser, text)
        if len(spans) <= len(least):
            fault = python_error(text) if is_sound_python else None
            return () if fault is None else (fault,)
        return [span for span in spans if span not in least or span[1] > len(request.prefix)] or spans

    return faults


def _unfilled(request: Fill, neutral: str) -> str:
    islands: Iterable[str] = (hole.island for hole in request.further)
    return request.prefix + neutral + "".join(f"{island}{neutral}" for island in islands) + request.suffix


def _ended(faults: Faults, around: Surroundings) -> Faults:
    """Of a text that a stop text ends, only what stands in front of it."""
    if not around.stop_text:
        return faults

    def until(text: str) -> Sequence[Span]:
        written = text[len(around.before) :]
        ended = cut_at_stop_text(written, around.stop_text)
        return faults(text if ended is None else around.before + ended)

    return until
