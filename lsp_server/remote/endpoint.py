"""Where a remote engine is: the rules for its address, and the token that opens it.

Beyond this machine only https is spoken: documents and token would be readable on the way. Reads the token's file;
reaches no network.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from engine.protocol.address import is_loopback
from engine.protocol.errors import EngineError
from lsp_server.remote.choice import EngineChoice

LONGEST_TOKEN = 4096

_EXAMPLE = "write it like https://engine.example.org or http://127.0.0.1:8080/v1"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A checked address. `url` has no slash at its end; `host` is for people: the name, with a port if it has one.

    `is_loopback`: what is sent there stays on this machine. The `token` is empty where there is none, and is shown
    by no representation.
    """

    url: str
    host: str
    is_loopback: bool
    model: str = ""
    timeout_s: float = 30.0
    token: str = field(default="", repr=False)


def endpoint_of(choice: EngineChoice) -> Endpoint:
    """The endpoint of a choice, with the token its file holds now.

    Raises EngineError: unsafe_address for a URL or a file that cannot be used, bad_token for a file without a token.
    """
    parts, host, port = _parts(choice.url)
    stays_here = is_loopback(host)
    if parts.scheme == "http" and not stays_here:
        raise _unusable(
            f"{host} is not this machine, and http would show everybody on the way what you send",
            "use an https address, or a tunnel that ends at 127.0.0.1",
        )
    authority = _authority(host, port)
    url = f"{parts.scheme}://{authority}{parts.path.rstrip('/')}"
    token = read_token(choice.token_file) if choice.token_file else ""
    return Endpoint(url, _shown(parts, host, port), stays_here, choice.model, choice.timeout_s, token)


def host_of(choice: EngineChoice) -> str:
    """What to call the other side to a person, whether its address is any good or not."""
    try:
        return _shown(*_parts(choice.url))
    except EngineError:
        return "the engine"


def leaves_for(choice: EngineChoice) -> str:
    """The host that documents are sent to; empty when they stay on this machine, or the address is no good."""
    if choice.is_local:
        return ""
    try:
        parts, host, _ = _parts(choice.url)
    except EngineError:
        return ""
    return host if parts.scheme == "https" and not is_loopback(host) else ""


def read_token(file: str) -> str:
    """The token in `file`: its one line.

    Raises EngineError: unsafe_address when it cannot be read, or others can; bad_token when what it holds is no token.
    """
    path = Path(file).expanduser()
    try:
        with path.open("rb") as opened:
            found = os.fstat(opened.fileno())
            raw = opened.read(LONGEST_TOKEN + 1) if stat.S_ISREG(found.st_mode) else None
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "its name is none"
        raise _unusable(f"the token cannot be read from {file} ({reason})", "set `engine.tokenFile`") from None
    if raw is None:
        raise _unusable(f"{file} is no file a token could be read from", "set `engine.tokenFile`")
    if _is_open_to_others(found):
        raise _unusable(f"the token is not used, since other users may read {file}", f"run `chmod 600 {file}`")
    token = raw.strip()
    if not token or len(raw) > LONGEST_TOKEN or not all(0x21 <= byte <= 0x7E for byte in token):
        raise EngineError(
            "bad_token",
            f"{file} does not hold a token",
            f"write the token alone into it: one line of printable ASCII, at most {LONGEST_TOKEN} characters",
        )
    return token.decode("ascii")


def _is_open_to_others(found: os.stat_result) -> bool:
    """As ssh judges a key: only an owner can close a file, so one of somebody else's is theirs to answer for."""
    if os.name != "posix" or found.st_uid != os.getuid():
        return False
    return bool(found.st_mode & (stat.S_IRWXG | stat.S_IRWXO))


def _authority(host: str, port: int | None) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"


def _shown(parts: SplitResult, host: str, port: int | None) -> str:
    """A host for people. One of a single word has its port behind it, or it would read as a word of the sentence."""
    if port is None and "." not in host and ":" not in host:
        port = 443 if parts.scheme == "https" else 80
    return _authority(host, port)


def _parts(url: str) -> tuple[SplitResult, str, int | None]:
    """The parts of a URL with its host and port. Raises EngineError(unsafe_address) for one that cannot be used."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _unusable("`engine.url` is no address", _EXAMPLE) from None
    if parts.scheme not in ("http", "https") or not host or any(mark.isspace() for mark in url):
        raise _unusable("`engine.url` is no http or https address", _EXAMPLE)
    # Addresses come into logs and messages; secrets must not.
    if parts.username is not None or parts.password is not None:
        raise _unusable("`engine.url` holds a user's name or password", "put a token into a file: `engine.tokenFile`")
    if parts.query or parts.fragment:
        raise _unusable("`engine.url` has a query or a fragment", "leave out what begins with ? or #")
    return parts, host, port


def _unusable(message: str, remedy: str) -> EngineError:
    return EngineError("unsafe_address", message, remedy)
