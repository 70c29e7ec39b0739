"""A recording as one self-contained HTML page: `render`. Pure but for reading its template from the package.

The page asks nobody for anything: styles, script and data are inside it, and its content security policy allows that
style and that script by their digests and nothing else. A person's text is text everywhere: escaped in the HTML, and in
the data no character that could end the element it stands in.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files

from engine.trace.recording import Recording, to_data

_SLOT = re.compile(r"\{\{(\w+)\}\}")


def render(recording: Recording) -> str:
    """The page. Equal recordings give equal pages."""
    style, script = _part("page.css"), _part("page.js")
    slots = {
        "policy": f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}",
        "title": html.escape(f"{recording.file}: what Lacuna did"),
        "style": style,
        "script": script,
        "recording": script_safe(
            json.dumps(to_data(recording), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        ),
    }
    # In one pass, so that a text that looks like a slot stays what it is.
    return _SLOT.sub(lambda slot: slots[slot[1]], _part("page.html"))


def script_safe(data: str) -> str:
    """JSON that may stand inside a script element: no markup begins or ends in it. Still the same JSON."""
    dangerous = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    # Half of a surrogate pair can be in JSON, and cannot be written as UTF-8.
    return re.sub("[<>&\u2028\u2029\ud800-\udfff]", lambda m: dangerous.get(m[0], f"\\u{ord(m[0]):04x}"), data)


def _part(name: str) -> str:
    return files("engine.trace").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """The source expression of an inline element (CSP level 2): the digest of exactly what stands inside it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
