"""The editor's own progress display while the engine is on its way: no message a person has to close.

Who types before the model is loaded gets no ghost text; this says why, where the editor shows work in progress at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from lsprotocol import types

from engine.protocol.messages import Loading
from lsp_server.client import Editor
from lsp_server.clock import Clock
from lsp_server.engine_client import EngineState
from lsp_server.progress import ProgressBoard, token_for_long_work

TITLE = "Lacuna: loading the model"
_ON_ITS_WAY: frozenset[EngineState] = frozenset({"starting", "loading"})
_STAGES = {
    "convert": "converting it, which is done once",
    "fold": "adding its patch, which is done once",
    "load": "reading its weights",
    "measure": "measuring this machine",
}
# A report for every percent is more than anybody reads.
_STEP_PERCENT = 5


class EngineProgress:
    """Begins when the engine takes longer than `progress.LONG_S` to come, ends when it is ready or given up.

    `moved` and `heard` are for the engine's events; `shows` tells whether the editor displays progress.
    """

    def __init__(self, editor: Editor, clock: Clock, board: ProgressBoard, shows: Callable[[], bool]) -> None:
        self._editor = editor
        self._clock = clock
        self._board = board
        self._shows = shows
        self._opening: asyncio.Task[None] | None = None
        self._token: str | None = None
        self._message: str | None = None

    def moved(self, state: EngineState) -> None:
        """The engine's state is `state` from now on."""
        if state not in _ON_ITS_WAY:
            self._end()
        elif self._opening is None and self._shows():
            self._opening = asyncio.get_running_loop().create_task(self._open())

    def heard(self, loading: Loading) -> None:
        """The engine told how far it is."""
        message = _words(loading)
        if message == self._message:
            return
        self._message = message
        if self._token is not None:
            self._editor.send_progress(self._token, types.WorkDoneProgressReport(message=message))

    async def _open(self) -> None:
        token = await token_for_long_work(self._editor, self._board, self._clock)
        if token is None:
            return
        self._token = token
        self._editor.send_progress(token, types.WorkDoneProgressBegin(title=TITLE, message=self._message))

    def _end(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._token is not None:
            self._editor.send_progress(self._token, types.WorkDoneProgressEnd())
        self._opening = self._token = self._message = None


def stage_of(loading: Loading) -> str:
    """What an engine on its way is doing, in words."""
    return _STAGES.get(loading.stage, "beginning")


def percent_of(loading: Loading) -> int:
    """How far it is with that, in steps of `_STEP_PERCENT`."""
    return int(100 * loading.fraction) // _STEP_PERCENT * _STEP_PERCENT


def _words(loading: Loading) -> str:
    done = percent_of(loading)
    return f"{stage_of(loading)} ({done} %)" if done else stage_of(loading)
