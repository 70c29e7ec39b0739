"""From a corpus to shards of token holes: `build_shards`.

Deterministic: the same corpus, tokenizer, number and seed give the same bytes. Owns the balance of languages and the
mixing of projects; which gaps a file gives is `hole_sampling`'s. One file's text is in memory at a time.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.training.hole_sampling import Encoder, holes_of, token_hole
from engine.training.manifest import FILES, HELD_OUT, TRAIN, FileRecord, Manifest
from engine.training.shards import TokenHole, write_shard

MOST_HOLES_OF_A_FILE = 12
_CHARACTERS_PER_HOLE = 600
_HOLES_PER_SHARD = 6_000
_PYTHON, _PYTHON_SHARE = "python", 0.5
_MOST_WRITTEN = ("javascript", "typescript", "go", "rust", "java", "c", "cpp")


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """How many holes of each split, and the seed of everything drawn."""

    train: int
    held_out: int
    seed: int


def build_shards(
    corpus: Path,
    manifest: Manifest,
    encoder: Encoder,
    plan: ShardPlan,
    target: Path,
    description: Mapping[str, str],
    report: Callable[[str], None],
) -> dict[str, Counter[tuple[str, str]]]:
    """Write TARGET/train-NNN.safetensors and held_out.safetensors; (language, kind) counted by split.

    Raises ValueError when a split gives no hole, or a file of the corpus is not what the manifest says.
    """
    counts: dict[str, Counter[tuple[str, str]]] = {}
    for split, wanted in ((TRAIN, plan.train), (HELD_OUT, plan.held_out)):
        records = [record for record in manifest.files if record.split == split]
        per_shard = _HOLES_PER_SHARD if split == TRAIN else max(1, wanted)
        buffered: list[TokenHole] = []
        number = 0
        counts[split] = Counter()
        about = {**description, "seed": str(plan.seed), "split": split}
        for hole in _mixed_holes(corpus, records, encoder, wanted, plan.seed):
            counts[split][hole.language, hole.kind] += 1
            buffered.append(hole)
            if len(buffered) == per_shard:
                _write(target, split, number, buffered, about, report)
                number, buffered = number + 1, []
        if buffered:
            _write(target, split, number, buffered, about, report)
        if not counts[split]:
            raise ValueError(f"the corpus gives no {split} hole: build it with more sources")
    return counts


def language_shares(languages: Sequence[str]) -> dict[str, float]:
    """Half for Python where it is one of several; of the rest, twice as much for each of those most written."""
    parts = {language: 2.0 if language in _MOST_WRITTEN else 1.0 for language in languages if language != _PYTHON}
    if _PYTHON not in languages:
        return {language: part / sum(parts.values()) for language, part in parts.items()}
    rest = 1 - _PYTHON_SHARE if parts else 0.0
    return {_PYTHON: 1 - rest, **{language: rest * part / sum(parts.values()) for language, part in parts.items()}}


def _write(
    target: Path,
    split: str,
    number: int,
    holes: list[TokenHole],
    about: Mapping[str, str],
    report: Callable[[str], None],
) -> None:
    # The holes of one file lie together as they were drawn; a trainer that reads in order should not see them so.
    _generator(f"{about['seed']}:{split}:{number}").shuffle(holes)
    name = f"train-{number:03}.safetensors" if split == TRAIN else f"{split}.safetensors"
    write_shard(target / name, holes, about)
    report(f"{name}: {len(holes)} holes")


def _mixed_holes(
    corpus: Path, records: Sequence[FileRecord], encoder: Encoder, wanted: int, seed: int
) -> Iterator[TokenHole]:
    """Holes of file after file, each time of the language furthest behind its share; stops at `wanted`.

    A language whose files are used up leaves its share to the others.
    """
    waiting = _by_language(records, seed)
    shares = language_shares(list(waiting))
    made: Counter[str] = Counter()
    while waiting and made.total() < wanted:
        language = min(sorted(waiting), key=lambda name: made[name] / shares[name])
        record = next(waiting[language], None)
        if record is None:
            del waiting[language]
            continue
        for hole in _holes_of_file(corpus, record, encoder, seed):
            if made.total() >= wanted:
                return
            made[language] += 1
            yield hole


def _by_language(records: Sequence[FileRecord], seed: int) -> dict[str, Iterator[FileRecord]]:
    """The files of each language, the projects taking turns: small ones are used whole, large ones in part."""
    rng = _generator(str(seed))
    order: dict[str, list[tuple[float, str, FileRecord]]] = {}
    ranks: Counter[tuple[str, str]] = Counter()
    shuffled = sorted(records, key=lambda record: (record.sha256, record.stored))
    rng.shuffle(shuffled)
    for record in shuffled:
        rank = ranks[record.language, record.project]
        ranks[record.language, record.project] += 1
        order.setdefault(record.language, []).append((rank + rng.random(), record.sha256, record))
    return {
        language: iter([record for *_, record in sorted(entries, key=lambda entry: entry[:2])])
        for language, entries in order.items()
    }


def _holes_of_file(corpus: Path, record: FileRecord, encoder: Encoder, seed: int) -> Iterator[TokenHole]:
    path = corpus / FILES / record.stored
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ValueError(f"{path} of the corpus cannot be read ({fault}): build the corpus again") from fault
    rng = _generator(f"{seed}:{record.sha256}")
    count = min(MOST_HOLES_OF_A_FILE, 1 + len(text) // _CHARACTERS_PER_HOLE)
    for hole in holes_of(text, record.language, count, rng):
        tokens = token_hole(hole, encoder)
        if tokens is not None:
            yield tokens


def _generator(seed: str) -> random.Random:
    return random.Random(seed)  # noqa: S311 -- nothing here is secret; the draw has to be the same each time
