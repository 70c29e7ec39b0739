"""Which open documents may stand beside which, and what was put in front of a window last.

Owns the order in which documents were opened and edited, where that was, and the rule what may be shown in another's
context: never a secret, an excluded or a git-ignored file, and nothing from another workspace folder. Keeps nothing of
closed documents.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from pygls.uris import to_fs_path

from lsp_server.clock import Clock
from lsp_server.document import Document
from lsp_server.ignored import IgnoreRules
from lsp_server.neighbours import MOST_EXCERPTS
from lsp_server.notebook import Notebooks, OtherCells
from lsp_server.privacy import is_open, typing_refusal
from lsp_server.read_only import READ_ONLY_SCHEMES
from lsp_server.settings import Settings
from lsp_server.uris import parts_of
from lsp_server.workspace import Workspace

LARGEST_CHARS = 200_000
# So much of another document is looked at: more costs time with every key.
LOOKED_AT_CHARS = 40_000
MOST_ASKED = 32
# For so long git's rules are not read again for a document.
IGNORED_FOR_S = 5.0


class Remembered:
    """The texts last put in front of a document's window and what they were made from. They go with the document."""

    def __init__(self) -> None:
        self._texts: dict[str, tuple[Hashable, str]] = {}

    def text(self, slot: str, made_from: Hashable, make: Callable[[], str]) -> str:
        """The text of a slot as it was while `made_from` is the same, else a new one."""
        kept = self._texts.get(slot)
        if kept is None or kept[0] != made_from:
            kept = self._texts[slot] = (made_from, make())
        return kept[1]


@dataclass(frozen=True, slots=True)
class Beside:
    """Another document and the offset at which somebody was in it last."""

    document: Document
    place: int

    @property
    def region(self) -> str:
        """What is looked at of it: whole lines around the place, at most `LOOKED_AT_CHARS`."""
        length = self.document.length
        first = max(0, min(self.place - LOOKED_AT_CHARS // 2, length - LOOKED_AT_CHARS))
        text = self.document.slice(first, first + LOOKED_AT_CHARS)
        if first:
            text = text[text.find("\n") + 1 :]
        return text if first + LOOKED_AT_CHARS >= length else text[: text.rfind("\n") + 1] or text


@dataclass(frozen=True, slots=True)
class Around:
    """What belongs to a document at one moment: other documents by recency, the cells of its notebook, its folder.

    `is_ignored` says that git does not track it and nobody asked for suggestions there.
    """

    others: tuple[Beside, ...] = ()
    cells: OtherCells = field(default_factory=OtherCells)
    folder: str | None = None
    is_ignored: bool = False
    remembered: Remembered = field(default_factory=Remembered, compare=False)


class Vicinity:
    """The documents of one editor, as far as they matter to each other."""

    def __init__(self, workspace: Workspace, clock: Clock) -> None:
        self.notebooks = Notebooks()
        self._workspace = workspace
        self._clock = clock
        self._rules = IgnoreRules()
        # The most recent last, each with the offset at which somebody was in it.
        self._touched: dict[str, int] = {}
        self._remembered: dict[str, Remembered] = {}
        self._verdicts: dict[str, tuple[float, bool]] = {}

    def touch(self, uri: str, place: int | None = None) -> None:
        """A document was opened or edited, at the offset `place` if that is known."""
        before = self._touched.pop(uri, 0)
        self._touched[uri] = before if place is None else place

    def look(self, uri: str, place: int) -> None:
        """Somebody's cursor is at the offset `place` of an open document."""
        if uri in self._touched:
            self._touched[uri] = place

    def forget(self, uri: str) -> None:
        """A document was closed, or does not have that name any more."""
        self._touched.pop(uri, None)
        self._remembered.pop(uri, None)
        self._verdicts.pop(uri, None)

    def settings_for(self, uri: str) -> Settings:
        """The settings of a document; a cell has those of its notebook."""
        return self._workspace.settings_for(self.notebooks.home_of(uri))

    def around(self, document: Document, document_of: Callable[[str], Document | None]) -> Around:
        """What belongs to `document` now."""
        uri, settings = document.uri, self.settings_for(document.uri)
        return Around(
            self._others(uri, document_of) if settings.neighbour_tokens else (),
            self.notebooks.around(uri, document_of),
            self._workspace.folder_of(self.notebooks.home_of(uri)),
            not settings.git_ignored and self._is_ignored(uri, settings),
            self._remembered.setdefault(uri, Remembered()),
        )

    def _others(self, uri: str, document_of: Callable[[str], Document | None]) -> tuple[Beside, ...]:
        home = self.notebooks.home_of(uri)
        folder = self._workspace.folder_of(home)
        recent = (each for each in reversed(self._touched) if self.notebooks.home_of(each) != home)
        known = (document for each in islice(recent, MOST_ASKED) if (document := document_of(each)) is not None)
        shown = islice((each for each in known if self._may_be_shown(each, folder)), MOST_EXCERPTS)
        return tuple(Beside(each, self._touched[each.uri]) for each in shown)

    def _may_be_shown(self, document: Document, folder: str | None) -> bool:
        """Whether a document may stand in the context of another in `folder`."""
        uri, settings = document.uri, self.settings_for(document.uri)
        return (
            document.length <= LARGEST_CHARS
            and parts_of(uri).scheme not in READ_ONLY_SCHEMES
            and self._workspace.folder_of(self.notebooks.home_of(uri)) == folder
            and settings.enable
            and typing_refusal(document, settings) is None
            and not self._is_ignored(uri, settings)
        )

    def _is_ignored(self, uri: str, settings: Settings) -> bool:
        """Whether git ignores the file, unless the user said that it is open; asked again after a while."""
        now, (asked_at, verdict) = self._clock.now(), self._verdicts.get(uri, (float("-inf"), False))
        if now - asked_at >= IGNORED_FOR_S:
            verdict = self._ask(self.notebooks.home_of(uri))
            self._verdicts[uri] = (now, verdict)
        return verdict and not is_open(uri, settings)

    def _ask(self, uri: str) -> bool:
        if parts_of(uri).scheme != "file":
            return False
        path = to_fs_path(uri)
        return path is not None and self._rules.is_ignored(Path(path))


def shown_path(uri: str, folder: str | None) -> str:
    """What to call a document: its path below its folder, else its name. On one line, whatever the URI holds."""
    path, root = parts_of(uri).path, parts_of(folder or "").path.rstrip("/") + "/"
    name = path.removeprefix(root) if folder is not None and path.startswith(root) else path.rsplit("/", 1)[-1]
    return " ".join(name.split())
