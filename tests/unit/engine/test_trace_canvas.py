"""Steps of parallel denoising as they are recorded: states, characters over several tokens, ends, earlier canvases."""

from __future__ import annotations

import json
import math
from typing import cast

import pytest
import torch

from engine.canvas import FREE, LOCKED, SETTLED, Canvas
from engine.diffusion.canvas_step import CanvasStep
from engine.diffusion.parallel import denoise_canvas
from engine.diffusion.reading import Others
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasJob, CanvasModel, Known, Part
from engine.tokenizer import ByteTokenizer
from engine.trace.recording import GapTrace, Recording, Step, from_data, to_data
from engine.trace.watching import Watcher
from tests.fakes.scripted_canvas import END, MASK, ScriptedCanvasModel, saying, scripted_facts, uniform_facts


def told(ids: list[int], states: list[int], **changes: object) -> CanvasStep:
    """A step of one hole on these places."""
    size = len(ids)
    canvas = Canvas(torch.tensor(ids), torch.tensor(states, dtype=torch.uint8), torch.full((size,), 0.5))
    values: dict[str, object] = {
        "canvas": canvas,
        "step": 2,
        "steps": 4,
        "entropy": torch.arange(size).float(),
        "accepted": torch.zeros(size, dtype=torch.bool),
        "changed": torch.zeros(size, dtype=torch.bool),
        "hole": torch.zeros(size, dtype=torch.int64),
        "before": ((),),
        "silent": frozenset({MASK}),
        "end_ids": frozenset({END}),
    }
    return CanvasStep(**{**values, **changes})  # type: ignore[arg-type]


def recorded(step: CanvasStep) -> Step:
    watcher = Watcher(ByteTokenizer())
    watcher(step)
    return watcher.steps[0]


def test_states_are_told_apart() -> None:
    row = recorded(
        told(
            [97, 98, 99, 100, MASK, 101],
            [SETTLED, SETTLED, FREE, FREE, FREE, LOCKED],
            accepted=torch.tensor([False, True, False, False, False, False]),
            changed=torch.tensor([False, True, False, True, False, False]),
            hole=torch.tensor([0, 0, 0, 0, 0, -1]),
        )
    )
    assert [(token.text, token.state, token.kind) for token in row.tokens] == [
        *(("a", "settled", "text"), ("b", "new", "text"), ("c", "open", "text")),
        *(("d", "changing", "text"), ("", "open", "noise")),
    ]
    assert [token.entropy for token in row.tokens] == [None, 1.0, 2.0, 3.0, None]
    assert row.entropy == pytest.approx((1 + 2 + 3 + 4) / 4)
    assert row.tokens[1].chance == 0.5


def test_what_is_accepted_again_is_not_new() -> None:
    """Families without a mask accept from scratch in every step."""
    watcher = Watcher(ByteTokenizer())
    accepted = torch.tensor([True, True, False])
    watcher(told([97, 98, 99], [SETTLED, SETTLED, FREE], accepted=accepted))
    watcher(told([97, 120, 99], [SETTLED, SETTLED, SETTLED], accepted=torch.ones(3, dtype=torch.bool)))
    assert [token.state for token in watcher.steps[0].tokens] == ["new", "new", "open"]
    assert [token.state for token in watcher.steps[1].tokens] == ["settled", "new", "new"]
    watcher(told([97, 120], [SETTLED, SETTLED], accepted=torch.ones(2, dtype=torch.bool)))
    assert watcher.steps[2].count("new") == 2, "on a canvas of another length places cannot be compared"


def test_islands_between_holes_are_told_and_known_text_behind_is_not() -> None:
    row = recorded(
        told(
            [97, 40, 98, 41, 41],
            [FREE, LOCKED, FREE, LOCKED, LOCKED],
            hole=torch.tensor([0, -1, 1, -1, -1]),
            before=((), ()),
        )
    )
    assert [(token.text, token.state) for token in row.tokens] == [("a", "open"), ("(", "locked"), ("b", "open")]


def test_of_a_row_of_ends_one_is_told() -> None:
    row = recorded(told([97, END, END, END], [SETTLED, FREE, FREE, FREE]))
    assert [(token.text, token.kind) for token in row.tokens] == [("a", "text"), ("", "end")]
    row = recorded(told([97, END, 98], [SETTLED, FREE, FREE]))
    assert [token.kind for token in row.tokens] == ["text", "end", "text"]


def test_a_character_over_two_places_is_shown_once() -> None:
    first, second = "é".encode()
    assert [token.text for token in recorded(told([first, second], [SETTLED, FREE])).tokens] == ["", "é"]
    assert [token.text for token in recorded(told([first, MASK, second], [SETTLED, FREE, FREE])).tokens] == [
        "",
        "",
        "\ufffd",
    ]


def test_what_else_could_have_stood_there_is_told_of_places_the_step_looked_at() -> None:
    likely = Others(
        torch.tensor([[97, 120, END], [98, 121, 122], [99, 97, 98]]),
        torch.tensor([[0.6, 0.3, 0.1], [0.5, 0.4, 0.0], [0.7, 0.2, 0.1]]),
    )
    row = recorded(told([97, 98, 40], [FREE, FREE, LOCKED], others=likely, hole=torch.tensor([0, 0, -1])))
    shares = [[(text, round(share, 3)) for text, share in token.others] for token in row.tokens]
    assert shares == [[("x", 0.3), ("end of text", 0.1)], [("y", 0.4)]]
    settled = recorded(told([97, 98, 99], [SETTLED, FREE, FREE], others=likely))
    assert [bool(token.others) for token in settled.tokens] == [False, True, True]


def test_what_is_no_number_is_not_known() -> None:
    row = recorded(told([97, 98], [FREE, FREE], entropy=torch.tensor([math.nan, 1.0])))
    assert [token.entropy for token in row.tokens] == [None, 1.0]
    assert row.entropy == 1.0
    assert recorded(told([97], [FREE], entropy=None)).entropy is None


@pytest.mark.parametrize("facts", [scripted_facts(), uniform_facts(), uniform_facts(canvas_length=8)])
def test_a_job_is_recorded_from_noise_to_its_text(facts: object) -> None:
    model = ScriptedCanvasModel(saying("héllo", [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]), facts=facts)  # type: ignore[arg-type]
    # With text behind it the hole has just the places of its text; without, it ends at an end token.
    known, places = (Known(()), 8) if model.facts.canvas_length else (Known((), (41,)), 6)
    job = CanvasJob(known, (Part(True, length=places),))
    config = SamplingConfig(sampler="confidence", confidence_threshold=0.95, steps=6)
    run = denoise_canvas(
        cast(CanvasModel, model),
        job,
        config,
        torch.Generator().manual_seed(1),
        limits=Limits(12),
        expired=lambda: False,
        others=3,
    )
    watcher = Watcher(model.tokenizer)
    while True:
        try:
            if (step := next(run)) is not None:
                watcher(step)
        except StopIteration as finished:
            ids = finished.value.parts[0]
            break
    assert bytes(ids).decode() == "héllo"
    assert len(watcher.steps) > 1
    assert any(token.others for token in watcher.steps[0].tokens)
    assert "".join(token.text for token in watcher.steps[-1].tokens) == "héllo"
    assert watcher.steps[0].count("open", "changing") > watcher.steps[-1].count("open", "changing")
    made = Recording("f", (), (GapTrace(1, "", "", tuple(watcher.steps), "héllo"),))
    again = from_data(json.loads(json.dumps(to_data(made), allow_nan=False)))
    assert [len(step.tokens) for step in again.gaps[0].steps] == [len(step.tokens) for step in watcher.steps]
