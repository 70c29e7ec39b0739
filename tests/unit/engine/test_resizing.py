"""Holes of families that were taught to expand and delete: the canvas grows and shrinks while it is denoised."""

from __future__ import annotations

import pytest
import torch

from engine.canvas import Canvas
from engine.diffusion.resizing import Resizer
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasJob, Known
from tests.fakes.scripted_canvas import (
    DELETE,
    END,
    EXPAND,
    MASK,
    ScriptedCanvasModel,
    denoised,
    gap,
    hole,
    island,
    peaked,
    scripted_facts,
    text_of,
)

FACTS = scripted_facts(expand_id=EXPAND, delete_id=DELETE)


def sized(text: str) -> ScriptedCanvasModel:
    """Wants `text`: expands the last place while the canvas is short, deletes the first one too many."""

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        wanted = list(text.encode())
        n = canvas.length
        ids = [*wanted[: n - 1], EXPAND] if n < len(wanted) else [*wanted, *[DELETE] * (n - len(wanted))]
        # From the left, the surest first: the right length comes before the right text.
        return peaked(ids, [30.0 if token in {EXPAND, DELETE} else 4.0 for token in ids])

    return ScriptedCanvasModel(script, FACTS)


ONE = SamplingConfig(top_n=1)


@pytest.mark.parametrize("start", [1, 3, 5, 8, 20])
def test_the_right_length_is_found_from_any_start(start: int) -> None:
    _, result = denoised(sized("hello"), gap(start), ONE)
    assert text_of(result.parts[0]) == "hello"


def test_a_deleted_place_takes_the_masks_behind_it_along() -> None:
    model = sized("ab")
    denoised(model, gap(9), ONE)
    assert [call[0].canvas.length for call in model.calls] == [9, 2, 2]


def test_places_move_with_their_state() -> None:
    moved = Resizer(FACTS, 64).rearranged(
        [97, EXPAND, MASK, DELETE, 98, MASK, 45, MASK],
        [False, False, True, False, False, True, False, True],
        [0, 0, 0, 0, 0, 0, -1, 1],
    )
    assert moved == [(0, False), (1, True), (1, True), (2, False), (4, False), (6, False), (7, False)]


def test_a_hole_never_outgrows_its_window() -> None:
    model = ScriptedCanvasModel(lambda known, canvas: peaked([EXPAND] * canvas.length, 9.0), FACTS)
    _, result = denoised(model, gap(3), SamplingConfig(), limits=Limits(10))
    assert max(call[0].canvas.length for call in model.calls) <= 10
    assert len(result.parts[0]) <= 10
    assert not {EXPAND, DELETE, MASK} & set(result.parts[0])


def test_a_canvas_that_turns_back_into_an_earlier_one_is_left_at_its_size() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        return peaked([EXPAND] if canvas.length == 1 else [97, DELETE], [9.0] if canvas.length == 1 else [1.0, 9.0])

    _, result = denoised(ScriptedCanvasModel(script, FACTS), gap(1), ONE)
    assert len(result.parts[0]) in {1, 2}
    assert result.steps <= 6


def test_islands_and_other_holes_keep_their_places() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        ids = canvas.ids.tolist()
        cut = ids.index(45)
        left = [97, EXPAND] if cut == 2 else [97, 98, 99][:cut]
        right = [100, DELETE, DELETE][: len(ids) - cut - 2]
        return peaked([*left, 0, 0, *right], 9.0)

    job = CanvasJob(Known((1,), (2,)), (hole(2), island("--"), hole(3)))
    steps, result = denoised(ScriptedCanvasModel(script, FACTS), job)
    assert [text_of(part) for part in result.parts] == ["abc", "d"]
    assert all(step.canvas.ids[step.canvas.locked].tolist() == list(b"--") for step in steps)


def test_delete_may_be_the_end_id() -> None:
    facts = scripted_facts(expand_id=EXPAND, delete_id=END)
    model = ScriptedCanvasModel(
        lambda known, canvas: peaked([97, 98, *[END] * 9][: canvas.length], [1.0, 1.0, *[9.0] * 9][: canvas.length]),
        facts,
    )
    _, result = denoised(model, gap(6), ONE)
    assert text_of(result.parts[0]) == "ab"


def test_a_hole_of_unknown_length_starts_from_a_middle_candidate() -> None:
    model = sized("hello there")
    _, result = denoised(model, gap(candidates=(4, 8, 16)), ONE)
    assert model.calls[0][0].canvas.length == 8
    assert text_of(result.parts[0]) == "hello there"


def test_every_place_may_be_deleted() -> None:
    model = ScriptedCanvasModel(lambda known, canvas: peaked([DELETE] * canvas.length, 9.0), FACTS)
    _, result = denoised(model, gap(5), ONE)
    assert (result.parts, result.confidence) == (((),), 0.0)
