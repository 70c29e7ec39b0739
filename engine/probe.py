"""Who is at an engine's address: nobody, one that answers a greeting, or one that accepts and says nothing.

A process that is suspended still accepts: the system does that for it. Only an answer shows that somebody lives.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from engine.protocol import codec
from engine.protocol.address import LOOPBACK, Address, read_endpoint
from engine.protocol.errors import EngineError
from engine.protocol.messages import Hello
from engine.protocol.peer import peer_process

PROBE_S = 3.0
# A version that no engine speaks: it is answered, and never counted as a client, nor needs it the token.
_NO_PROTOCOL = 0


@dataclass(frozen=True, slots=True)
class Found:
    """What a probe found. `pid` is the process that listens there, where the system tells and it is this user's."""

    state: Literal["absent", "answers", "mute"]
    pid: int | None = None


def probe(address: Address, limit_s: float = PROBE_S) -> Found:
    """Greet whoever listens at `address`, and wait up to `limit_s` seconds for a word."""
    try:
        line = _connect(address, limit_s)
    except (TimeoutError, BlockingIOError):
        # Its queue of connections is full, and nobody takes any out of it.
        return Found("mute")
    except (OSError, EngineError):
        return Found("absent")
    with line:
        pid = peer_process(line)
        try:
            # Who has already said a word and left cannot be greeted any more, but lived: the word still counts.
            with suppress(BrokenPipeError, ConnectionResetError):
                line.sendall(codec.encode(Hello(_NO_PROTOCOL, "lacuna-claim")))
            said = line.recv(1)
        except TimeoutError:
            return Found("mute", pid)
        except OSError:
            return Found("absent")
    # An end without a word is one who leaves.
    return Found("answers", pid) if said else Found("absent")


def _connect(address: Address, limit_s: float) -> socket.socket:
    if address.transport == "tcp":
        return socket.create_connection((LOOPBACK, read_endpoint(address.path).port), timeout=limit_s)
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(limit_s)
    try:
        line.connect(str(address.path))
    except OSError:
        line.close()
        raise
    return line
