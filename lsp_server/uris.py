"""The parts of a document's URI. Editors send what they like; no text is so odd that reading it fails."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Uri:
    """`path` is decoded and has forward slashes; of a URI that is none it is the whole text."""

    scheme: str
    authority: str
    path: str


def parts_of(uri: str) -> Uri:
    """The parts of any text that is used as a URI."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return Uri("", "", uri)
    return Uri(parts.scheme.lower(), unquote(parts.netloc).lower(), unquote(parts.path).replace("\\", "/"))
