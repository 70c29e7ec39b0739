"""One engine process: the right to serve, the service, signals, the exit status and the last words.

What the process does in between is `service`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping

from engine.claim import EngineLock
from engine.config import EngineConfig
from engine.leftovers import remove_leftovers
from engine.loop import CoreFactory
from engine.protocol.address import engine_address
from engine.protocol.errors import EngineError
from engine.protocol.last_words import write_last_words
from engine.service import Service


def serve(config: EngineConfig, core_factory: CoreFactory, env: Mapping[str, str] | None = None) -> int:
    """Run the engine for `config` in this process until it leaves; the exit status.

    0 when it left in order or found another engine serving this user and model already; 1, with the reason as the
    last line on standard error, when it could not serve.
    """
    try:
        address = engine_address(config.model, os.environ if env is None else env, config.transport)
        lock = EngineLock(address)
        if lock.claim() == "served":
            sys.stderr.write(f"an engine for {config.model} is already running\n")
            return 0
        remove_leftovers(address)
        service = Service(config, address, core_factory, may_serve=lock.is_ours)
        try:
            status = asyncio.run(_run_until_signalled(service))
        finally:
            lock.release()
    except EngineError as error:
        return _fail(error)
    if service.failure is not None:
        status = _fail(service.failure)
    if service.is_stuck:
        # A thread inside native code cannot be stopped, and would make an ordinary exit hang or crash.
        logging.shutdown()
        os._exit(status)
    return status


async def _run_until_signalled(service: Service) -> int:
    await service.open()
    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            _on_signal(getattr(signal, name), functools.partial(service.drain, f"got {name}"))
    return await service.run()


def _on_signal(number: int, leave: Callable[[], None]) -> None:
    events = asyncio.get_running_loop()
    try:
        events.add_signal_handler(number, leave)
    except NotImplementedError:  # Windows
        signal.signal(number, lambda *_: events.call_soon_threadsafe(leave))


def _fail(error: EngineError) -> int:
    sys.stderr.write(write_last_words(error) + "\n")
    sys.stderr.flush()
    return 1
