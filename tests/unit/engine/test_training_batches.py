"""Which gap comes when: each hole once an epoch, the same from any number on, cut and ordered as drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.models.conversion import special_ids
from engine.models.gguf_file import GgufFile
from engine.training.batches import ContextChoice, GapSequence, TrainingGap, prompt_context
from engine.training.frequency import frequent_ids
from engine.training.shards import Shard, TokenHole, write_shard
from tests.fakes.tiny_training import ORDINARY, SETTINGS, gap_sequence, write_tiny_shards

# Each hole is known by the one token of its middle.
HOLES = [TokenHole((40,) * 20, (token,), (41,) * 20, "span", "python") for token in list(ORDINARY)[:30]]


@pytest.fixture
def gaps(tiny: Path, tmp_path: Path) -> GapSequence:
    return gap_sequence(tiny, tmp_path, HOLES)


def facts(gap: TrainingGap) -> tuple[object, ...]:
    rows = gap.rows
    return gap.context, rows.ids.tolist(), rows.labels.tolist(), rows.visible.tolist(), gap.order


def text(gap: TrainingGap) -> int:
    return int(gap.rows.ids[1])


def test_each_hole_comes_once_an_epoch_in_another_order(gaps: GapSequence) -> None:
    assert len(gaps) == len(HOLES)
    epochs = [[text(gaps[number]) for number in range(start, start + 30)] for start in (0, 30, 60)]
    assert all(sorted(epoch) == sorted(hole.middle[0] for hole in HOLES) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]


def test_any_number_gives_the_same_gap_whatever_came_before(gaps: GapSequence, tiny: Path, tmp_path: Path) -> None:
    in_order = [facts(gaps[number]) for number in range(70)]
    again = gap_sequence(tiny, tmp_path, HOLES)
    assert [facts(again[number]) for number in (69, 0, 33, 29, 30)] == [in_order[n] for n in (69, 0, 33, 29, 30)]


def test_another_seed_is_another_order(gaps: GapSequence, tiny: Path, tmp_path: Path) -> None:
    other = gap_sequence(tiny, tmp_path, HOLES, replace(SETTINGS, seed=2))
    assert [text(gaps[n]) for n in range(30)] != [text(other[n]) for n in range(30)]


def test_contexts_are_cut_and_ordered_as_drawn(gaps: GapSequence, tiny: Path) -> None:
    special = special_ids(GgufFile(tiny).vocabulary(), tiny)
    seen = Counter[tuple[str, int, int]]()
    for number in range(120):
        gap = gaps[number]
        prefix, suffix = gap.context.count(40), gap.context.count(41)
        first = {"prefix_first": special.fim_prefix, "suffix_first": special.fim_suffix}[gap.order]
        assert gap.context[0] == first
        assert int(gap.rows.ids[0]) == special.fim_middle
        assert int(gap.rows.labels[gap.rows.causal - 1]) == min(special.end)
        seen[gap.order, prefix, suffix] += 1
    assert set(seen) == {(o, p, s) for o in ("prefix_first", "suffix_first") for p in (8, 12) for s in (4, 6)}
    share = sum(count for (order, *_), count in seen.items() if order == "suffix_first") / 120
    assert share == pytest.approx(SETTINGS.contexts.suffix_first, abs=0.12)


def test_both_orders_hold_the_same_text(tiny: Path) -> None:
    special = special_ids(GgufFile(tiny).vocabulary(), tiny)
    assert prompt_context([1, 2], [3], special, "prefix_first") == (special.fim_prefix, 1, 2, special.fim_suffix, 3)
    assert prompt_context([1, 2], [3], special, "suffix_first") == (special.fim_suffix, 3, special.fim_prefix, 1, 2)


def test_shards_follow_each_other_as_one(tiny: Path, tmp_path: Path) -> None:
    special = special_ids(GgufFile(tiny).vocabulary(), tiny)
    for name, holes in (("a", HOLES[:7]), ("b", HOLES[7:8]), ("c", HOLES[8:])):
        write_shard(tmp_path / name, holes, {})
    shards = [Shard(tmp_path / name) for name in "abc"]
    gaps = GapSequence(shards, special, 0, seed=1, blocks=SETTINGS.blocks, contexts=SETTINGS.contexts)
    assert sorted(text(gaps[number]) for number in range(30)) == sorted(hole.middle[0] for hole in HOLES)


def test_nothing_to_train_on_is_refused(tiny: Path) -> None:
    special = special_ids(GgufFile(tiny).vocabulary(), tiny)
    with pytest.raises(ValueError, match="hold no gaps: build some"):
        GapSequence([], special, 0, seed=1, blocks=SETTINGS.blocks, contexts=SETTINGS.contexts)


@pytest.mark.parametrize("wrong", [{"prefix": ()}, {"prefix": (0,)}, {"suffix": (4, -1)}, {"suffix_first": 1.5}])
def test_contexts_that_cut_nothing_sensible_are_refused(wrong: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ContextChoice(**wrong)  # type: ignore[arg-type]


def test_the_most_frequent_ids_are_chosen_and_each_is_there_once(tmp_path: Path) -> None:
    holes = [TokenHole((90,) * 9, (70, 70, 60), (60, 60, 50), "span", "python")] * 2
    write_shard(tmp_path / "shard", holes, {})
    shards = [Shard(tmp_path / "shard")]
    assert frequent_ids(shards, 3, frozenset({99}), 100).tolist() == [60, 70, 99]
    filled = frequent_ids(shards, 7, frozenset({99}), 100)
    assert filled.tolist() == [0, 1, 2, 50, 60, 70, 99]
    assert filled.dtype == torch.int64
    assert frequent_ids(shards, 100, frozenset({99, 60}), 100).tolist() == list(range(100))


def test_ids_that_cannot_be_are_refused(tmp_path: Path) -> None:
    write_tiny_shards(tmp_path)
    shards = [Shard(tmp_path / "train-000.safetensors")]
    with pytest.raises(ValueError, match="the vocabulary holds 10"):
        frequent_ids(shards, 11, frozenset(), 10)
    with pytest.raises(ValueError, match="made with another model's tokenizer"):
        frequent_ids(shards, 5, frozenset(), 50)
    with pytest.raises(ValueError, match="2 must be among them"):
        frequent_ids(shards, 1, frozenset({1, 2}), 200)
