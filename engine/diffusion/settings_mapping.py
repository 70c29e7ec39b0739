"""A record of numbers that can be read from a mapping: `FromMapping`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Self


class FromMapping:
    """What a frozen dataclass of settings inherits."""

    __slots__ = ()

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """Read a configuration. Raises ValueError for an unknown key: a typo must not silently be a default."""
        unknown = sorted(set(values) - {field.name for field in fields(cls)})  # type: ignore[arg-type]
        if unknown:
            raise ValueError(f"unknown sampling setting {', '.join(unknown)}")
        return cls(**values)
