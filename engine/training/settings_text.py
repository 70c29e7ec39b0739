"""Run settings from text: a stored JSON object and `name=value` words, both checked against the records' own fields."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

_Record = TypeVar("_Record")


def require(holds: bool, what: str) -> None:
    """Raise ValueError(what) unless it holds: how the records check the ranges of their own fields."""
    if not holds:
        raise ValueError(what)


def changed(record: _Record, stored: Mapping[str, Any], changes: Mapping[str, str]) -> _Record:
    """`record` with the values of `stored` (nested objects for nested records), then those of `changes`.

    changes: JSON values by dotted name, such as {"optimiser.learning_rate": "3e-4"}. Raises ValueError that names the
    key for an unknown name, a value of another kind or one out of its range.
    """
    result = record
    for name, value in stored.items():
        result = _with(result, name.split("."), value, name)
    for name, text in changes.items():
        try:
            value = json.loads(text)
        except json.JSONDecodeError as fault:
            raise ValueError(f"{name}: {text!r} is no JSON value") from fault
        result = _with(result, name.split("."), value, name)
    return result


def _with(record: Any, path: list[str], value: Any, name: str) -> Any:
    known = {field.name for field in fields(record)}
    if path[0] not in known:
        raise ValueError(f"{name}: there is no setting {path[0]!r}; there are {', '.join(sorted(known))}")
    present = getattr(record, path[0])
    if is_dataclass(present):
        if len(path) > 1:
            return replace(record, **{path[0]: _with(present, path[1:], value, name)})
        if not isinstance(value, Mapping):
            raise ValueError(f"{name} is a group of settings: give an object or name one of its settings")
        return replace(record, **{path[0]: _group(present, value, name)})
    if len(path) > 1:
        raise ValueError(f"{name}: {path[0]!r} is no group of settings")
    return _replaced(record, path[0], _converted(present, value, name), name)


def _group(present: Any, values: Mapping[str, Any], name: str) -> Any:
    for key, value in values.items():
        present = _with(present, key.split("."), value, f"{name}.{key}")
    return present


def _replaced(record: Any, field: str, value: Any, name: str) -> Any:
    try:
        return replace(record, **{field: value})
    except ValueError as fault:
        raise ValueError(f"{name}: {fault}") from fault


def _converted(present: Any, value: Any, name: str) -> Any:
    if isinstance(present, tuple) and isinstance(value, list):
        return tuple(_converted(present[0], item, name) for item in value)
    if isinstance(present, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(present) is not type(value):
        raise ValueError(f"{name}: {value!r} is no {'list' if isinstance(present, tuple) else type(present).__name__}")
    return value
