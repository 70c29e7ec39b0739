"""The models on this machine, by name: found, fetched, checked, added, removed.

The one door to the weights: every other part of Lacuna asks here for a path and gets only files whose digest is right.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import FileLock, Timeout

from engine.models.detection import family_of
from engine.paths import Paths
from engine.protocol.errors import EngineError
from engine.protocol.model_name import engine_name, is_path
from engine.store.added import read_added, write_added
from engine.store.child_process import bytes_below
from engine.store.formats import Weights, inspect
from engine.store.hub import HubSource
from engine.store.hub_listing import List, Listing, hub_listing, pinned
from engine.store.integrity import sha256_of
from engine.store.progress import PullProgress, SourceError, ignore
from engine.store.pull import Pull, listing_failure
from engine.store.registry import Entry, HubSpec, LocalSpec, ModelFile, Registry, check_name
from engine.store.shelf import Shelf
from engine.store.sources import SOURCE_VARIABLE, PathSource, Source
from engine.store.wheels import WheelsSource

OpenSources = Callable[[Entry], Sequence[Source]]

# Inside a model's folder: which files it has, where the registry does not say.
_LISTING = "files.json"


@dataclass(frozen=True, slots=True)
class Located:
    """A model that can be loaded: what is known of it, its checked file or folder, and where its cache belongs."""

    entry: Entry
    path: Path
    cache: Path


class Store:
    """The model store below `paths.models`, with what may be computed from it below `paths.cache`."""

    def __init__(
        self,
        paths: Paths,
        registry: Registry,
        *,
        open_sources: OpenSources | None = None,
        list_files: List | None = None,
        free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
    ) -> None:
        self.paths = paths
        self._registry = registry
        self._open_sources = open_sources or sources_of(os.environ)
        self._list_files = list_files or hub_listing(os.environ)
        self._free_bytes = free_bytes

    @classmethod
    def of_user(cls, environ: Mapping[str, str]) -> Store:
        """The store of this user with the registry that ships with Lacuna."""
        paths = Paths.from_environment(environ)
        return cls(paths, Registry.built_in(), open_sources=sources_of(environ), list_files=hub_listing(environ))

    @property
    def default(self) -> str:
        """The name of the model that is meant when none is named."""
        return self._registry.default

    def entries(self) -> tuple[Entry, ...]:
        """All models known by name: those that ship with Lacuna, then those a person added."""
        return self._known().entries

    def find(self, name: str) -> Entry:
        """The model called `name`. Raises EngineError(bad_request) naming the closest ones."""
        return self._known().find(name)

    def shelf(self, name: str) -> Shelf:
        """Where the files of `name` lie. Raises EngineError(bad_request)."""
        return Shelf(self.paths.models, self.find(name))

    def path(self, name: str) -> Path:
        """The checked file (or folder of files) of a model, to be loaded.

        Reads the whole file only when it was touched since the last time. Raises EngineError: bad_request for an
        unknown name, model_unsupported for one that a later version loads, model_missing, model_corrupt.
        """
        shelf = self.shelf(name)
        refuse_unloadable(shelf.entry)
        self._check(shelf, trust_stamp=True)
        return shelf.path

    def locate(self, model: str) -> Located:
        """A model by its name, or by the absolute path of its file or folder, to be loaded.

        Of what a path names there is no digest to compare with: the formats are checked, and that a family knows it.
        Raises EngineError as `path` does, and model_unsupported for weights of an unknown family.
        """
        if not is_path(model):
            return Located(self.find(model), self.path(model), self.converted_dir(model))
        entry = _described(engine_name(model), Path(model), inspect(Path(model)), digests=Path(model).is_file())
        if not entry.loadable:
            raise unknown_family(entry.name, entry.family)
        return Located(entry, Path(model), self._converted_dir(entry))

    def pull(
        self,
        name: str,
        *,
        progress: Callable[[PullProgress], None] = ignore,
        cancel: threading.Event | None = None,
        source: Path | None = None,
    ) -> Path:
        """Have the model here, fetching what is missing; from `source` (a file or its folder) only, when given.

        Safe to call from several processes at once: one fetches, the others wait and find it. Raises PullError,
        or EngineError as `path` does.
        """
        shelf = self.shelf(name)
        refuse_unloadable(shelf.entry)
        if shelf.entry.location is not None:
            return self.path(name)
        if not shelf.entry.files:
            shelf = self._list(shelf, progress)
        if all(shelf.stamped(file) for file in shelf.entry.files):
            progress(PullProgress("done", "", f"{name} is already here"))
            return shelf.path
        sources = self._open_sources(shelf.entry) if source is None else [PathSource(source)]
        return Pull(shelf, sources, progress, cancel or threading.Event(), self._free_bytes).run()

    def verify(self, name: str, report: Callable[[int], None] = ignore) -> None:
        """Read all files of a model again and compare digests. Raises EngineError(model_missing, model_corrupt).

        A wrong file that the store fetched is removed; one that a person added stays.
        """
        shelf = self.shelf(name)
        if not shelf.entry.files:
            refuse_unloadable(shelf.entry)
            raise _missing(shelf)
        self._check(shelf, trust_stamp=False, report=report)

    def remove(self, name: str) -> int:
        """Delete what the store holds of a model; the bytes freed. A model added in place is only forgotten."""
        shelf = self.shelf(name)
        with self._locked(shelf):
            freed = _delete(shelf.folder)
            freed += _delete(self.converted_dir(name))
            if shelf.entry.location is not None:
                write_added(self._added_file, [e for e in read_added(self._added_file) if e.name != name])
        return freed

    def add(self, path: Path, name: str) -> Entry:
        """Make weights that lie on this machine known by a name, in place. Raises EngineError(bad_request)."""
        check_name(name)
        if any(entry.name == name for entry in self.entries()):
            message = f"There is already a model called {name!r}."
            raise EngineError("bad_request", message, f"Choose another name, or `lacuna models remove {name}` first.")
        entry = _described(name, path.expanduser().absolute(), inspect(path.expanduser().absolute()))
        write_added(self._added_file, (*read_added(self._added_file), entry))
        return entry

    def converted_dir(self, name: str) -> Path:
        """Where the engine keeps its own form of a model: a folder per content, not created here.

        Another file under the same name gets another folder, so a stale conversion is never loaded.
        """
        return self._converted_dir(self.find(name))

    def _converted_dir(self, entry: Entry) -> Path:
        return self.paths.cache / "converted" / f"{entry.name}-{_content_id(entry)}"

    def _known(self) -> Registry:
        known = self._registry.with_entries(read_added(self._added_file))
        return replace(known, entries=tuple(self._with_listing(entry) for entry in known.entries))

    def _with_listing(self, entry: Entry) -> Entry:
        """`entry` with the files that were listed when it was pulled, if the registry names none."""
        listing = None if entry.files or not entry.loadable else Listing.read(self._listing_file(entry))
        if listing is None:
            return entry
        return replace(entry, files=listing.files, sources=pinned(entry.sources, listing.revision))

    def _list(self, shelf: Shelf, progress: Callable[[PullProgress], None]) -> Shelf:
        """Ask the hub which files the model has, and keep the answer. Raises PullError."""
        entry = shelf.entry
        progress(PullProgress("probing", "hub", f"asking the hub which files {entry.name} has"))
        try:
            spec = next(source for source in entry.sources if isinstance(source, HubSpec))
            self._list_files(spec).write(self._listing_file(entry))
        except SourceError as fault:
            raise listing_failure(entry.name, fault) from fault
        return Shelf(self.paths.models, self._with_listing(entry))

    def _listing_file(self, entry: Entry) -> Path:
        return self.paths.models / entry.name / _LISTING

    @property
    def _added_file(self) -> Path:
        return self.paths.models / "registry.toml"

    def _check(self, shelf: Shelf, *, trust_stamp: bool, report: Callable[[int], None] = ignore) -> None:
        """Raise unless every file of the model is here and right."""
        if not shelf.entry.files:
            raise _missing(shelf)
        for file in shelf.entry.files:
            try:
                state = shelf.state(file, trust_stamp=trust_stamp, report=report)
            except OSError as error:
                message = f"{shelf.file(file)} cannot be read: {error.strerror}."
                raise EngineError("model_missing", message, "Make the file readable for you.") from error
            if state == "missing":
                raise _missing(shelf, file)
            if state == "wrong":
                raise _wrong(shelf, file)

    @contextmanager
    def _locked(self, shelf: Shelf) -> Iterator[None]:
        shelf.models.mkdir(parents=True, exist_ok=True)
        lock = FileLock(str(shelf.lock))
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            message = f"Another process is fetching {shelf.entry.name}."
            raise EngineError("bad_request", message, "Wait for it or stop it, then try again.") from error
        try:
            yield
        finally:
            lock.release()


def sources_of(environ: Mapping[str, str]) -> OpenSources:
    """How a registry entry's sources are opened in this environment; `LACUNA_MODEL_SOURCE` is the local path."""
    location = environ.get(SOURCE_VARIABLE, "")

    def open_sources(entry: Entry) -> list[Source]:
        opened: list[Source] = []
        for spec in entry.sources:
            if isinstance(spec, LocalSpec):
                if location:
                    opened.append(PathSource(Path(location).expanduser().absolute(), SOURCE_VARIABLE))
            elif isinstance(spec, HubSpec):
                opened.append(HubSource(spec, environ))
            else:
                opened.append(WheelsSource(spec, environ))
        return opened

    return open_sources


def refuse_unloadable(entry: Entry) -> None:
    """Raise EngineError(model_unsupported) for a model that this version knows but cannot load."""
    if not entry.loadable:
        message = f"{entry.name} (family {entry.family}) is loaded by a later version of Lacuna, not by this one."
        raise EngineError("model_unsupported", message, "`lacuna models list` shows which models this version loads.")


def unknown_family(name: str, architecture: str) -> EngineError:
    """The error for weights that no family of this version knows."""
    return EngineError(
        "model_unsupported",
        f"{name} is of the architecture {architecture or 'unknown'!r}, which no family of this version loads",
        "`lacuna models list` shows models that can be loaded; a folder needs the config.json it was published with",
    )


def _missing(shelf: Shelf, file: ModelFile | None = None) -> EngineError:
    name = shelf.entry.name
    if shelf.entry.location is None or file is None:
        return EngineError("model_missing", f"{name} is not on this machine.", f"Run `lacuna models pull {name}`.")
    remedy = f"Put it back, or forget it with `lacuna models remove {name}`."
    return EngineError("model_missing", f"{shelf.file(file)} is gone.", remedy)


def _wrong(shelf: Shelf, file: ModelFile) -> EngineError:
    """The error for a wrong file, which is removed first if the store fetched it."""
    name, path = shelf.entry.name, shelf.file(file)
    shelf.stamp(file).unlink(missing_ok=True)
    if shelf.entry.location is not None:
        remedy = f"If you meant to change it: `lacuna models remove {name}`, then add it again."
        return EngineError("model_corrupt", f"{path} is not the file that was added.", remedy)
    path.unlink(missing_ok=True)
    message = f"{path} was not the file it should be (wrong digest) and has been removed."
    return EngineError("model_corrupt", message, f"Run `lacuna models pull {name}`.")


def _described(name: str, path: Path, weights: Weights, *, digests: bool = True) -> Entry:
    """The entry for weights found at `path`; reads them whole for their digests, if those are wanted."""
    family = family_of(weights.architecture, path)
    files = tuple(
        ModelFile(file.name, file.stat().st_size, sha256_of(file) if digests else None) for file in weights.files
    )
    return Entry(
        name=name,
        family=family or weights.architecture or "unknown",
        description=f"added from {path.name} ({weights.format})",
        licence="not stated",
        loadable=family is not None,
        context_tokens=weights.context_tokens,
        files=files,
        location=path,
    )


def _content_id(entry: Entry) -> str:
    """Sixteen hex digits that stand for the content of all files, in their order."""
    digests = " ".join(file.sha256 or "" for file in entry.files)
    return hashlib.sha256(digests.encode()).hexdigest()[:16]


def _delete(path: Path) -> int:
    """Delete a folder or file; the bytes it held. A path that is not there holds none."""
    size = bytes_below(path)
    if path.is_dir():
        shutil.rmtree(path)
    return size
