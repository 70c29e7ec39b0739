"""Which rows a training pass holds: what masks see, what they should say, and that the sampler's rows look alike."""

from __future__ import annotations

from random import Random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.diffusion.plan import MaskBlock
from engine.diffusion.verify import PassLayout, build_rows
from engine.training.canvas_rows import MASK, NO_LABEL, Block, BlockChoice, CanvasRows, build_canvas_rows, draw_blocks

PENDING, END = 1000, 1001
CHOICE = BlockChoice(blocks=5, widths=(1, 2, 4, 7), revealed_share=0.4, island_share=0.3)
gaps = st.tuples(st.integers(0, 30), st.integers(0, 2**32))


def drawn(length: int, seed: int) -> tuple[list[int], list[Block], CanvasRows]:
    """A text of distinct tokens, blocks over it, and their rows."""
    middle = list(range(100, 100 + length))
    blocks = draw_blocks(length, CHOICE, Random(seed))
    return middle, blocks, build_canvas_rows(PENDING, middle, END, blocks)


def block_rows(rows: CanvasRows, blocks: list[Block]) -> list[tuple[Block, range]]:
    """Each block with the numbers of its rows."""
    found, start = [], rows.causal
    for block in blocks:
        found.append((block, range(start, start + len(block.masked))))
        start += len(block.masked)
    assert start == rows.ids.shape[0]
    return found


@given(gaps)
def test_the_text_is_seen_causally_and_sees_no_block(gap: tuple[int, int]) -> None:
    middle, _, rows = drawn(*gap)
    causal = rows.causal
    assert rows.ids[:causal].tolist() == [PENDING, *middle]
    assert rows.offsets[:causal].tolist() == list(range(causal))
    assert rows.labels[:causal].tolist() == [*middle, END]
    assert torch.equal(rows.visible[:causal, :causal], torch.ones(causal, causal).tril().bool())
    assert not rows.visible[:causal, causal:].any()
    assert not rows.depths[:causal].any()


@given(gaps)
def test_a_block_sees_the_text_up_to_its_anchor_and_itself(gap: tuple[int, int]) -> None:
    _, blocks, rows = drawn(*gap)
    for block, own in block_rows(rows, blocks):
        for row in own:
            seen = rows.visible[row].nonzero()[:, 0].tolist()
            assert seen == [*range(block.anchor + 1), *own]


@given(gaps)
def test_a_mask_sees_no_text_behind_its_anchor_but_what_its_block_reveals(gap: tuple[int, int]) -> None:
    _, blocks, rows = drawn(*gap)
    for block, own in block_rows(rows, blocks):
        for row in own:
            known = [seen for seen in rows.visible[row].nonzero()[:, 0].tolist() if rows.ids[seen] != MASK]
            assert all(rows.offsets[seen] <= block.anchor or seen in own for seen in known)


@given(gaps)
def test_rows_should_say_what_follows_their_place_unless_the_block_shows_it(gap: tuple[int, int]) -> None:
    middle, blocks, rows = drawn(*gap)
    known, targets = [PENDING, *middle], [*middle, END]
    for block, own in block_rows(rows, blocks):
        for step, row in enumerate(own, start=1):
            place = block.anchor + step
            masked = block.masked[step - 1]
            assert int(rows.offsets[row]) == place
            assert int(rows.ids[row]) == (MASK if masked else known[place])
            shown = step < len(own) and not block.masked[step]
            assert int(rows.labels[row]) == (NO_LABEL if shown else targets[place])
            assert int(rows.teachers[row]) == place
            assert int(rows.depths[row]) == (step if block.all_masked else 0)


@given(gaps)
def test_blocks_stay_in_the_gap_and_mask_something(gap: tuple[int, int]) -> None:
    length, _ = gap
    _, blocks, _ = drawn(*gap)
    assert len(blocks) == (CHOICE.blocks if length else 0)
    for block in blocks:
        width, left = len(block.masked), length - block.anchor
        assert 0 < width <= left
        assert width in CHOICE.widths or width == left
        assert any(block.masked)
    assert [block.anchor for block in blocks] == sorted(block.anchor for block in blocks)


@given(gaps)
def test_masked_blocks_are_those_of_the_sampler(gap: tuple[int, int]) -> None:
    length, seed = gap
    middle = list(range(100, 100 + length))
    blocks = draw_blocks(length, BlockChoice(blocks=4, revealed_share=0, island_share=0), Random(seed))
    ours = build_canvas_rows(PENDING, middle, END, blocks)
    # The sampler's draft is the gap's text here.
    planned = tuple(MaskBlock(block.anchor, len(block.masked)) for block in blocks)
    theirs = build_rows(PassLayout(PENDING, tuple(middle), planned), 0, MASK, adapted=True)
    assert torch.equal(ours.ids, theirs.ids)
    assert torch.equal(ours.offsets, theirs.positions)
    # Where the sampler has no blocks it leaves its rows causal and unmentioned.
    causal = torch.ones(length + 1, length + 1).tril().bool()
    assert torch.equal(ours.visible, causal if theirs.visible is None else theirs.visible)


def test_shares_of_blocks_are_as_chosen() -> None:
    blocks = draw_blocks(400, BlockChoice(blocks=2000, widths=(8,), revealed_share=0.2, island_share=0.3), Random(5))
    blocks = [block for block in blocks if len(block.masked) == 8]
    islands = [b for b in blocks if not b.all_masked and b.masked == tuple(sorted(b.masked, reverse=True))]
    partly = [b for b in blocks if not b.all_masked]
    # Some random reveals look like islands, and some reveal nothing.
    assert 0.40 < len(partly) / len(blocks) < 0.52
    assert 0.28 < len(islands) / len(blocks) < 0.40
    assert all(block.masked[0] for block in islands)


def test_an_empty_gap_is_one_row_that_ends_it() -> None:
    rows = build_canvas_rows(PENDING, [], END, draw_blocks(0, CHOICE, Random(0)))
    assert (rows.ids.tolist(), rows.labels.tolist(), rows.causal) == ([PENDING], [END], 1)
    assert rows.visible.tolist() == [[True]]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"blocks": -1}, "blocks must not be negative"),
        ({"widths": ()}, "widths must list"),
        ({"widths": (4, 0)}, "widths must list"),
        ({"revealed_share": 0.7, "island_share": 0.5}, "shares of one whole"),
        ({"revealed_share": float("nan")}, "shares of one whole"),
    ],
)
def test_a_choice_that_is_none_is_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        BlockChoice(**wrong)  # type: ignore[arg-type]
