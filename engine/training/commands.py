"""The stages' command lines: `corpus`, `shards`, `train`, `evaluate`, `plot`, `export`. Words and options only.

What a stage needs is imported when it runs, so that `--help` does not wait for torch.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from engine.config import DEFAULT_MODEL
from engine.protocol.errors import EngineError

if TYPE_CHECKING:
    from engine.training.laboratory import Laboratory

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FOLDER = click.Path(path_type=Path, file_okay=False)
_CORPUS_COMMANDS = ("corpus", "shards")
_FILE = click.Path(path_type=Path, dir_okay=False)


def _model_file_option(command: _Command) -> _Command:
    return click.option("--model-file", type=_FILE, help="The base model's GGUF.  [default: the pulled default model]")(
        command
    )


def _run_option(command: _Command) -> _Command:
    return click.option("--run", "folder", type=_FOLDER, required=True, help="The run's folder.")(command)


def _computing_options(command: _Command) -> _Command:
    for option in (
        click.option("--threads", type=click.IntRange(0), default=0, help="Threads; 0 means one per core."),
        click.option("--device", default="cpu", show_default=True, help="cpu, cuda or cuda:N."),
        click.option(
            "--precision",
            type=click.Choice(["packed", "int8", "fp32", "bf16"]),
            help="Frozen weights; int8 is for the CPU.  [default: bf16 on cuda, on cpu whichever is faster there]",
        ),
        _model_file_option,
        click.option("--shards", type=_FOLDER, required=True, help="Folder with train-*.safetensors and held_out."),
    ):
        command = option(command)
    return command


class _Stages(click.Group):
    """The commands below, and those of `corpus_cli`, which is loaded when one of them or the overview is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *_CORPUS_COMMANDS])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _CORPUS_COMMANDS:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(importlib.import_module("engine.training.corpus_cli"), cmd_name)
        return command


@click.group(cls=_Stages, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """The recipe behind the shipped adapter, stage by stage. Costs of each stage: engine/training/README.md."""


@main.command()
@_computing_options
@_run_option
@click.option(
    "--hours",
    type=float,
    required=True,
    help="Train until the run has used this many hours of processor time, all cores together.",
)
@click.option("--initial", type=_FILE, help="A new run starts from this adapter.  [default: terms that change nothing]")
@click.option("--rank", type=click.IntRange(1), default=32, show_default=True, help="Rank of such terms.")
@click.option("--settings", type=_FILE, help="JSON as in a run's settings.json.  [default: the run's own]")
@click.option("--set", "changes", multiple=True, metavar="NAME=JSON", help="Change one, e.g. weights.masks=0.5")
@click.option("--held-out", type=click.IntRange(1), default=96, show_default=True, help="Gaps scored each time.")
@click.option("--workers", type=click.IntRange(0), default=0, help="Gaps computed at once; 0: one per core on a CPU.")
@click.option("--report-s", type=float, default=60.0, show_default=True, help="Seconds between loss reports.")
@click.option("--held-out-s", type=float, default=1200.0, show_default=True, help="Seconds between evaluations.")
@click.option("--checkpoint-s", type=float, default=600.0, show_default=True, help="Seconds between checkpoints.")
def train(
    shards: Path,
    model_file: Path | None,
    precision: str | None,
    device: str,
    threads: int,
    folder: Path,
    hours: float,
    initial: Path | None,
    rank: int,
    settings: Path | None,
    changes: tuple[str, ...],
    held_out: int,
    workers: int,
    report_s: float,
    held_out_s: float,
    checkpoint_s: float,
) -> None:
    """Train low-rank terms, or go on with the run in the folder. Numbers go to RUN/metrics.jsonl.

    Ctrl-C and SIGTERM end it after the present step, with a checkpoint and exit status 0; a second one at once.
    """
    from engine.training.run import Intervals
    from engine.training.run_folder import claimed, settings_of
    from engine.training.run_settings import read_settings
    from engine.training.stop_signals import stop_requests

    with _faults_said(), claimed(folder):
        chosen = read_settings(settings or settings_of(folder), _pairs(changes))
        lab = _laboratory(shards, model_file, precision, device, threads)
        run = lab.run(folder, chosen, held_out, initial=initial, rank=rank, workers=workers or _cores(device))
        done = run.standing
        with stop_requests() as stopped:
            click.echo(f"{run.count():,} numbers, {done.seconds / 3600:.2f} core hours and {done.step} steps done")
            intervals = Intervals(report_s, held_out_s, checkpoint_s)
            run.train(lambda standing: standing.seconds >= hours * 3600, intervals, stopped)
        click.echo(f"{run.standing.seconds / 3600:.2f} core hours and {run.standing.step} steps saved")


@main.command()
@_computing_options
@click.option("--run", "folder", type=_FOLDER, help="Score the averaged terms of this run.")
@click.option("--adapter", type=_FILE, help="Score this adapter file.")
@click.option("--limit", type=click.IntRange(1), default=400, show_default=True, help="Held-out gaps.")
@click.option("--order", type=click.Choice(["prefix_first", "suffix_first"]), help="Of the prompt.  [default: mixed]")
@click.option("--frequent", type=click.IntRange(1), default=24576, show_default=True, help="Ids in the output layer.")
def evaluate(
    shards: Path,
    model_file: Path | None,
    precision: str | None,
    device: str,
    threads: int,
    folder: Path | None,
    adapter: Path | None,
    limit: int,
    order: Literal["prefix_first", "suffix_first"] | None,
    frequent: int,
) -> None:
    """Score a run or an adapter on held-out gaps; one JSON object."""
    from engine.training.held_out import score_gap, summarise

    with _faults_said():
        lab = _laboratory(shards, model_file, precision, device, threads)
        if folder is not None and adapter is None:
            terms = lab.averaged(folder)
        elif adapter is not None and folder is None:
            terms = lab.adapter(adapter)
        else:
            raise click.UsageError("give either --run or --adapter")
        head = lab.head(frequent)
        scores = [score_gap(lab.model, terms, head, gap) for gap in lab.held_out(limit, order)]
        click.echo(json.dumps({name: round(value, 5) for name, value in summarise(scores).items()}))


@main.command()
@_run_option
@click.option("--out", type=_FILE, required=True, help="The image, PNG or SVG by its ending.")
def plot(folder: Path, out: Path) -> None:
    """Draw a run's held-out curves."""
    from engine.training.metrics import plot as draw
    from engine.training.run_folder import METRICS

    with _faults_said():
        draw(folder / METRICS, out)


@main.command()
@_computing_options
@_run_option
@click.option("--limit", type=click.IntRange(1), default=200, show_default=True, help="Held-out gaps that are scored.")
@click.option("--frequent", type=click.IntRange(1), default=24576, show_default=True, help="Ids in the output layer.")
@click.option("--out", type=_FILE, required=True, help="The adapter file; its digest goes beside it.")
def export(
    shards: Path,
    model_file: Path | None,
    precision: str | None,
    device: str,
    threads: int,
    folder: Path,
    limit: int,
    frequent: int,
    out: Path,
) -> None:
    """Write a run's averaged terms as an adapter file (fp16) with its digest.

    What the masks' probabilities are worth is measured on held-out gaps and stored in it.
    """
    from engine.models.adapter import CONFIDENCE
    from engine.training.confidence_fit import fit_confidence
    from engine.training.export import export_terms
    from engine.training.held_out import score_gap

    with _faults_said():
        lab = _laboratory(shards, model_file, precision, device, threads)
        reached = lab.checkpoint(folder)
        head, terms = lab.head(frequent), lab.averaged(folder)
        scores = [score_gap(lab.model, terms, head, gap) for gap in lab.held_out(limit)]
        confidence = fit_confidence([mask for score in scores for mask in score.masks])
        described = {name: str(value) for name, value in asdict(reached.standing).items()}
        described |= {"base_sha256": lab.base_sha256, CONFIDENCE: json.dumps(asdict(confidence))}
        digest = export_terms(out, reached.average, described)
        click.echo(f"{out} {out.stat().st_size:,} bytes sha256 {digest}")


def _laboratory(shards: Path, model_file: Path | None, precision: str | None, device: str, threads: int) -> Laboratory:
    from engine.runtime.linear import configure_runtime
    from engine.training.laboratory import Laboratory

    configure_runtime(threads or None)
    return Laboratory(model_file or _default_model(), shards, precision or "", device)


def _default_model() -> Path:
    from engine.store.model_store import Store

    return Store.of_user(os.environ).path(DEFAULT_MODEL)


def _cores(device: str) -> int:
    """A GPU computes one gap at a time, a CPU as many as it has cores."""
    return (os.cpu_count() or 1) if device == "cpu" else 1


def _pairs(words: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise click.UsageError(f"--set {word}: write NAME=VALUE")
        pairs[name] = value
    return pairs


@contextmanager
def _faults_said() -> Iterator[None]:
    """Turn what a stage raises for bad input into one message and exit status 1."""
    try:
        yield
    except EngineError as fault:
        raise click.ClickException(f"{fault.message}: {fault.remedy}") from fault
    except (ValueError, OSError) as fault:
        raise click.ClickException(str(fault)) from fault
