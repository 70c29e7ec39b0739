"""The commands `corpus` and `shards`: what a person types to get training data.

Thin: reads options, calls `corpus` and `shard_building`, says what came out. Errors of theirs become one message.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from engine.tokenizer import BpeTokenizer
from engine.training import contamination
from engine.training.corpus import CorpusBuilder, build_corpus
from engine.training.fetching import CATALOGUE, Fetcher, catalogue
from engine.training.manifest import Manifest, read_manifest
from engine.training.shard_building import ShardPlan, build_shards

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--out", "corpus", type=_FOLDER, required=True, help="Folder of the corpus; made when missing.")
@click.option("--language", "languages", multiple=True, help="Only this language; may be given several times.")
@click.option("--exclude", type=_FILE, help="Benchmark rows (JSON lines, or .gz) whose code must not be in the corpus.")
@click.option("--sources", type=_FILE, default=CATALOGUE, show_default="the catalogue that comes with this package")
@click.option("--packages", type=_FOLDER, help="Folder of downloaded packages.  [default: OUT/packages]")
def corpus(
    corpus: Path, languages: tuple[str, ...], exclude: Path | None, sources: Path, packages: Path | None
) -> None:
    """Fetch permissively licensed packages and keep their source files, with a manifest.

    Needs pip, npm and (for languages from Debian) apt-get. A package that cannot be had is left out.
    """
    started = time.monotonic()
    try:
        wanted = catalogue(sources, languages)
        benchmark = contamination.load(exclude) if exclude else contamination.benchmark_of([])
        digest = hashlib.sha256(exclude.read_bytes()).hexdigest() if exclude else ""
        corpus.mkdir(parents=True, exist_ok=True)
        builder = CorpusBuilder(corpus, benchmark, digest)
        manifest = build_corpus(wanted, builder, Fetcher(packages or corpus / "packages"), click.echo)
        manifest.write(corpus)
    except (ValueError, OSError) as fault:
        raise click.ClickException(str(fault)) from fault
    Console().print(_corpus_table(manifest))
    for reason, count in manifest.dropped.items():
        click.echo(f"dropped: {count} files, {reason}")
    click.echo(f"{len(manifest.packages)} packages, {len(manifest.left_out)} left out, {_since(started)}")
    if not exclude:
        click.echo("no benchmark was kept out: give its rows with --exclude before you measure on it", err=True)


@click.command()
@click.option("--corpus", "corpus", type=_FOLDER, required=True, help="Folder made by `corpus`.")
@click.option("--tokenizer", type=_FILE, required=True, help="tokenizer.json of the model to train.")
@click.option("--out", "target", type=_FOLDER, required=True, help="Folder of the shards; made when missing.")
@click.option("--holes", type=click.IntRange(1), default=60_000, show_default=True, help="Holes to train on.")
@click.option("--held-out", type=click.IntRange(1), default=1_000, show_default=True, help="Holes to measure on.")
@click.option("--seed", type=int, default=0, show_default=True)
def shards(corpus: Path, tokenizer: Path, target: Path, holes: int, held_out: int, seed: int) -> None:
    """Cut holes into the files of a corpus and store them as token ids."""
    started = time.monotonic()
    try:
        manifest, digest = read_manifest(corpus)
        description = {
            "corpus_sha256": digest,
            "tokenizer_sha256": hashlib.sha256(tokenizer.read_bytes()).hexdigest(),
        }
        encoder = BpeTokenizer.load(tokenizer)
        plan = ShardPlan(train=holes, held_out=held_out, seed=seed)
        counts = build_shards(corpus, manifest, encoder, plan, target, description, click.echo)
    except (ValueError, OSError) as fault:
        raise click.ClickException(str(fault)) from fault
    for split, counted in counts.items():
        Console().print(_holes_table(split, counted))
    click.echo(f"done, {_since(started)}")


def _corpus_table(manifest: Manifest) -> Table:
    table = Table("language", "projects", "files", "held out")
    for language in sorted({record.language for record in manifest.files}):
        records = [record for record in manifest.files if record.language == language]
        held = sum(record.split == "held_out" for record in records)
        table.add_row(language, str(len({record.project for record in records})), str(len(records)), str(held))
    return table


def _holes_table(split: str, counted: Counter[tuple[str, str]]) -> Table:
    kinds = sorted({kind for _, kind in counted})
    table = Table(f"{split}: language", *kinds, "all")
    for language in sorted({language for language, _ in counted}):
        row = [counted[language, kind] for kind in kinds]
        table.add_row(language, *map(str, row), str(sum(row)))
    table.add_row(
        "all", *(str(sum(n for (_, k), n in counted.items() if k == kind)) for kind in kinds), str(counted.total())
    )
    return table


def _since(started: float) -> str:
    return f"{time.monotonic() - started:.0f} s"
