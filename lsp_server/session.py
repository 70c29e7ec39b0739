"""The server's only mutable state: documents, settings, what the editor can do, who has been told what.

Handlers take a `Snapshot` before their first await and work on that alone; only `is_current` may be asked later.
Owns no wire format and asks the engine nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from engine.protocol.messages import Stats
from lsp_server.capabilities import Capabilities
from lsp_server.client import Editor
from lsp_server.clock import Clock
from lsp_server.document import Change, Document, apply_changes
from lsp_server.engine_client import Engine, EngineState
from lsp_server.engine_progress import EngineProgress
from lsp_server.errors import Notice, notice_for_state
from lsp_server.inflight import Inflight
from lsp_server.positions import PositionEncoding
from lsp_server.progress import ProgressBoard
from lsp_server.rebase import Moved
from lsp_server.remote.allowed import leaves_to, notice_of_leaving
from lsp_server.settings import Problem, Settings
from lsp_server.status import StatusFeed
from lsp_server.trail import Trail
from lsp_server.typing_state import TypingState
from lsp_server.vicinity import Around, Vicinity
from lsp_server.workspace import Workspace

logger = logging.getLogger(__name__)

RESULTS_KEPT = 16
RETRY_PAUSE_S = 5.0
# Of wrong settings as many are named in one message, each in so many characters.
PROBLEMS_SAID = 20
PROBLEM_CHARS = 300


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one request works on: the document of one version, and everything that shapes the reply."""

    document: Document
    settings: Settings
    capabilities: Capabilities
    encoding: PositionEncoding
    around: Around = field(default_factory=Around)


@dataclass(frozen=True, slots=True)
class Result:
    """How a recent result came to be, for `lacuna.status`."""

    kind: str
    stats: Stats


class Session:
    """One editor's connection. Everything here runs on one event loop."""

    def __init__(self, engine: Engine, editor: Editor, clock: Clock) -> None:
        self.engine = engine
        self.editor = editor
        self.clock = clock
        self.inflight = Inflight()
        self.typing = TypingState(clock)
        self.progress = ProgressBoard()
        self.results: deque[Result] = deque(maxlen=RESULTS_KEPT)
        self.workspace = Workspace()
        self.vicinity = Vicinity(self.workspace, clock)
        self.capabilities = Capabilities()
        self.encoding = PositionEncoding.UTF16
        self._settings_came = asyncio.Event()
        self._settings_came.set()
        self._documents: dict[str, Document] = {}
        self._trails: dict[str, Trail] = {}
        self._reported: tuple[Problem, ...] = ()
        self._told: set[str] = set()
        # Has the engine be the one that settings ask for; whether it is another one now.
        self.choose_engine: Callable[[Settings], bool] = lambda _settings: False
        self._chosen_by: Settings | None = None
        self._hosts_told: set[str] = set()
        self.engine_message = ""
        self._retried_at: float | None = None
        self._acts_waiting = 0
        self._engine_progress = EngineProgress(editor, clock, self.progress, lambda: self.capabilities.shows_loading)
        self.status = StatusFeed(editor, clock, engine, lambda: self.capabilities.wants_status)
        engine.on_state(self._on_engine_state)
        engine.on_loading(self._engine_progress.heard)
        engine.on_loading(self.status.heard)

    # The connection

    @property
    def settings(self) -> Settings:
        """The settings that hold outside all folders; `Snapshot.settings` are those of a document."""
        return self.workspace.settings

    def begin(
        self,
        capabilities: Capabilities,
        options: object,
        folders: Iterable[str] = (),
        encoding: PositionEncoding = PositionEncoding.UTF16,
    ) -> None:
        """Take what `initialize` said."""
        self.capabilities = capabilities
        self.encoding = encoding
        if capabilities.pulls_configuration:
            self._settings_came.clear()
        self.workspace.begin(options, folders)

    @property
    def awaits_settings(self) -> bool:
        """Whether the editor has yet to say its settings: they may say that nothing is wanted, so nothing is done."""
        return not self._settings_came.is_set()

    def settings_came(self) -> None:
        """The editor has said its settings, or that it will not."""
        self._settings_came.set()

    async def settings_known(self) -> None:
        """Return once the settings are there."""
        await self._settings_came.wait()

    def configure(self, options: object) -> None:
        """Lay `options` over those of `initialize`; they hold from the next request on."""
        self.workspace.configure(options)
        self.stop_what_is_off()

    def stop_what_is_off(self) -> None:
        """End the jobs of documents whose settings now say that nothing is wanted."""
        for uri in self._documents:
            if not self.vicinity.settings_for(uri).enable:
                self.inflight.supersede(uri, why="turned off")

    def report_problems(self) -> None:
        """Say what is wrong with the options and was not at the last report, however often they come.

        Not before the reply to `initialize` is out.
        """
        problems = self.workspace.problems
        new = [problem for problem in problems if problem not in self._reported]
        self._reported = problems
        if new:
            said = [_shortened(str(problem)) for problem in new[:PROBLEMS_SAID]]
            said += [f"and {len(new) - len(said)} more"] if len(new) > len(said) else []
            self.editor.warn("Lacuna settings: " + "; ".join(said))

    # Documents

    @property
    def document_count(self) -> int:
        """How many documents are open."""
        return len(self._documents)

    def open(self, document: Document) -> None:
        """A document was opened, or replaced whole."""
        self.inflight.supersede(document.uri)
        self.typing.forget(document.uri)
        self._documents[document.uri] = document
        self._trails[document.uri] = Trail()
        self.vicinity.touch(document.uri, 0)

    def change(self, uri: str, version: int, changes: Sequence[Change]) -> None:
        """The document moved on; jobs that cannot follow it end. One never opened is not known, and stays so."""
        document = self._documents.get(uri)
        if document is not None:
            self.inflight.move(uri, Moved(document, changes, self.encoding))
            self._trails[uri].add(document, changes, self.encoding)
            self.typing.changed(document)
            changed = self._documents[uri] = apply_changes(document, version, changes, self.encoding)
            self.typing.deletions.changed(document, changed, changes, self.encoding)
            self.vicinity.touch(uri, changed.place_of(changes[-1], self.encoding) if changes else None)

    def close(self, uri: str) -> None:
        """Forget everything about a document."""
        self.inflight.supersede(uri)
        self._documents.pop(uri, None)
        self._trails.pop(uri, None)
        self.vicinity.forget(uri)
        self.typing.forget(uri)

    def renamed(self, old: str) -> None:
        """A file or folder has another name: what hung on the old one goes, the text stays until it is closed."""
        for uri in self._documents:
            if uri == old or uri.startswith(old.rstrip("/") + "/"):
                self.vicinity.forget(uri)

    def document(self, uri: str) -> Document | None:
        """The document as it is now, alone; a handler that answers takes a `snapshot`."""
        return self._documents.get(uri)

    def trail(self, uri: str) -> Trail:
        """Where places of older versions of a document have gone."""
        return self._trails.get(uri) or Trail()

    def snapshot(self, uri: str) -> Snapshot | None:
        """The document as it is now with all that shapes a reply; None when it is not open."""
        document = self._documents.get(uri)
        if document is None:
            return None
        around = self.vicinity.around(document, self._documents.get)
        settings = self.vicinity.settings_for(uri)
        if self.awaits_settings:
            settings = replace(settings, enable=False, inline=False, menu=False)
        return Snapshot(document, settings, self.capabilities, self.encoding, around)

    def is_current(self, snapshot: Snapshot) -> bool:
        """Whether the document is still the very one of the snapshot (not just one of the same version)."""
        return self._documents.get(snapshot.document.uri) is snapshot.document

    # Asking

    def wake_engine(self) -> None:
        """Begin to load the engine, so that it is there when it is first asked. Not while everything is off."""
        if not self._wants_engine:
            return
        self._choose_engine()
        if self.engine.state == "off":
            self.engine.start()

    def retry_engine(self) -> bool:
        """For a person's own act: try an engine that failed again now, not after its pause. Whether it is tried.

        One act after another starts no process each: what made it fail is hardly mended within `RETRY_PAUSE_S`.
        """
        now, before = self.clock.now(), self._retried_at
        if not self._wants_engine or self.engine.state != "failed":
            return False
        if before is not None and now - before < RETRY_PAUSE_S:
            return False
        self._retried_at = now
        self.engine.start()
        return True

    def _choose_engine(self) -> None:
        """Have the engine that the settings ask for. That documents leave this machine is said before one does."""
        if self._chosen_by is self.settings:
            return
        before, self._chosen_by = self._chosen_by, self.settings
        host = leaves_to(self.settings)
        if host and host not in self._hosts_told:
            self._hosts_told.add(host)
            self.editor.show(notice_of_leaving(host, self.settings))
        narrowed = before is not None and before.engine_allow_folders != self.settings.engine_allow_folders
        if self.choose_engine(self.settings) or narrowed:
            # What was asked for under other settings may be about a document that the engine must not see now.
            for uri in self._documents:
                self.inflight.supersede(uri)

    @property
    def _wants_engine(self) -> bool:
        if self.awaits_settings:
            return False
        opened = tuple(self.vicinity.settings_for(uri) for uri in self._documents)
        return any(settings.enable for settings in opened or self.workspace.all_settings())

    def record(self, kind: str, stats: Stats) -> None:
        """Remember how a result came to be."""
        self.results.append(Result(kind, stats))

    # Telling

    def tell(self, notice: Notice) -> None:
        """Send a notice to who types, unless its key, or its text for an act, was told since the engine was last ready.

        The engine that a person's act found dead is no news to who goes on typing.
        """
        if notice.is_known or notice.key in self._told or notice.text in self._told:
            return
        self._told.add(notice.key)
        if notice.prominent:
            self.editor.show(notice.text)
        else:
            self.editor.log(notice.text)

    def answer_act(self, text: str, *, is_fault: bool = False) -> None:
        """Tell a person what came of something they did: each act has its answer, a Warning for an engine's fault."""
        self._told.add(text)
        if is_fault:
            self.editor.alert(text)
        else:
            self.editor.show(text)

    @contextmanager
    def waiting_act(self) -> Iterator[None]:
        """Around what an act waits for: a failure of the engine is told in the act's answer, and not beside it."""
        self._acts_waiting += 1
        try:
            yield
        finally:
            self._acts_waiting -= 1

    def _on_engine_state(self, state: EngineState, message: str) -> None:
        self.engine_message = message
        self._engine_progress.moved(state)
        self.status.moved(state, message)
        notice = notice_for_state(state, message)
        logger.info("engine: %s", state)
        if state == "ready":
            self._told.clear()
        if state == "off" and not message:
            return
        is_prominent = notice.prominent and not self._acts_waiting
        self.tell(replace(notice, key=f"state {state}: {message}", prominent=is_prominent))


def _shortened(problem: str) -> str:
    return problem if len(problem) <= PROBLEM_CHARS else problem[: PROBLEM_CHARS - 1] + "…"
