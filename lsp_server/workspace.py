"""The editor's workspace folders and the settings that hold in each.

Owns which folder a document belongs to, and the options as they came: of `initialize`, for all, and by folder. Must not
know documents, the editor or the wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from lsp_server.settings import Problem, Settings, merge, parse, with_shared
from lsp_server.uris import parts_of

_DRIVE = re.compile(r"^/([A-Za-z]):")

Place = tuple[str, tuple[str, ...]]


class Workspace:
    """Folders by URI, in the editor's order. `settings` hold where no folder has its own."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.problems: tuple[Problem, ...] = ()
        self.turn = 0
        self._first: object = None
        self._shared: object = None
        # None stands for a folder whose own options are not known: it has those of all.
        self._own: dict[str, object] = {}
        # Of options that are none at all, by folder, "" for all: what was there before them holds on.
        self._misfits: dict[str, list[Problem]] = {}
        self._places: dict[str, Place] = {}
        self._resolved: dict[str, Settings] = {}

    @property
    def folders(self) -> tuple[str, ...]:
        """The URIs of the folders."""
        return tuple(self._own)

    def begin(self, options: object, folders: Iterable[str]) -> None:
        """Take what `initialize` said."""
        self._first = options
        self.change_folders(added=folders)

    def next_turn(self) -> int:
        """The number of a new question for settings; `turn` is that of the newest."""
        self.turn += 1
        return self.turn

    def configure(self, options: object) -> None:
        """Lay `options` over those of `initialize`, for every folder that has none of its own."""
        if self._fits("", options):
            self._shared = options
        self._resolve()

    def configure_folder(self, uri: str, options: object) -> None:
        """Options for one folder, None when it has none. A folder that has gone meanwhile is not known any more."""
        if uri in self._own:
            if self._fits(uri, options):
                self._own[uri] = options
            self._resolve()

    def change_folders(self, added: Iterable[str] = (), removed: Iterable[str] = ()) -> None:
        """Folders come without options of their own; those of a removed one are forgotten."""
        for uri in removed:
            self._own.pop(uri, None)
            self._misfits.pop(uri, None)
        for uri in added:
            self._own.setdefault(uri, None)
        self._places = {uri: _place(uri) for uri in self._own}
        self._resolve()

    def folder_of(self, uri: str) -> str | None:
        """The folder a document lies in, the innermost where folders are nested; None outside of all."""
        if not self._places:
            return None
        authority, parts = _place(uri)
        around = [
            (len(below), folder)
            for folder, (host, below) in self._places.items()
            if host == authority and parts[: len(below)] == below
        ]
        return max(around)[1] if around else None

    def settings_for(self, uri: str) -> Settings:
        """The settings that hold for a document."""
        if not self._resolved:
            return self.settings
        return self._resolved.get(self.folder_of(uri) or "", self.settings)

    def all_settings(self) -> tuple[Settings, ...]:
        """The settings of every folder; without folders those that hold everywhere."""
        return tuple(self._resolved.get(folder, self.settings) for folder in self._own) or (self.settings,)

    def _resolve(self) -> None:
        shared = merge(self._first, self._shared)
        self.settings, found = parse(shared)
        problems, self._resolved = self._misfits.get("", []) + found, {}
        for folder, own in self._own.items():
            faults = list(self._misfits.get(folder, ()))
            if own is not None:
                settings, found = parse(merge(shared, own))
                self._resolved[folder] = with_shared(settings, self.settings)
                faults += found
            # A fault all folders share is one fault.
            new = (each for each in faults if each not in problems)
            problems += [Problem(f"{each.path} in {folder}", each.message) for each in new]
        self.problems = tuple(problems)

    def _fits(self, folder: str, options: object) -> bool:
        """Whether they are options, or none; if not, that is a problem until others come."""
        if options is None or isinstance(options, Mapping):
            self._misfits.pop(folder, None)
            return True
        self._misfits[folder] = parse(options)[1]
        return False


def _place(uri: str) -> Place:
    """Host and path segments: what a prefix of the text does not tell (`/w/app` is not above `/w/app2/x`)."""
    parts = parts_of(uri)
    path = _DRIVE.sub(lambda found: f"/{found[1].lower()}:", parts.path)
    return parts.authority, tuple(segment for segment in path.split("/") if segment)
