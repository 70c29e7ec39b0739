"""Where the engine of one user and model is found, and that nobody else can stand in its place.

Owns the run folder's location and its privacy, the socket's path and, where there are no Unix sockets, the file
with the loopback port and its token. Opens no socket itself. Stdlib only.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import os
import socket
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from engine.protocol.errors import EngineError
from engine.protocol.messages import PROTOCOL_VERSION
from engine.protocol.model_name import engine_name

Transport = Literal["auto", "unix", "tcp"]
LOOPBACK = "127.0.0.1"
# Linux allows 107 bytes in sun_path and macOS 103; both need one for the end.
MAX_SOCKET_PATH_BYTES = 100


@dataclass(frozen=True, slots=True)
class Address:
    """One engine's place: `path` is the socket (unix) or the endpoint file (tcp); `lock` says who serves there."""

    model: str
    transport: Literal["unix", "tcp"]
    directory: Path
    path: Path
    lock: Path


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What the endpoint file holds: a port on the loopback interface and the secret a Hello must carry."""

    protocol: int
    port: int
    token: str


def engine_address(model: str, env: Mapping[str, str], transport: Transport = "auto") -> Address:
    """The address of the engine for `model`, a name or an absolute path. Touches no file.

    Raises EngineError(bad_request) for a name that could leave the folder, EngineError(unsafe_address) when
    `transport` is "unix" and this system has no Unix sockets or only too long paths for one.
    """
    name = f"{engine_name(model)}-v{PROTOCOL_VERSION}"
    directory = _run_directory(env)
    lock = directory / f"{name}.lock"
    if transport != "tcp":
        for path in (directory / f"{name}.sock", _short_path(directory / name, env)):
            if hasattr(socket, "AF_UNIX") and len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
                return Address(model, "unix", path.parent, path, lock)
        if transport == "unix":
            raise _unsafe(directory, "is no place for a Unix socket here: its path is too long, or there are none")
    return Address(model, "tcp", directory, directory / f"{name}.json", lock)


def paths_of(place: Path, address: Address) -> tuple[Path, ...]:
    """Where the engine whose lock is `place` and ".lock", in the run folder of `address`, may have listened."""
    beside = (place.with_name(f"{place.name}.{ending}") for ending in ("sock", "json"))
    return (*beside, address.path.parent / _short_name(place))


def make_private(address: Address) -> None:
    """Make the address's folders, mode 0700. Raises EngineError(unsafe_address) if one cannot be trusted."""
    for directory in {address.directory, address.lock.parent}:
        try:
            directory.parent.mkdir(parents=True, exist_ok=True)
            directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as fault:
            raise _unsafe(directory, f"cannot be made ({fault.strerror})") from None
        require_private(directory)


def require_private(directory: Path) -> None:
    """Raises EngineError(unsafe_address) unless `directory` is a real folder that only this user can enter.

    Raises FileNotFoundError where there is none: then there is no engine either. Windows keeps a user's
    temporary folder private by its access lists; owner and mode are only checked where they exist.
    """
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise _unsafe(directory, "is not a real folder (a link or a file)")
    _require_own(directory, found)


def write_endpoint(path: Path, endpoint: Endpoint) -> None:
    """Put `endpoint` at `path` in one step, mode 0600: a reader sees the old file or the new one, never a part."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(endpoint), file)
    draft.replace(path)


def read_endpoint(path: Path) -> Endpoint:
    """The endpoint at `path`.

    Raises FileNotFoundError where there is none, EngineError(unsafe_address) for a file that another user could
    have written or that does not hold an endpoint.
    """
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise _unsafe(path, "is not a plain file")
    _require_own(path, found)
    try:
        match json.loads(path.read_text(encoding="utf-8")):
            case {"protocol": int() as protocol, "port": int() as port, "token": str() as token}:
                return Endpoint(protocol, port, token)
    except ValueError:
        pass
    raise _unsafe(path, "does not hold an engine's port and token")


def same_token(expected: str, offered: str) -> bool:
    """Compare in a time that does not tell how much of the token was right."""
    return hmac.compare_digest(expected.encode(), offered.encode())


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what listens at `host`, a name or an address without brackets.

    Names below localhost are a resolver's to answer, and not every resolver keeps them here.
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _run_directory(env: Mapping[str, str]) -> Path:
    if home := env.get("LACUNA_HOME"):
        return Path(home).expanduser().absolute() / "run"
    if runtime := env.get("XDG_RUNTIME_DIR"):
        return Path(runtime).absolute() / "lacuna"
    return _temporary_directory(env)


def _temporary_directory(env: Mapping[str, str]) -> Path:
    user = str(os.getuid()) if hasattr(os, "getuid") else env.get("USERNAME", "user")
    return _temporary_root(env) / f"lacuna-{user}"


def _temporary_root(env: Mapping[str, str]) -> Path:
    """Where temporary files go.

    Not by `tempfile`, which tries to write there: on a full disk it finds another place, or none at all, and both sides
    of the door must find the same one.
    """
    for name in ("TMPDIR", "TEMP", "TMP"):
        if (named := env.get(name)) and Path(named).is_dir():
            return Path(named).absolute()
    # Whoever uses it makes a folder of mode 0700 in it, and refuses one that somebody else made.
    return Path("/tmp") if os.name == "posix" else Path.home() / "AppData" / "Local" / "Temp"  # noqa: S108


def _short_path(place: Path, env: Mapping[str, str]) -> Path:
    return _temporary_directory(env) / _short_name(place)


def _short_name(place: Path) -> str:
    return f"{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}.sock"


def _require_own(path: Path, found: os.stat_result) -> None:
    if not hasattr(os, "getuid"):
        return
    if found.st_uid != os.getuid():
        raise _unsafe(path, f"belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o077:
        raise _unsafe(path, f"is open to others (mode {stat.S_IMODE(found.st_mode):04o})")


def _unsafe(path: Path, fault: str) -> EngineError:
    return EngineError(
        "unsafe_address",
        f"{path} {fault}",
        "look at it and remove it, or set LACUNA_HOME to a short path that only you can enter",
    )
