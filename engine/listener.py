"""The engine's listening socket: made private, found missing, removed.

Owns the file that leads to it (a Unix socket of mode 0600, or the endpoint file with port and token). Whoever calls
this holds the engine's lock, so a file left at the address belongs to nobody who lives.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
from pathlib import Path

from engine.protocol.address import LOOPBACK, Address, Endpoint, write_endpoint
from engine.protocol.errors import EngineError
from engine.protocol.messages import PROTOCOL_VERSION

BACKLOG = 64


class Listener:
    """A bound socket and the path that leads to it. `token` is empty on a Unix socket."""

    def __init__(self, address: Address) -> None:
        """Bind, replacing what a dead engine left. Raises EngineError(unsafe_address) if the path is something else."""
        self._path = address.path
        self.token = ""
        _remove_leftover(address.path)
        if address.transport == "unix":
            self.socket = _bind_unix(address.path)
        else:
            self.socket = socket.create_server((LOOPBACK, 0), backlog=BACKLOG)
            self.token = secrets.token_urlsafe(32)
            try:
                write_endpoint(address.path, Endpoint(PROTOCOL_VERSION, self.socket.getsockname()[1], self.token))
            except OSError as fault:
                self.socket.close()
                raise _unusable(address.path, fault) from None
        self._inode = _inode(address.path)

    def is_reachable(self) -> bool:
        """False once the path is gone or leads elsewhere (a cleaner of temporary files, a person)."""
        return _inode(self._path) == self._inode

    def remove(self) -> None:
        """Take the path away, if it is still ours. The socket itself is closed by the server that uses it."""
        if self.is_reachable():
            self._path.unlink(missing_ok=True)


def _bind_unix(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    try:
        # Until the chmod the folder's mode 0700 alone keeps others out; nobody is accepted before `listen`.
        listening.bind(str(path))
        path.chmod(0o600)
        listening.listen(BACKLOG)
    except OSError as fault:
        listening.close()
        raise _unusable(path, fault) from None
    return listening


def _unusable(path: Path, fault: OSError) -> EngineError:
    return EngineError(
        "unsafe_address",
        f"{path} cannot be listened on ({fault.strerror})",
        "make room there, or set LACUNA_HOME to another folder",
    )


def _remove_leftover(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not (stat.S_ISSOCK(mode) or stat.S_ISREG(mode)) or stat.S_ISREG(mode) != (path.suffix == ".json"):
        raise EngineError("unsafe_address", f"{path} is in the way and no engine left it", "look at it and remove it")
    path.unlink()


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
