"""`lacuna fill` and `lacuna rewrite`: the engine's work on a file, for people without an editor.

Exit status 0: done (and written, with --write); 1: something asked for could not be done, and why was said; 2: wrong
call. Imports both sides of the door, so this is part of the composition root.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TextIO, TypeVar

import click

from engine.cli.filling import MARK, PREFIX_CHARS, SUFFIX_CHARS, Asking, cut_off, fill_together
from engine.cli.session import EngineAddress, connected_engine
from engine.cli.source_file import SourceFile, read_source
from engine.config import DEFAULT_MODEL
from engine.protocol.messages import Constraints, Rewrite, Stats
from engine.protocol.model_name import as_written
from lsp_server.context import window
from lsp_server.document import Document, for_model
from lsp_server.edits import unified_diff
from lsp_server.holes import find_holes
from lsp_server.privacy import refusal
from lsp_server.rewrite_text import clean_rewrite
from lsp_server.settings import Settings

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
        click.option("--url", default="", help="Ask the engine at this address instead; see docs/engines.md."),
        click.option("--token-file", default="", help="A file with the token for --url."),
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
@click.option("--max-lines", type=click.IntRange(1), help="Most lines of each hole's text.")
@click.option("--max-chars", type=click.IntRange(1), help="Most characters of each hole's text.")
@click.option("--allow", metavar="CHARS", help="The only characters that may be written.")
@click.option("--must-parse", is_flag=True, help="Take no text that brings a syntax error.")
@click.option(
    "--json-schema",
    type=click.File(encoding="utf-8"),
    help="The whole file must be one JSON document that follows the JSON Schema in this file.",
)
def fill(
    file: str,
    json_schema: TextIO | None,
    must_parse: bool,
    allow: str | None,
    max_chars: int | None,
    max_lines: int | None,
    place: str | None,
    write: bool,
    secret: bool,
    as_json: bool,
    language: str | None,
    max_tokens: int,
    **where: str,
) -> None:
    """Fill the holes of FILE (- reads standard input): each <fill> mark, or the place given with --at.

    All of them are one job, so that each fits the others. A text that must obey (--max-lines and the options below it)
    is put in as the engine made it; when none is found, nothing is changed, and why is said.
    """
    source = _source(file, language, write=write, secret=secret)
    spans = spans_to_fill(source, place)
    schema = json_schema.read() if json_schema is not None else ""
    _require_rules(allow, schema if json_schema is not None else None)
    wanted = Constraints(max_lines or 0, max_chars or 0, allow or "", must_parse, schema)
    asking = Asking(max_tokens, wanted if wanted != Constraints() else None)
    result = asyncio.run(_fill_all(_address(**where), source.document, spans, asking))
    _deliver(source, result, write=write, as_json=as_json)


def _require_rules(allow: str | None, schema: str | None) -> None:
    """Raise click.UsageError for an option that was given and says nothing: it must not count as left out."""
    if allow == "":
        raise click.UsageError("--allow names no character; name those that may be written, or leave it out")
    if schema is not None and not schema.strip():
        raise click.UsageError("the file given with --json-schema is empty; {} allows any JSON document")


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
    **where: str,
) -> None:
    """Rewrite lines of FILE (- reads standard input) as an instruction says."""
    source = _source(file, language, write=write, secret=secret)
    start, end = source.line_span(*_two_numbers(lines, "--lines", "A:B"))
    if not source.document.text[start:end].strip():
        raise click.UsageError(f"lines {lines} of {source.name} hold nothing to rewrite")
    if not instruction.strip():
        raise click.UsageError("--instruction says nothing; say what to change")
    result = asyncio.run(_rewrite(_address(**where), source.document, start, end, instruction, max_tokens))
    _deliver(source, result, write=write, as_json=as_json)


def _address(model: str, url: str, token_file: str) -> EngineAddress:
    """The engine that the options ask for. The default of --model is a name that only engines of ours know."""
    if token_file and not url:
        raise click.UsageError("--token-file is for the engine at --url, and there is no --url")
    is_named = click.get_current_context().get_parameter_source("model") is not click.core.ParameterSource.DEFAULT
    return EngineAddress(model, url, token_file, model if is_named else "")


async def _fill_all(address: EngineAddress, document: Document, spans: list[tuple[int, int]], asking: Asking) -> Result:
    async with connected_engine(address) as engine:
        attempts = await fill_together(engine, document, spans, asking)
    notes = [
        f"hole {number}: {attempt.note}" if len(spans) > 1 else attempt.note
        for number, attempt in enumerate(attempts, 1)
        if attempt.text is None
    ]
    # Of a file that is judged as a whole no part is right by itself.
    is_kept = not (notes and asking.judges_whole)
    if not is_kept and len(spans) > 1:
        notes.append("the file is judged as a whole, so the other holes were left as they are, too")
    filled = [attempt.text for attempt in attempts if attempt.text is not None and is_kept]
    jobs = {id(attempt.done): attempt.done.stats for attempt in attempts}
    return Result(filled[-1] if filled else document.text, tuple(jobs.values()), tuple(notes))


async def _rewrite(
    address: EngineAddress, document: Document, start: int, end: int, instruction: str, max_tokens: int
) -> Result:
    text, selection = document.text, for_model(document.text[start:end])
    around = window(text, start, end, prefix_chars=PREFIX_CHARS, suffix_chars=SUFFIX_CHARS)
    request = Rewrite("rewrite", document.language, around.prefix, selection, around.suffix, instruction, max_tokens)
    async with connected_engine(address) as engine:
        done = await engine.submit(request)
    if done.stats.stop == "budget":
        return Result(text, (done.stats,), (cut_off(max_tokens),))
    before, after = for_model(text[:start]), for_model(text[end:])
    rewritten = clean_rewrite(done.text, before, selection, after, document.language, instruction)
    if rewritten is None:
        return Result(text, (done.stats,), ("the engine sees nothing to change",))
    return Result(text[:start] + document.to_document_newlines(rewritten) + text[end:], (done.stats,))


def spans_to_fill(source: SourceFile, place: str | None) -> list[tuple[int, int]]:
    """Offsets of the holes: the <fill> marks, or the place LINE:COL. Raises click.UsageError when there is none."""
    if place:
        offset = source.offset_at(*_two_numbers(place, "--at", "LINE:COL"))
        return [(offset, offset)]
    spans = [(hole.start, hole.end) for hole in find_holes(source.document.text, (MARK,))]
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
