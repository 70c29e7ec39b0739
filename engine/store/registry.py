"""What models there are: entries read from the registry files, strictly, and found by name.

Owns the shape of `registry.toml` and of the user's own registry. It touches no weights and no network.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from engine.protocol.errors import EngineError

Setting = str | int | float | bool

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file of a model. `size` in bytes; `sha256` in lower-case hex; None where it is not known."""

    name: str
    size: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class LocalSpec:
    """The file is taken from the folder or file a person names (`LACUNA_MODEL_SOURCE`, `--from`)."""


@dataclass(frozen=True, slots=True)
class HubSpec:
    """The file lies in a model repository of the hub."""

    repository: str
    revision: str = "main"


@dataclass(frozen=True, slots=True)
class WheelsSpec:
    """The file is cut into members of data-only wheels, to be joined in order. Both tuples have one length."""

    packages: tuple[str, ...]
    members: tuple[str, ...]


SourceSpec = LocalSpec | HubSpec | WheelsSpec


@dataclass(frozen=True, slots=True)
class Entry:
    """A model as the registry describes it.

    `context_tokens` is None where not known. `location` is the file or folder of a model that a person added in
    place, None for models the store fetches itself. `loadable` says whether this version has the family for it.
    `files` of a loadable model that comes from the hub are empty until it is pulled: they are listed there.
    `adapter` is the patch that ships with Lacuna for this model, None where there is none.
    """

    name: str
    family: str
    description: str
    licence: str
    loadable: bool
    repository: str = ""
    context_tokens: int | None = None
    files: tuple[ModelFile, ...] = ()
    sources: tuple[SourceSpec, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=lambda: MappingProxyType({}))
    location: Path | None = None
    adapter: ModelFile | None = None

    @property
    def size(self) -> int | None:
        """Bytes of all files, None where one is not known or there are none."""
        sizes = [file.size for file in self.files if file.size is not None]
        return sum(sizes) if sizes and len(sizes) == len(self.files) else None


@dataclass(frozen=True, slots=True)
class Registry:
    """The models known by name, in the order of the file, and which of them is meant when none is named."""

    entries: tuple[Entry, ...]
    default: str

    @classmethod
    def built_in(cls) -> Registry:
        """The registry that ships with Lacuna."""
        text = resources.files("engine").joinpath("registry.toml").read_text(encoding="utf-8")
        return cls.parse(text)

    @classmethod
    def parse(cls, text: str) -> Registry:
        """Read a registry file. Raises ValueError on an unknown key, a missing one, or a wrong value."""
        table = tomllib.loads(text)
        _only(table, {"default", "models"}, "the registry")
        entries = tuple(_entry(name, body) for name, body in table.get("models", {}).items())
        default = str(table.get("default", ""))
        if default and default not in {entry.name for entry in entries}:
            raise ValueError(f"the default model {default!r} is not in the registry")
        return cls(entries, default)

    def with_entries(self, added: Iterable[Entry]) -> Registry:
        """This registry and `added`; an added entry never hides one that is already there."""
        known = {entry.name for entry in self.entries}
        return Registry(self.entries + tuple(e for e in added if e.name not in known), self.default)

    def find(self, name: str) -> Entry:
        """The entry called `name`. Raises EngineError(bad_request) naming the closest ones."""
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise unknown_name(name, [entry.name for entry in self.entries])


def unknown_name(name: str, known: list[str]) -> EngineError:
    """The error for a name that is not in `known`."""
    close = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.4)
    hint = f"Did you mean {' or '.join(close)}?" if close else f"Known models: {', '.join(known)}."
    return EngineError("bad_request", f"There is no model called {name!r}.", f"{hint} See `lacuna models list`.")


def check_name(name: str) -> str:
    """`name` if it can name a model (and so a folder). Raises EngineError(bad_request)."""
    if _NAME.fullmatch(name):
        return name
    remedy = "Use lower-case letters, digits, '.', '_' and '-', at most 64, starting with a letter or digit."
    raise EngineError("bad_request", f"{name!r} cannot name a model.", remedy)


_ENTRY_KEYS = {
    *("family", "description", "licence", "repository", "context_tokens", "loadable"),
    *("settings", "files", "sources", "location", "adapter"),
}


def _entry(name: str, body: Mapping[str, Any]) -> Entry:
    where = f"model {name!r}"
    if not _NAME.fullmatch(name):
        raise ValueError(f"{where} has a name that cannot be a folder")
    _only(body, _ENTRY_KEYS, where)
    hub = any(source.get("kind") == "hub" for source in body.get("sources", []))
    if body.get("loadable") is True and not body.get("files") and not hub:
        raise ValueError(f"{where} is loadable and has no files, and no hub source to learn them from")
    return Entry(
        name=name,
        family=_text(body, "family", where),
        description=_text(body, "description", where),
        licence=_text(body, "licence", where),
        loadable=body.get("loadable") is True,
        repository=str(body.get("repository", "")),
        context_tokens=_count(body, "context_tokens", where),
        files=tuple(_file(item, where) for item in body.get("files", [])),
        sources=tuple(_source(item, where) for item in body.get("sources", [])),
        settings=MappingProxyType(dict(body.get("settings", {}))),
        location=Path(str(body["location"])) if "location" in body else None,
        adapter=_adapter(body["adapter"], where) if "adapter" in body else None,
    )


def _file(item: Mapping[str, Any], where: str) -> ModelFile:
    _only(item, {"name", "size", "sha256"}, f"a file of {where}")
    name = _text(item, "name", f"a file of {where}")
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(f"the file {name!r} of {where} would lie outside its folder")
    digest = item.get("sha256")
    if digest is not None and not _DIGEST.fullmatch(str(digest)):
        raise ValueError(f"the sha256 of {name!r} of {where} is not 64 lower-case hex digits")
    return ModelFile(name, _count(item, "size", where), digest)


def _adapter(item: Mapping[str, Any], where: str) -> ModelFile:
    adapter = _file(item, where)
    if adapter.sha256 is None:
        raise ValueError(f"the adapter of {where} lacks 'sha256'")
    return adapter


def _source(item: Mapping[str, Any], where: str) -> SourceSpec:
    kind: Literal["local", "hub", "wheels"] | object = item.get("kind")
    if kind == "local":
        _only(item, {"kind"}, f"the local source of {where}")
        return LocalSpec()
    if kind == "hub":
        _only(item, {"kind", "repository", "revision"}, f"the hub source of {where}")
        return HubSpec(_text(item, "repository", where), str(item.get("revision", "main")))
    if kind == "wheels":
        _only(item, {"kind", "packages", "members"}, f"the wheels source of {where}")
        packages, members = tuple(item.get("packages", ())), tuple(item.get("members", ()))
        if not packages or len(packages) != len(members):
            raise ValueError(f"the wheels source of {where} needs as many members as packages, and at least one")
        return WheelsSpec(packages, members)
    raise ValueError(f"{where} has a source of unknown kind {kind!r}")


def _only(table: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r} in {where}")


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{where} lacks {key!r}")
    return value


def _count(table: Mapping[str, Any], key: str, where: str) -> int | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, int) or value <= 0):
        raise ValueError(f"{key!r} of {where} is not a positive whole number")
    return value
