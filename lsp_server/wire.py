"""JSON-RPC as the specification wants it, on top of pygls: exactly one response per request id.

pygls 2.1.1 leaves requests unanswered when their parameters are malformed, when any object in them has a key
`jsonrpc`, and after `shutdown`; it logs document text with its errors, and hides the exit code. This protocol keeps
pygls's registry, types and converter, and decides itself what is answered. Knows no feature and no document.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import json
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcMethodNotFound,
    JsonRpcParseError,
    JsonRpcRequestCancelled,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import JsonRPCNotification, JsonRPCRequestMessage, LanguageServerProtocol
from pygls.protocol.json_rpc import JsonRPCResponseMessage

from lsp_server import errors
from lsp_server.frames import to_frame

MessageId = str | int
Handler = Callable[[Any], Any]

logger = logging.getLogger(__name__)


class StrictProtocol(LanguageServerProtocol):
    """Dispatch and replies. Handlers run up to their first await before the next message is looked at.

    A handler that returns an awaitable is a task, and `$/cancelRequest` cancels it. `on_exit` is told the exit code
    of the process, `on_editor` the editor's process id, and `on_garbled` the method and raw parameters of a
    notification that could not be understood.
    """

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        self.on_exit: Callable[[int], None] = lambda _code: None
        self.on_editor: Callable[[int], None] = lambda _pid: None
        self.on_garbled: Callable[[str, object], None] = lambda _method, _params: None
        self._initialized = False
        self._unanswered: set[MessageId] = set()
        self._running: dict[MessageId, asyncio.Future[Any]] = {}
        self._background: set[asyncio.Future[Any]] = set()

    def _register_builtin_features(self) -> None:
        """None of pygls's own: its document store and life cycle are replaced (see `features`)."""

    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        """As pygls, without its cache: that one would keep every protocol object alive for good."""
        return types.METHOD_TO_TYPES.get(method, (None,))[0]

    def get_result_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        """See `get_message_type`."""
        return types.METHOD_TO_TYPES.get(method, (None, None))[1]

    # Incoming

    def handle_frame(self, body: bytes) -> None:
        """Dispatch what one frame holds. Raises nothing."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            # There is no id to answer to, which the specification writes as null.
            logger.warning("a message could not be read: %s", type(error).__name__)
            self._send_error(None, JsonRpcParseError("the message is not valid JSON"))
            return
        self.handle_message(message)

    def handle_message(self, message: Any) -> None:
        """Dispatch one decoded JSON message. Raises nothing."""
        if not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            self._send_error(_usable_id(message), JsonRpcInvalidRequest("not a JSON-RPC 2.0 message"))
        elif "method" not in message:
            self._on_response(message)
        elif "id" in message:
            self._on_request(message)
        else:
            self._on_notification(message)

    def _on_request(self, message: dict[str, Any]) -> None:
        message_id, method = _usable_id(message), message["method"]
        if message_id is None or message_id in self._unanswered:
            self._send_error(message_id, JsonRpcInvalidRequest("the id is missing, not usable, or in use"))
            return
        self._unanswered.add(message_id)
        try:
            handler = self._handler_of(method)
            params = self._params_of(message, JsonRPCRequestMessage)
            result = contextvars.copy_context().run(handler, params)
        except Exception as error:  # noqa: BLE001 (whatever a handler raises is this id's answer)
            self._answer_error(message_id, error)
            return
        if inspect.isawaitable(result):
            task = asyncio.ensure_future(result)
            self._running[message_id] = task
            task.add_done_callback(partial(self._on_finished, message_id))
        else:
            self._answer(message_id, result)

    def _handler_of(self, method: object) -> Handler:
        """The handler of a request in the present state of the connection. Raises the error to answer with."""
        if self._shutdown:
            raise JsonRpcInvalidRequest("the server is shutting down")
        if not self._initialized and method != types.INITIALIZE:
            raise JsonRpcServerNotInitialized("initialize comes first")
        if self._initialized and method == types.INITIALIZE:
            raise JsonRpcInvalidRequest("already initialized")
        handler: Handler | None = self.fm.features.get(method) if isinstance(method, str) else None
        if handler is None:
            raise JsonRpcMethodNotFound.of(str(method))
        return handler

    def _params_of(self, message: dict[str, Any], fallback: type[Any]) -> Any:
        """The typed parameters of a message. Raises JsonRpcInvalidParams, without quoting them."""
        method = message["method"]
        if method == types.INITIALIZE:
            return message.get("params")  # as JSON: see `handshake`
        message.setdefault("params", None)
        try:
            typed = self._converter.structure(message, self.get_message_type(method) or fallback)
        except Exception as error:
            raise JsonRpcInvalidParams(f"invalid params for {method}") from error
        return typed.params

    def _on_notification(self, message: dict[str, Any]) -> None:
        method = message["method"]
        if method == types.CANCEL_REQUEST:
            self._on_cancel(message.get("params"))
            return
        handler = self.fm.features.get(method) if isinstance(method, str) else None
        if handler is None or not self._hears(method):
            return
        try:
            params = self._params_of(message, JsonRPCNotification)
        except JsonRpcInvalidParams:
            logger.warning("a %s notification was malformed and could not be used", method)
            self.on_garbled(method, message.get("params"))
            return
        self._run_notification(handler, params)

    def _hears(self, method: str) -> bool:
        """Before `initialize` and after `shutdown` only `exit` is heard."""
        return method == types.EXIT or (self._initialized and not self._shutdown)

    def _run_notification(self, handler: Handler, params: Any) -> None:
        try:
            result = contextvars.copy_context().run(handler, params)
        except Exception as error:  # noqa: BLE001 (a notification has nobody to answer to)
            logger.error("a notification failed: %s", errors.describe(error))
            return
        if inspect.isawaitable(result):
            self.spawn(result)

    def spawn(self, work: Any) -> None:
        """Run an awaitable beside everything else; a failure is logged, without its message."""
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._on_background_end)

    def _on_background_end(self, task: asyncio.Future[Any]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background work failed: %s", errors.describe(error))

    def _on_cancel(self, params: object) -> None:
        message_id = _usable_id(params)
        if message_id is not None and message_id in self._running:
            _cancel_soon(self._running[message_id])

    def _on_response(self, message: dict[str, Any]) -> None:
        """A reply to a request of ours; anything else that looks like one is ignored."""
        message_id = _usable_id(message)
        if message_id is None or message_id not in self._request_futures:
            return
        future = self._request_futures.pop(message_id)
        result_type = self._result_types.pop(message_id, None) or JsonRPCResponseMessage
        if future.done():
            return
        try:
            if "error" in message:
                fault = self._converter.structure(message["error"], types.ResponseError)
                future.set_exception(JsonRpcException.from_error(fault))
            else:
                future.set_result(self._converter.structure(message, result_type).result)
        except Exception as error:  # noqa: BLE001 (cattrs raises whatever a constructor raises)
            future.set_exception(JsonRpcInvalidParams(f"the reply is malformed: {type(error).__name__}"))

    # Outgoing

    def _on_finished(self, message_id: MessageId, task: asyncio.Future[Any]) -> None:
        self._running.pop(message_id, None)
        if task.cancelled():
            self._answer_error(message_id, JsonRpcRequestCancelled("cancelled"))
        elif (error := task.exception()) is not None:
            self._answer_error(message_id, error)
        else:
            self._answer(message_id, task.result())

    def _answer(self, message_id: MessageId, result: Any) -> None:
        if message_id not in self._unanswered:
            return
        try:
            response = JsonRPCResponseMessage(id=message_id, jsonrpc=self.VERSION, result=result)
            body = self._encode(response)
        except Exception as error:  # noqa: BLE001 (a result that is no JSON is a fault of ours, and still an answer)
            self._answer_error(message_id, error)
            return
        self._unanswered.discard(message_id)
        self._write(body)

    def _answer_error(self, message_id: MessageId, error: BaseException) -> None:
        if message_id not in self._unanswered:
            return
        self._unanswered.discard(message_id)
        if not isinstance(error, JsonRpcException):
            logger.error("a request failed: %s", errors.describe(error))
            error = JsonRpcInternalError(f"internal error ({type(error).__name__})")
        self._send_error(message_id, error)

    def _send_error(self, message_id: MessageId | None, error: JsonRpcException) -> None:
        detail = {"code": error.code, "message": error.message}
        self._write(json.dumps({"jsonrpc": self.VERSION, "id": message_id, "error": detail}))

    def _send_data(self, data: Any) -> None:
        """What pygls sends for us: requests and notifications. Unlike pygls's own, nothing is logged."""
        self._write(self._encode(data))

    def _encode(self, data: Any) -> str:
        return json.dumps(data, default=self._serialize_message)

    def _write(self, body: str) -> None:
        if self.writer is None:
            return
        try:
            self.writer.write(to_frame(body))
        except (OSError, ValueError):
            # The editor is gone (a closed pipe, a closed file): there is nobody left to answer.
            self.writer = None
            self.on_exit(1)

    # Life cycle

    def open(self, editor_pid: int | None) -> None:
        """`initialize` was understood: other requests may come, from the editor whose process is `editor_pid`."""
        self._initialized = True
        if editor_pid is not None:
            self.on_editor(editor_pid)

    def begin_shutdown(self) -> None:
        """Cancel what runs (each id is answered) and refuse what comes."""
        self._shutdown = True
        for task in [*self._running.values(), *self._background]:
            if task is not asyncio.current_task():
                _cancel_soon(task)

    def exit(self) -> None:
        """The editor lets the process go: with 0 after a shutdown, as the specification asks, otherwise with 1."""
        self.on_exit(self.exit_code)

    @property
    def exit_code(self) -> int:
        """What the process returns if it ended now."""
        return 0 if self._shutdown else 1

    async def drain(self, timeout_s: float) -> None:
        """Cancel everything and wait until every request has its answer, at most `timeout_s`."""
        self.begin_shutdown()
        left = [*self._running.values(), *self._background]
        if left:
            await asyncio.wait(left, timeout=timeout_s)
        with contextlib.suppress(asyncio.CancelledError):
            # Answers are written by callbacks, which run one turn of the loop later.
            await asyncio.sleep(0)


def _cancel_soon(task: asyncio.Future[Any]) -> None:
    """Cancel a task, but not before its first step: one that never began cannot give back what its handler claimed."""
    task.get_loop().call_soon(task.cancel)


def _usable_id(message: object) -> MessageId | None:
    message_id = message.get("id") if isinstance(message, dict) else None
    return message_id if isinstance(message_id, str | int) and not isinstance(message_id, bool) else None
