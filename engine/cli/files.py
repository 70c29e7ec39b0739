"""`lacuna fill` and `lacuna rewrite`: the engine's work on a file, for people without an editor.

Exit status 0: done (and written, with --write); 1: something asked for could not be done, and why was said; 2: wrong
call. Imports both sides of the door, so this is part of the composition root.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, Protocol, TypeVar

import click

from engine.cli.session import connected_engine
from engine.cli.source_file import SourceFile, read_source
from engine.config import DEFAULT_MODEL
from engine.protocol.messages import Done, Fill, Rewrite, Stats
from engine.protocol.model_name import as_written
from lsp_server.context import window
from lsp_server.document import Document, for_model
from lsp_server.edits import unified_diff
from lsp_server.ghost_text import present_in
from lsp_server.privacy import refusal
from lsp_server.rewrite_text import clean_rewrite
from lsp_server.settings import Settings
from lsp_server.syntax import holes

PREFIX_CHARS = 8000
SUFFIX_CHARS = 4000
MARK = "<fill>"
OPEN_HOLE = "..."
_Command = TypeVar("_Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Result:
    """An edited text, the stats of each engine job, and notes for the person."""

    text: str
    stats: tuple[Stats, ...]
    notes: tuple[str, ...] = ()


def _common_options(command: _Command) -> _Command:
    """Options both commands have."""
    for option in (
        click.option(
            "--model",
            default=DEFAULT_MODEL,
            envvar="LACUNA_MODEL",
            show_default=True,
            callback=lambda _context, _option, value: as_written(value),
            help="A name that `lacuna models list` shows, or the path of a GGUF file or a model's folder.",
        ),
        click.option("--max-tokens", type=click.IntRange(1, 2048), default=512, show_default=True),
        click.option("--language", help="LSP language id; found from the file name when not given."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the text and the stats."),
        click.option("--write", is_flag=True, help="Write the file instead of printing a diff."),
        click.option("--secret", is_flag=True, help="Go on although the file looks like a secret."),
        click.argument("file"),
    ):
        command = option(command)
    return command


@click.command()
@_common_options
@click.option("--at", "place", metavar="LINE:COL", help="Fill at this place (from 1) instead of at <fill> marks.")
def fill(
    file: str,
    place: str | None,
    write: bool,
    secret: bool,
    as_json: bool,
    language: str | None,
    max_tokens: int,
    model: str,
) -> None:
    """Fill the holes of FILE (- reads standard input): each <fill> mark, or the place given with --at."""
    source = _source(file, language, write=write, secret=secret)
    spans = spans_to_fill(source, place)
    result = asyncio.run(_fill_all(model, source.document, spans, max_tokens))
    _deliver(source, result, write=write, as_json=as_json)


@click.command()
@_common_options
@click.option("--lines", metavar="A:B", required=True, help="First and last line to rewrite, from 1.")
@click.option("--instruction", required=True, help="What to change, in words.")
def rewrite(
    file: str,
    lines: str,
    instruction: str,
    write: bool,
    secret: bool,
    as_json: bool,
    language: str | None,
    max_tokens: int,
    model: str,
) -> None:
    """Rewrite lines of FILE (- reads standard input) as an instruction says."""
    source = _source(file, language, write=write, secret=secret)
    start, end = source.line_span(*_two_numbers(lines, "--lines", "A:B"))
    if not source.document.text[start:end].strip():
        raise click.UsageError(f"lines {lines} of {source.name} hold nothing to rewrite")
    if not instruction.strip():
        raise click.UsageError("--instruction says nothing; say what to change")
    result = asyncio.run(_rewrite(model, source.document, start, end, instruction, max_tokens))
    _deliver(source, result, write=write, as_json=as_json)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One hole asked for. before, after: the text around it at that time; done: the engine's answer.

    text: the whole text with the hole filled, and inserted what went in; both None when nothing did, and note says why.
    """

    before: str
    after: str
    done: Done
    text: str | None = None
    inserted: str | None = None
    note: str = ""


class Asked(Protocol):
    """What fills a gap: the resident engine, or one inside this process."""

    async def submit(self, request: Fill) -> Done: ...


async def _fill_all(model: str, document: Document, spans: list[tuple[int, int]], max_tokens: int) -> Result:
    async with connected_engine(model) as engine:
        attempts = [attempt async for attempt in fill_each(engine, document, spans, max_tokens)]
    notes = [
        f"hole {number}: {attempt.note}" if len(spans) > 1 else attempt.note
        for number, attempt in enumerate(attempts, 1)
        if attempt.text is None
    ]
    filled = [attempt.text for attempt in attempts if attempt.text is not None]
    return Result(filled[-1] if filled else document.text, tuple(a.done.stats for a in attempts), tuple(notes))


async def fill_each(
    engine: Asked, document: Document, spans: list[tuple[int, int]], max_tokens: int
) -> AsyncIterator[Attempt]:
    """Fill hole after hole from the top, each with the earlier ones already filled; one that fails keeps its mark."""
    text = document.text
    behind = [(len(text) - start, len(text) - end) for start, end in spans]
    for number, (to_start, to_end) in enumerate(behind, 1):
        before, after = text[: len(text) - to_start], text[len(text) - to_end :]
        now = Document.open(document.uri, number, document.language, before + after)
        attempt = await _fill_one(engine, now, len(before), max_tokens)
        text = text if attempt.text is None else attempt.text
        yield attempt


async def _fill_one(engine: Asked, document: Document, offset: int, max_tokens: int) -> Attempt:
    around = window(document.text, offset, offset, prefix_chars=PREFIX_CHARS, suffix_chars=SUFFIX_CHARS)
    # Holes still open are shown as open: an empty place would look like code that is complete as it stands.
    prefix, suffix = around.prefix.replace(MARK, OPEN_HOLE), around.suffix.replace(MARK, OPEN_HOLE)
    request = Fill(f"fill-{offset}", document.language, prefix, suffix, max_tokens=max_tokens)
    done = await engine.submit(request)
    attempt = Attempt(document.text[:offset], document.text[offset:], done)
    if done.stats.stop == "budget":
        return replace(attempt, note=_cut_off(max_tokens))
    ghost = present_in(document, offset, done.text, single_line=False, automatic=False)
    if ghost is None:
        return replace(attempt, note="the engine has nothing to add here")
    inserted = document.to_document_newlines(ghost.text)
    text = document.text[: ghost.start] + inserted + document.text[ghost.end :]
    return replace(attempt, text=text, inserted=inserted)


async def _rewrite(model: str, document: Document, start: int, end: int, instruction: str, max_tokens: int) -> Result:
    text, selection = document.text, for_model(document.text[start:end])
    around = window(text, start, end, prefix_chars=PREFIX_CHARS, suffix_chars=SUFFIX_CHARS)
    request = Rewrite("rewrite", document.language, around.prefix, selection, around.suffix, instruction, max_tokens)
    async with connected_engine(model) as engine:
        done = await engine.submit(request)
    if done.stats.stop == "budget":
        return Result(text, (done.stats,), (_cut_off(max_tokens),))
    before, after = for_model(text[:start]), for_model(text[end:])
    rewritten = clean_rewrite(done.text, before, selection, after, document.language, instruction)
    if rewritten is None:
        return Result(text, (done.stats,), ("the engine sees nothing to change",))
    return Result(text[:start] + document.to_document_newlines(rewritten) + text[end:], (done.stats,))


def _cut_off(max_tokens: int) -> str:
    return f"the answer was cut off after {max_tokens} tokens, nothing was changed; allow more with --max-tokens"


def spans_to_fill(source: SourceFile, place: str | None) -> list[tuple[int, int]]:
    """Offsets of the holes: the <fill> marks, or the place LINE:COL. Raises click.UsageError when there is none."""
    if place:
        offset = source.offset_at(*_two_numbers(place, "--at", "LINE:COL"))
        return [(offset, offset)]
    spans = holes(source.document.text, MARK)
    if not spans:
        raise click.UsageError(f"{source.name} has no hole: mark one with {MARK}, or say where with --at LINE:COL")
    return spans


def open_source(file: str, language: str | None, *, secret: bool) -> SourceFile:
    """Read FILE as what the engine may see. Raises click.ClickException for what cannot be read, and for secrets."""
    source = read_source(file, language)
    if not secret and refusal(source.document, Settings()) == "secret":
        raise click.ClickException(
            f"{source.name} looks like a secret and is not given to the engine; --secret does it"
        )
    return source


def _source(file: str, language: str | None, *, write: bool, secret: bool) -> SourceFile:
    source = open_source(file, language, secret=secret)
    if write and source.path is None:
        raise click.UsageError("--write needs a file: standard input cannot be written back")
    return source


def _two_numbers(value: str, option: str, form: str) -> tuple[int, int]:
    numbers = value.split(":")
    if len(numbers) != 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        raise click.UsageError(f"{option} wants {form}, two numbers counted from 1, not {value!r}")
    return int(numbers[0]), int(numbers[1])


def _deliver(source: SourceFile, result: Result, *, write: bool, as_json: bool) -> None:
    """Write or print the result; notes go to standard error."""
    before = source.document.text
    changed = result.text != before
    diff = unified_diff(before, result.text, source.name) if changed else ""
    if write and changed:
        source.write(result.text)
    if as_json:
        report = {
            "file": source.name,
            "changed": changed,
            "text": result.text,
            "diff": diff,
            "notes": list(result.notes),
            "stats": [asdict(stats) for stats in result.stats],
        }
        click.echo(json.dumps(report, ensure_ascii=False))
    elif not write:
        click.echo(diff, nl=False)
    elif changed:
        click.echo(f"wrote {source.name}", err=True)
    for note in result.notes:
        click.echo(note, err=True)
    if result.notes:
        sys.exit(1)
