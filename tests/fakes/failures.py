"""Every kind of failure, brought about by the product's own code: `FAILURES`, by kind, each a function that fails so.

Parts that are not imported by everybody (a team's engine, engines elsewhere) are imported when they are asked to fail.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Any

import msgpack

from engine.canvas_serving.checks import require_round_trip
from engine.cli.main import system_failure
from engine.connection import check_hello
from engine.core import EngineCore
from engine.diffusion.constraints.failure import unsatisfied
from engine.job import Core, Run
from engine.loop import CoreFactory, refusal_while_draining
from engine.models.checkpoint_json import read_object
from engine.models.tiny import tiny_denoiser
from engine.protocol import codec
from engine.protocol.address import Address, engine_address, make_private
from engine.protocol.errors import EngineError
from engine.protocol.messages import PROTOCOL_VERSION, Failed, Fill, Hello, Loading, Rewrite
from engine.request_checks import check_request
from engine.startup import require_device
from engine.store import Store
from lsp_server.engine_connection import connect
from tests.fakes.raw_client import raw_client, short_home
from tests.fakes.running_service import fill, greeted, running
from tests.fakes.scripted_core import ScriptedCore
from tests.fakes.word_model import WordTokenizer

Fail = Callable[[], None]


def _packed(*parts: object) -> bytes:
    packed: bytes = msgpack.packb(list(parts), use_bin_type=True)
    return packed


def _bad_frame() -> None:
    codec.decode_request(b"\xc1")


def _protocol_version() -> None:
    check_hello(Hello(PROTOCOL_VERSION + 1, "newer"), "")


def _bad_token() -> None:
    check_hello(Hello(PROTOCOL_VERSION, "thief", "guessed"), "right")


def _unknown_message() -> None:
    codec.decode_request(_packed("teleport", {}))


@contextmanager
def _address() -> Iterator[Address]:
    with short_home() as home:
        yield engine_address("scripted", {"LACUNA_HOME": str(home)})


def _unsafe_address() -> None:
    with _address() as address:
        address.path.parent.mkdir(parents=True)
        address.path.parent.chmod(0o777)
        make_private(address)


def _gone() -> None:
    with _address() as address:
        make_private(address)
        asyncio.run(connect(address, "test"))


def _answer_of(factory: CoreFactory, script: str = "", *, loading: Event | None = None) -> None:
    """Raise what an engine with that core answers a job with; while it loads, if there is `loading` to be let go."""

    async def ask(home: Path) -> object:
        async with running(home, factory) as engine:
            if loading is None:
                async with greeted(engine.address) as client:
                    client.send(fill("a", script))
                    return await client.receive()
            async with raw_client(engine.address) as client:
                client.send(Hello(PROTOCOL_VERSION, "early"), fill("a", script))
                while isinstance(reply := await client.receive(), Loading):
                    pass
                loading.set()
                return reply

    with short_home() as home:
        reply = asyncio.run(ask(home))
    assert isinstance(reply, Failed)
    raise EngineError(reply.kind, reply.message, reply.remedy)


def _loading() -> None:
    may_end = Event()

    def slow(progress: Callable[[str, float], None]) -> Core:
        progress("weights", 0.25)
        may_end.wait(20.0)
        return ScriptedCore()

    _answer_of(slow, loading=may_end)


def _draining() -> None:
    told = refusal_while_draining("a")
    raise EngineError(told.kind, told.message, told.remedy)


def _model_missing() -> None:
    with short_home() as home:
        Store.of_user({"LACUNA_HOME": str(home)}).locate("qwen2.5-coder-0.5b")


def _model_corrupt() -> None:
    with short_home() as home:
        (home / "config.json").write_text("{")
        read_object(home / "config.json")


def _model_unsupported() -> None:
    require_device("cuda:0", 0)


def _no_space() -> None:
    raise system_failure(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/somewhere/model.gguf"))


class _Greedy(ScriptedCore):
    def start(self, request: Fill | Rewrite) -> Run:
        raise MemoryError


def _out_of_memory() -> None:
    _answer_of(lambda progress: _Greedy())


def _internal() -> None:
    _answer_of(lambda progress: ScriptedCore(), "fail=crash")


def _part(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _lost(fault: Exception) -> None:
    raise _part("lsp_server.remote.http_errors", "lost_connection")(fault, "engine.example")


def _refused(status: int) -> None:
    raise _part("lsp_server.remote.http_errors", "refused")(status, "engine.example")


def _quota_exceeded() -> None:
    quota = _part("engine.team.quotas", "Quota")(0, 1)

    async def ask() -> object:
        async with _part("tests.fakes.team_gate", "serving")(quota) as served:
            headers = {"Authorization": f"Bearer {served.token}", "Lacuna-Protocol": str(PROTOCOL_VERSION)}
            async with import_module("httpx").AsyncClient(base_url=served.url, headers=headers) as http:
                body = codec.encode(fill("a"))[4:]
                answers = [await http.post("/v1/jobs", content=body) for _ in range(2)]
        return codec.decode_reply(answers[1].content[4:])

    reply = asyncio.run(ask())
    assert isinstance(reply, Failed)
    raise EngineError(reply.kind, reply.message, reply.remedy)


def _bad_request() -> None:
    check_request(Fill("1", "python", "", "", max_tokens=0))


def _window_exceeded() -> None:
    next(EngineCore(tiny_denoiser(seed=4), threads=1).start(Rewrite("1", "python", "", "x = 1\n" * 400, "", "x")))


class _Lossy(WordTokenizer):
    def decode_bytes(self, ids: object) -> bytes:
        return b"?"


def _round_trip() -> None:
    require_round_trip("a", _Lossy([b"a"]))


def _unsatisfied() -> None:
    raise unsatisfied("no text was found that parses", "ask without must-parse")


FAILURES: Mapping[str, Fail] = {
    "bad_frame": _bad_frame,
    "protocol_version": _protocol_version,
    "bad_token": _bad_token,
    "unknown_message": _unknown_message,
    "unsafe_address": _unsafe_address,
    "gone": _gone,
    "loading": _loading,
    "draining": _draining,
    "model_missing": _model_missing,
    "model_corrupt": _model_corrupt,
    "model_unsupported": _model_unsupported,
    "no_space": _no_space,
    "out_of_memory": _out_of_memory,
    "internal": _internal,
    "unreachable": lambda: _lost(ConnectionRefusedError()),
    "timed_out": lambda: _lost(TimeoutError()),
    "overloaded": lambda: _refused(429),
    "bad_reply": lambda: _refused(302),
    "bad_request": _bad_request,
    "window_exceeded": _window_exceeded,
    "round_trip": _round_trip,
    "unsatisfied": _unsatisfied,
    "quota_exceeded": _quota_exceeded,
}
