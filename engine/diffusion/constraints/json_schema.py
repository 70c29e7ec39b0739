"""A gap in a JSON document that must follow a JSON Schema: `json_schema`.

Checked when the canvas is full, by the library jsonschema; the values at fault are denoised anew. A mask from the left,
as grammar engines for causal models compute it, has no meaning for a place whose left neighbours are still noise, and
it would not see the known text behind the gap, which is part of the document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from engine.diffusion.constraints.canvas_text import Span
from engine.diffusion.constraints.regex_growth import growth_of
from engine.diffusion.constraints.reviewed import Faults, Reviewed
from engine.diffusion.constraints.vocabulary import Vocabulary
from engine.protocol.errors import EngineError

_SPACE = re.compile(r"[ \t\n\r]*")
_DEEP = 16
"""Levels of a document below which it is the schema that has no end, where checking one against the other has none."""


def json_schema(
    vocabulary: Vocabulary, schema: dict[str, Any], before: str = "", after: str = "", *, tries: int = 3
) -> Reviewed:
    """The text from `before` to `after` must be one JSON document that follows `schema` (draft 2020-12 unless it says).

    Raises EngineError(bad_request) for a schema that is none, or that refers to another file: nothing is fetched.
    """
    return Reviewed(vocabulary, schema_faults(schema), "is JSON of the schema", before, after, tries)


def schema_faults(schema: dict[str, Any]) -> Faults:
    """The check alone: from a text to the spans that are not JSON, or not as the schema wants.

    Both this and the check raise EngineError(bad_request) for a schema that cannot be used.
    """
    # Imported here: a second of import time that only JSON gaps need to pay.
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as fault:
        raise _bad_schema(fault.message) from None
    except RecursionError:
        raise _bad_schema("it is nested too deeply") from None
    for pattern in _patterns(schema):
        _require_bounded(pattern)
    # An empty registry: the library's own default would fetch a schema named by its address.
    validator = kind(schema, registry=Registry())

    def faults(text: str) -> Sequence[Span]:
        try:
            document = json.loads(text, parse_constant=_no_constant)
        except json.JSONDecodeError as fault:
            return [(fault.pos, fault.pos + 1)]
        except (ValueError, RecursionError):
            return [(0, len(text))]
        try:
            paths = [tuple(error.absolute_path) for error in validator.iter_errors(document)]
        except (Unresolvable, re.error) as fault:
            raise _bad_schema(str(fault)) from None
        except RecursionError:
            if _levels(document) < _DEEP:
                raise _bad_schema("it refers to itself without end") from None
            return [(0, len(text))]
        return [locate(text, path) for path in paths]

    # Finds references that lead nowhere, or in a circle, before a model is asked.
    faults("null")
    return faults


def _patterns(schema: Any) -> Iterator[str]:
    """Every regular expression in a schema, and perhaps a text that only stands where one could."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(node.get("pattern"), str):
                yield node["pattern"]
            if isinstance(node.get("patternProperties"), dict):
                yield from node["patternProperties"]
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _require_bounded(pattern: str) -> None:
    """Refuse what could keep the engine's one thread busy without end. Raises EngineError(bad_request)."""
    try:
        growth = growth_of(pattern, search=True)
    except re.error:
        # Reported where it is used, as ever.
        return
    except (NotImplementedError, RecursionError, OverflowError) as fault:
        raise _bad_schema(f"the pattern {pattern[:80]!r} is too involved ({fault})") from None
    if growth == "exponential":
        raise _bad_schema(f"the pattern {pattern[:80]!r} can take exponential time: let no repetition hold another")


def _levels(document: Any) -> int:
    """How deeply values are nested; 1 for one that holds no others."""
    level, count = [document], 0
    while level:
        held = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list))
        level, count = [inner for values in held for inner in values], count + 1
    return count


def locate(text: str, path: Sequence[str | int]) -> Span:
    """Where the value at `path` stands in a valid JSON text; of a name given twice the last counts, as in reading."""
    decoder = json.JSONDecoder()
    start = _behind_space(text, 0)
    for part in path:
        start = _member(decoder, text, start, part)
    return start, decoder.raw_decode(text, start)[1]


def _member(decoder: json.JSONDecoder, text: str, start: int, wanted: str | int) -> int:
    """Where the member `wanted` of the object or array at `start` begins."""
    found = start
    at = _behind_space(text, start + 1)
    index = 0
    while text[at] not in "]}":
        name: str | int = index
        if text[start] == "{":
            name, at = decoder.raw_decode(text, at)
            at = _behind_space(text, _behind_space(text, at) + 1)
        if name == wanted:
            found = at
        at = _behind_space(text, decoder.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _behind_space(text, at + 1)
        index += 1
    return found


def _behind_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _bad_schema(reason: str) -> EngineError:
    return EngineError("bad_request", f"the JSON Schema cannot be used: {reason}", "mend the schema; use one document")
