"""`lacuna trace`: fill a file's holes in this process, record every step, and write a page that plays them.

The engine runs inside the command, apart from the resident one: what a step knows (every probability of every place)
is too much to send through the door, and nobody else should wait for it. The file itself is never changed.
"""

from __future__ import annotations

import asyncio
import os
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from engine.cli.files import open_source, spans_to_fill
from engine.cli.filling import Asking, Attempt, fill_each
from engine.cli.source_file import SourceFile
from engine.config import DEFAULT_MODEL, EngineConfig
from engine.protocol.errors import EngineError
from engine.protocol.messages import Done, Facts, Fill, Stats
from engine.protocol.model_name import as_written
from engine.watchable import WatchableCore

if TYPE_CHECKING:
    from engine.trace.recording import GapTrace, Recording, Step

LINES_AROUND = 14
"""How many lines of text a page shows on each side of a gap."""

Say = Callable[[str], None]


@click.command()
@click.option(
    "--model",
    default=DEFAULT_MODEL,
    envvar="LACUNA_MODEL",
    show_default=True,
    callback=lambda _context, _option, value: as_written(value),
    help="A name that `lacuna models list` shows, or the path of a GGUF file or a model's folder.",
)
@click.option("--max-tokens", type=click.IntRange(1, 2048), default=512, show_default=True)
@click.option("--language", help="LSP language id; found from the file name when not given.")
@click.option("--secret", is_flag=True, help="Go on although the file looks like a secret.")
@click.option("--at", "place", metavar="LINE:COL", help="Fill at this place (from 1) instead of at <fill> marks.")
@click.option("--out", metavar="FILE.html", help="Where the page goes; FILE.trace.html in this folder when not given.")
@click.option("--open", "show", is_flag=True, help="Show the page in the browser.")
@click.argument("file")
def trace(
    file: str,
    show: bool,
    out: str | None,
    place: str | None,
    secret: bool,
    language: str | None,
    max_tokens: int,
    model: str,
) -> None:
    """Fill the holes of FILE (- reads standard input) as `lacuna fill` does, and write a page that plays every step.

    The page holds everything it needs, also the text around the holes. FILE stays as it is.
    """
    model = as_written(model)
    source = open_source(file, language, secret=secret)
    spans = spans_to_fill(source, place)
    target = page_path(source, out)
    with Console(stderr=True).status("starting") as shown:
        recording = asyncio.run(_record(source, spans, model, max_tokens, shown.update))
    from engine.trace.page import render

    try:
        target.write_text(render(recording), encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {target}: {error.strerror}") from error
    click.echo(target)
    if show and not webbrowser.open(target.absolute().as_uri()):
        click.echo("no browser was found to show it in", err=True)


def page_path(source: SourceFile, out: str | None) -> Path:
    """Where the page is to go. Raises click.UsageError when it cannot go there: before a model is loaded for it."""
    target = Path(out or f"{source.path.name if source.path else 'stdin'}.trace.html")
    if target.is_dir():
        raise click.UsageError(f"{target} is a folder; name a file with --out FILE.html")
    if source.path and target.exists() and target.samefile(source.path):
        raise click.UsageError("--out names the file itself; name another one for the page")
    if not target.parent.is_dir():
        raise click.UsageError(f"the folder {target.parent} does not exist; make it, or name another --out")
    is_new = not target.exists()
    try:
        # The system's own word: permissions alone do not tell, least of all to root.
        target.open("ab").close()
        if is_new:
            target.unlink()
    except OSError as error:
        raise click.UsageError(f"{target} cannot be written ({error.strerror}); name another --out") from error
    return target


class WatchedEngine:
    """A core run step by step in this process; what it did for the latest request is in `steps`."""

    def __init__(self, core: WatchableCore, say: Say) -> None:
        self._core = core
        self._say = say
        self._asked = 0
        self.steps: tuple[Step, ...] = ()

    async def submit(self, request: Fill) -> Done:
        """Serve the request to its end. Raises EngineError."""
        from engine.trace.watching import Watcher

        self._asked += 1
        watcher = Watcher(self._core.tokenizer)
        self._core.watch(watcher)
        run = self._core.start(request)
        try:
            while True:
                next(run)
                self._say(f"gap {self._asked}: step {len(watcher.steps)}")
        except StopIteration as finished:
            done: Done = finished.value
            self.steps = tuple(watcher.steps)
            return done
        finally:
            run.close()
            self._core.watch(None)


async def _record(source: SourceFile, spans: list[tuple[int, int]], model: str, max_tokens: int, say: Say) -> Recording:
    from engine.trace.recording import Recording

    core = _load(model, say)
    engine = WatchedEngine(core, say)
    # The passes shown are those of the likeliest text, so that one is the answer.
    attempts = fill_each(engine, source.document, spans, Asking(max_tokens, best_of=1))
    gaps = [_gap(attempt, engine.steps) async for attempt in attempts]
    return Recording(source.path.name if source.path else source.name, model_facts(core.facts), tuple(gaps))


def _load(model: str, say: Say) -> WatchableCore:
    from engine.job import Core
    from engine.runtime.environment import prepare_environment

    prepare_environment(os.environ)
    from engine.startup import load_core

    core: Core = load_core(
        EngineConfig(model=model), lambda stage, share: say(f"loading the model: {stage} {share:.0%}")
    )
    if not isinstance(core, WatchableCore):
        raise EngineError("model_unsupported", f"the steps of {model} cannot be looked at", "trace another model")
    return core


def _gap(attempt: Attempt, steps: tuple[Step, ...]) -> GapTrace:
    from engine.trace.recording import GapTrace

    return GapTrace(
        line=attempt.before.count("\n") + 1,
        before="".join(attempt.before.splitlines(keepends=True)[-LINES_AROUND:]),
        after="".join(attempt.after.splitlines(keepends=True)[:LINES_AROUND]),
        steps=steps,
        result=attempt.inserted,
        note=attempt.note,
        facts=job_facts(attempt.done.stats),
    )


def model_facts(facts: Facts) -> tuple[tuple[str, str], ...]:
    """What a page says of the model."""
    return (
        ("model", facts.model),
        ("family", facts.family),
        ("in", f"{facts.precision} on {facts.device}"),
        ("engine", facts.engine_version),
    )


def job_facts(stats: Stats) -> tuple[tuple[str, str], ...]:
    """What a page says of one job."""
    from engine.trace.watching import offered_and_kept

    return (
        ("Ended by", stats.stop),
        ("Passes", f"{stats.passes} for {stats.tokens} tokens"),
        ("Route", f"{stats.route}: {stats.reason}"),
        ("Prompt", f"{stats.prompt_tokens} tokens, {stats.cached_tokens} of them resident already"),
        ("Time", f"{stats.ms_total:.0f} ms, of which {stats.ms_encode:.0f} ms for the prompt; recording included"),
        *offered_and_kept(stats.drafts),
    )
