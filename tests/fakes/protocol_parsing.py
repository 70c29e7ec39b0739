"""Steps and setups of protocol cases from TOML values, strictly.

An unknown key, or a value of the wrong type, is an error: a case must not be able to check less than it says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints

from tests.fakes.protocol_steps import STEPS, Repeat, Step, Together, Turn, Wanted


def parse_turn(entry: Mapping[str, Any]) -> Turn:
    """The step a TOML table says. Raises ValueError for a word or key that is not one."""
    rest = dict(entry)
    editor = rest.pop("editor", 0)
    return Turn(_step(rest), editor)


def _step(rest: dict[str, Any]) -> Step:
    name = rest.pop("do", None)
    if name not in STEPS:
        raise ValueError(f"{name!r} is no step; there are {', '.join(sorted(STEPS))}")
    kind = STEPS[name]
    names = {field.name for field in dataclasses.fields(kind)}
    if "wanted" in names:
        wanted = {field.name for field in dataclasses.fields(Wanted)}
        rest["wanted"] = typed(Wanted, {key: rest.pop(key) for key in list(rest) if key in wanted})
    if kind is Together:
        rest["steps"] = tuple(parse_turn(step).step for step in rest["steps"])
    found: Step = typed(kind, rest)
    if isinstance(found, Repeat):
        round_of(found, 0)
    return found


def round_of(repeat: Repeat, number: int) -> tuple[Turn, ...]:
    """The steps of one round. Raises ValueError as `parse_turn` does."""
    return tuple(parse_turn(_numbered(step, number)) for step in repeat.steps)


def _numbered(node: Any, number: int) -> Any:
    if isinstance(node, Mapping):
        return {key: _numbered(value, number) for key, value in node.items()}
    if isinstance(node, list):
        return [_numbered(value, number) for value in node]
    return node.replace("#", str(number)) if isinstance(node, str) else node


def typed(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """An instance of a dataclass from TOML values, lists as tuples. Raises ValueError for what does not fit."""
    hints = get_type_hints(kind)
    made = {}
    for key, value in values.items():
        if key not in hints:
            raise ValueError(f"{kind.__name__} has no {key!r}; it has {', '.join(hints)}")
        frozen = _frozen(value, hints[key])
        if not _fits(frozen, hints[key]):
            raise ValueError(f"{kind.__name__}.{key} cannot be {value!r}")
        made[key] = frozen
    return kind(**made)


def _frozen(value: Any, hint: Any) -> Any:
    """Lists as tuples, as deep as the hint says; raw JSON stays as it is."""
    tuples = [option for option in (hint, *get_args(hint)) if get_origin(option) is tuple]
    if isinstance(value, list) and tuples:
        return tuple(_frozen(item, get_args(tuples[0])[0]) for item in value)
    return value


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any or isinstance(hint, str):
        return True
    options = get_args(hint) if get_origin(hint) not in (tuple, dict, None) else (hint,)
    kinds = tuple(get_origin(option) or option for option in options)
    if isinstance(value, bool):
        return bool in kinds
    if isinstance(value, int) and float in kinds:
        return True
    return Any in kinds or isinstance(value, kinds)
