"""Imported by Python at its start where this folder is on PYTHONPATH: writes down every socket, refuses all but local.

Lines of the file that `SOCKET_TRACE` names: process id, audit event, address, tab between them. Names of hosts may not
even be asked about.
"""

from __future__ import annotations

import os
import sys
from typing import Any

_WITH_ADDRESS = ("socket.bind", "socket.connect", "socket.sendto", "socket.sendmsg")
_NAMES = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo")


def guard(event: str, arguments: tuple[Any, ...]) -> None:
    """An audit hook (PEP 578); it cannot be taken away again."""
    if event not in _WITH_ADDRESS and event not in _NAMES:
        return
    address = arguments[1] if event in _WITH_ADDRESS else arguments
    local = event in _WITH_ADDRESS and isinstance(address, str | bytes)
    shown = os.fsdecode(address) if isinstance(address, str | bytes) else repr(address)
    with open(os.environ["SOCKET_TRACE"], "a", encoding="utf-8") as trace:  # noqa: PTH123 - pathlib may not be imported
        trace.write(f"{os.getpid()}\t{event}\t{shown}\n")
    if not local:
        raise PermissionError(f"{event} {address!r}: only local sockets here")


sys.addaudithook(guard)
