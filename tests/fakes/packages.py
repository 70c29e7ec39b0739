"""Small packages of each registry, as their clients would bring them."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

METADATA = "Metadata-Version: 2.4\nName: demo\nVersion: 1.0\nLicense-Expression: {licence}\n"
COPYRIGHT = """Format: DEP-5
Upstream-Name: demo

Files: *
Copyright: 2020 Somebody
License: Expat

Files: src/borrowed/*
Copyright: 2001 Somebody else
License: GPL-2+

License: GPL-2+
 On Debian systems the text is elsewhere.
"""


def module(name: str, lines: int = 60) -> str:
    """A module long enough for the filters, different for every name."""
    body = "".join(f"    {name}_{index} = total + scale * {index}\n" for index in range(lines))
    return f"def {name}(total, scale):\n{body}    return total\n"


def write_wheel(path: Path, files: Mapping[str, str | bytes], licence: str = "MIT") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("demo-1.0.dist-info/METADATA", METADATA.format(licence=licence))
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def write_npm(path: Path, files: Mapping[str, str | bytes], licence: object = "MIT") -> Path:
    package = json.dumps({"name": "demo", "version": "1.0.0", "license": licence})
    return write_tar(path, {f"package/{name}": text for name, text in {"package.json": package, **files}.items()})


def write_debian(folder: Path, files: Mapping[str, str | bytes], copyright_text: str = COPYRIGHT) -> list[Path]:
    """The upstream tar and Debian's own."""
    upstream = write_tar(
        folder / "demo_1.0.orig.tar.gz", {f"demo-1.0/{name}": content for name, content in files.items()}
    )
    own = write_tar(folder / "demo_1.0-1.debian.tar.xz", {"debian/copyright": copyright_text})
    return sorted([upstream, own])


def write_deb(path: Path, files: Mapping[str, str | bytes], copyright_text: str) -> Path:
    """A .deb: an `ar` archive of a mark, a control tar nobody needs and the tar of installed files."""
    inner = {"usr/share/doc/demo/copyright": copyright_text, **files}
    tar = write_tar(path.with_suffix(".data.tar.xz"), {f"./{name}": content for name, content in inner.items()})
    parts = {"debian-binary": b"2.0", "control.tar.xz": b"odd", "data.tar.xz": tar.read_bytes()}
    tar.unlink()
    members = (
        f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        for name, data in parts.items()
    )
    path.write_bytes(b"!<arch>\n" + b"".join(members))
    return path


def write_tar(path: Path, files: Mapping[str, str | bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    mode: Literal["w:xz", "w:gz"] = "w:xz" if path.suffix == ".xz" else "w:gz"
    with tarfile.open(path, mode) as archive:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path
