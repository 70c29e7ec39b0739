"""Who is at the other end of a local socket: the user id and the process, where the system tells.

Linux has SO_PEERCRED (unix(7)), macOS and FreeBSD LOCAL_PEERCRED (unix(4) there), macOS LOCAL_PEERPID besides;
elsewhere, and on TCP, nobody can say, and the folder's mode and the token are what guards. Stdlib only.
"""

from __future__ import annotations

import os
import socket
import struct
import sys

from engine.protocol.errors import EngineError

# struct ucred: pid, uid, gid.
_UCRED = struct.Struct("3i")
# struct xucred: version, uid, number of groups, 16 groups.
_XUCRED = struct.Struct("=IIh2x16I")
_LOCAL_LEVEL = 0
_LOCAL_PEERCRED = 1
# sys/un.h of macOS; Python's socket module does not have it.
_LOCAL_PEERPID = 2


def peer_uid(connection: socket.socket) -> int | None:
    """The user id of the process that made the other end, None where the system does not tell it. Raises OSError."""
    if not hasattr(socket, "AF_UNIX") or connection.family != socket.AF_UNIX:
        return None
    if hasattr(socket, "SO_PEERCRED"):
        _, uid, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        return int(uid)
    if sys.platform == "darwin" or "freebsd" in sys.platform:
        return _xucred_uid(connection.getsockopt(_LOCAL_LEVEL, _LOCAL_PEERCRED, _XUCRED.size))
    return None


def peer_process(connection: socket.socket) -> int | None:
    """The process at the other end, if the system tells it and it is another one of this user's; else None."""
    try:
        uid = peer_uid(connection)
        if uid is None or uid != os.geteuid():
            return None
        if hasattr(socket, "SO_PEERCRED"):
            pid, _, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        elif sys.platform == "darwin":
            (pid,) = struct.unpack("i", connection.getsockopt(_LOCAL_LEVEL, _LOCAL_PEERPID, 4))
        else:
            return None
    except OSError:
        return None
    return int(pid) if pid > 0 and pid != os.getpid() else None


def _xucred_uid(found: bytes) -> int:
    """The uid in a struct xucred; macOS leaves out groups there are none of."""
    _, uid, *_ = _XUCRED.unpack(found.ljust(_XUCRED.size, b"\0")[: _XUCRED.size])
    return int(uid)


def require_same_user(connection: socket.socket) -> None:
    """Raises EngineError(unsafe_address) if the other end is known to be another user's.

    The folder around the socket keeps others out; this holds where somebody exchanged it between look and connect, or
    passed an open socket on.
    """
    try:
        uid = peer_uid(connection)
    except OSError as fault:
        raise _stranger(f"cannot be told ({fault.strerror})") from None
    if uid is not None and uid != os.geteuid():
        raise _stranger(f"is another user's (uid {uid})")


def _stranger(what: str) -> EngineError:
    return EngineError(
        "unsafe_address",
        f"the other end of the engine's socket {what}",
        "look at who uses the folder, or set LACUNA_HOME to one that only you can enter",
    )
