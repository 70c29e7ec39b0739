"""Work-done progress of a long edit, with a cancel button and a percentage of settled text.

Owns who reports on which token: the client's own, or one the server asks for once the work takes long. Knows neither
documents nor what is worked on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.client import Editor
from lsp_server.clock import Clock

Token = int | str

# Work shorter than this needs no progress bar of its own.
LONG_S = 0.5
# 100 is for what is finished; the last step is the cleaning of the answer.
_MOST_PERCENT = 99


class ProgressBoard:
    """The tokens of a session on which work is reported, and what cancelling each means."""

    def __init__(self) -> None:
        self._cancel: dict[Token, Callable[[], None]] = {}
        self._created = 0

    @property
    def count(self) -> int:
        """How many tokens are in use."""
        return len(self._cancel)

    def cancel(self, token: Token) -> None:
        """The person pressed the button. A token that is not in use is ignored: the work was faster."""
        if token in self._cancel:
            self._cancel[token]()

    def new_token(self) -> str:
        """A token nobody used before in this session."""
        self._created += 1
        return f"lacuna/{self._created}"

    def claim(self, token: Token, cancel: Callable[[], None]) -> None:
        """From now on cancelling `token` calls `cancel`."""
        self._cancel[token] = cancel

    def release(self, token: Token) -> None:
        """The work is over. Harmless for a token that is not in use."""
        self._cancel.pop(token, None)


async def token_for_long_work(editor: Editor, board: ProgressBoard, clock: Clock) -> str | None:
    """Wait `LONG_S`, then ask the editor for a new token. None where the client refuses: the work goes on unseen."""
    await clock.sleep(LONG_S)
    token = board.new_token()
    try:
        await editor.create_progress(token)
    except JsonRpcException:
        return None
    return token


class Progress:
    """The progress of one job: `async with` begins and ends it, `report` says how far it is.

    `token` is the client's, or None; then one is created after `LONG_S`, if `creates` allows it. `stop` ends the work
    when the person cancels it, and `is_cancelled` tells so afterwards.
    """

    def __init__(
        self,
        board: ProgressBoard,
        editor: Editor,
        clock: Clock,
        title: str,
        stop: Callable[[], None],
        *,
        token: Token | None,
        creates: bool,
    ) -> None:
        self.is_cancelled = False
        self._board = board
        self._editor = editor
        self._clock = clock
        self._title = title
        self._stop = stop
        self._token = token
        self._creates = creates
        self._opening: asyncio.Task[None] | None = None
        self._begun = False
        self._percent = 0
        self._message = ""

    @property
    def is_wanted(self) -> bool:
        """Whether anybody may see what is reported."""
        return self._token is not None or self._creates

    def report(self, settled: int, expected: int, part: int = 0, parts: int = 1) -> None:
        """`settled` of about `expected` characters of the `part`th of `parts` are settled."""
        share = min(settled / max(expected, 1), 1.0)
        percent = min(_MOST_PERCENT, int(100 * (part + share) / parts))
        if percent <= self._percent:
            return
        self._percent = percent
        self._message = f"{settled} of about {max(settled, expected)} characters" + (
            f", {part + 1} of {parts}" if parts > 1 else ""
        )
        if self._begun:
            self._send(types.WorkDoneProgressReport(message=self._message, percentage=percent, cancellable=True))

    def say(self, message: str) -> None:
        """What is going on while nothing is settled yet."""
        self._message = message
        if self._begun:
            self._send(types.WorkDoneProgressReport(message=message, percentage=self._percent, cancellable=True))

    async def __aenter__(self) -> Progress:
        if self._token is not None:
            self._begin(self._token)
        elif self._creates:
            self._opening = asyncio.create_task(self._open())
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._opening is not None:
            self._opening.cancel()
        if self._begun:
            self._begun = False
            self._send(types.WorkDoneProgressEnd())
        if self._token is not None:
            self._board.release(self._token)

    async def _open(self) -> None:
        token = await token_for_long_work(self._editor, self._board, self._clock)
        if token is not None:
            self._begin(token)

    def _begin(self, token: Token) -> None:
        self._token = token
        self._board.claim(token, self._cancel)
        self._begun = True
        self._send(
            types.WorkDoneProgressBegin(
                title=self._title,
                cancellable=True,
                message=self._message or None,
                percentage=self._percent,
            )
        )

    def _cancel(self) -> None:
        self.is_cancelled = True
        self._stop()

    def _send(
        self, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        if self._token is not None:
            self._editor.send_progress(self._token, value)
