"""A text somebody names on the command line: read, located in, written back without touching anything else."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click

from lsp_server.document import Document
from lsp_server.positions import PositionEncoding

STDIN = "-"
BOM = b"\xef\xbb\xbf"
# Where the lexer's name is not the LSP language id.
_LANGUAGE_IDS = {
    "bash": "shellscript",
    "js": "javascript",
    "jsx": "javascriptreact",
    "ts": "typescript",
    "tsx": "typescriptreact",
    "rb": "ruby",
    "md": "markdown",
    "text": "plaintext",
}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A text as it was read: `path` is None for standard input, `data` the file's bytes, `document` its text."""

    path: Path | None
    document: Document
    data: bytes

    @property
    def name(self) -> str:
        """What a diff calls it."""
        return str(self.path) if self.path else "stdin"

    def offset_at(self, line: int, column: int) -> int:
        """The offset of a place given from 1. Raises click.UsageError for a line the text does not have."""
        count = self.document.index.line_count
        if not 1 <= line <= count or column < 1:
            raise click.UsageError(f"{self.name} has lines 1 to {count} and columns from 1, not {line}:{column}")
        return self.document.index.to_offset(line - 1, column - 1, PositionEncoding.UTF32)

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """Offsets of lines `first` to `last` (from 1, both included), without the last line end."""
        count = self.document.index.line_count
        if not 1 <= first <= last <= count:
            raise click.UsageError(f"lines {first}:{last} are not part of {self.name}, which has lines 1 to {count}")
        return self.offset_at(first, 1), self.offset_at(last, len(self.document.text) + 1)

    def write(self, text: str) -> None:
        """Put `text` in place of the file in one step: a crash leaves the old text or the new one, never a part.

        Raises click.ClickException when the file was changed since it was read, may not be written, or cannot be.
        """
        if self.path is None:
            raise click.UsageError("standard input cannot be written back")
        data = (BOM if self.data.startswith(BOM) else b"") + text.encode("utf-8")
        try:
            self._require_writable(real := self.path.resolve())
            # A second name for the same file must go on naming it, so that one is written in place.
            if real.stat().st_nlink > 1:
                real.write_bytes(data)
            else:
                _replace(real, data)
        except OSError as error:
            raise click.ClickException(f"cannot write {self.path}: {error.strerror}") from error

    def _require_writable(self, real: Path) -> None:
        if not real.stat().st_mode & stat.S_IWUSR or not os.access(real, os.W_OK):
            raise click.ClickException(f"cannot write {self.path}: it is read-only; nothing was changed")
        if real.read_bytes() != self.data:
            raise click.ClickException(f"{self.path} was changed meanwhile; nothing was written, run the command again")


def _replace(file: Path, data: bytes) -> None:
    """Write beside `file` and rename over it, keeping its mode."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as written:
            written.write(data)
        partial.chmod(stat.S_IMODE(file.stat().st_mode))
        partial.replace(file)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def read_source(file: str, language: str | None) -> SourceFile:
    """Read FILE, or standard input for `-`. Raises click.ClickException for what cannot be read or is not text."""
    path = None if file == STDIN else Path(file)
    try:
        data = sys.stdin.buffer.read() if path is None else path.read_bytes()
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror}") from error
    try:
        text = data.removeprefix(BOM).decode("utf-8")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{file} is not UTF-8 text (byte {error.start}); convert it first") from error
    uri = path.absolute().as_uri() if path else "untitled:stdin"
    return SourceFile(path, Document.open(uri, 0, language or language_id(path, text), text), data)


def language_id(path: Path | None, text: str) -> str:
    """The LSP language id by file name; plaintext for names nobody knows, and for standard input."""
    from pygments.lexers import find_lexer_class_for_filename

    lexer = find_lexer_class_for_filename(path.name, text[:4096]) if path else None
    alias = lexer.aliases[0] if lexer and lexer.aliases else "plaintext"
    return _LANGUAGE_IDS.get(alias, alias)
