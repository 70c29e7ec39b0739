"""Who may use a team's engine: tokens, kept as digests in a file of `user sha256:hex` lines.

A token is 256 random bits, so one round of SHA-256 is enough to keep it: there is nothing to guess. Pure.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from engine.protocol.errors import EngineError

_USER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_BEARER = "Bearer "


@dataclass(frozen=True, slots=True)
class TokenBook:
    """Users and the digests of their tokens. A user may have several tokens, so that one can be replaced at leisure."""

    entries: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> TokenBook:
        """What a tokens file holds; blank lines and `#` comments are passed over.

        Raises EngineError(bad_request) naming the line at fault, or when nobody is in it.
        """
        entries: list[tuple[str, str]] = []
        for number, line in enumerate(text.splitlines(), start=1):
            words = line.partition("#")[0].split()
            if not words:
                continue
            digest = _DIGEST.fullmatch(words[-1])
            if len(words) != 2 or not _USER.fullmatch(words[0]) or digest is None:
                raise _bad_file(f"line {number} is not `user sha256:` and 64 hexadecimal digits")
            entries.append((words[0], digest.group(1)))
        if not entries:
            raise _bad_file("it names nobody")
        return cls(tuple(entries))

    def user_of(self, token: str) -> str | None:
        """Whose token it is. How long that takes tells nothing: every digest is compared, each in constant time."""
        digest = digest_of(token)
        found = None
        for user, known in self.entries:
            if hmac.compare_digest(known, digest):
                found = user
        return found

    @property
    def users(self) -> Sequence[str]:
        """Everybody in it, once."""
        return tuple(dict.fromkeys(user for user, _ in self.entries))


def entries_of(user: str, text: str) -> int:
    """How many lines of a tokens file let `user` in; lines that are none count for nobody."""
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return sum(len(words) == 2 and words[0] == user and _DIGEST.fullmatch(words[1]) is not None for words in lines)


def digest_of(token: str) -> str:
    """SHA-256 of a token, in hexadecimal digits."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def new_entry(user: str) -> tuple[str, str]:
    """A new token for `user`, and the line that lets it in. Raises EngineError(bad_request) for no user's name."""
    if not _USER.fullmatch(user):
        raise EngineError(
            "bad_request",
            f"{user[:64]!r} is no name for a user",
            "use up to 64 letters, digits and . _ @ + - and begin with a letter or digit",
        )
    token = secrets.token_urlsafe(32)
    return token, f"{user} sha256:{digest_of(token)}"


def bearer(header: str) -> str:
    """The token of an `Authorization` header, empty where it holds none."""
    return header[len(_BEARER) :].strip() if header.startswith(_BEARER) else ""


def _bad_file(fault: str) -> EngineError:
    return EngineError(
        "bad_request",
        f"the tokens file cannot be used: {fault}",
        "make an entry with `lacuna engine token USER --tokens FILE`",
    )
