"""Several holes of one request on one canvas, and constraints there: what the model sees, what is answered."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import groupby

import pytest
import torch

from engine.canvas import Canvas
from engine.canvas_serving.core import CanvasCore
from engine.models.canvas_model import CanvasFacts, Known
from engine.protocol.errors import EngineError
from engine.protocol.messages import Constraints, Fill, FurtherHole
from tests.fakes.clock import Clock
from tests.fakes.driving import drive
from tests.fakes.scripted_canvas import (
    DELETE,
    END,
    EXPAND,
    ScriptedCanvasModel,
    peaked,
    scripted_facts,
    uniform_facts,
)

ISLAND = "\n\ndef g(x):\n    return "
REQUEST = Fill(
    "1",
    "python",
    "def f(x):\n    return ",
    "\n\nprint(f(2), g(2))\n",
    max_tokens=32,
    wants_drafts=True,
    further=(FurtherHole(ISLAND),),
)
BLIND = {"canvas_length": 128, "right_context": False}
FAMILIES = {"mask": scripted_facts(), "blocks": scripted_facts(block=16), "uniform": uniform_facts(**BLIND)}


def by_hole(known: Known, canvas: Canvas) -> torch.Tensor:
    """Every place of the first hole is an a, of the second a b; what pads a canvas comes behind both."""
    ids, letter = [], ord("a") - 1
    for is_locked, run in groupby(canvas.locked.tolist()):
        letter += not is_locked
        ids += [letter] * len(list(run))
    return peaked(ids)


def served(model: ScriptedCanvasModel, request: Fill = REQUEST) -> tuple[list[str], list[int]]:
    """The texts of the holes, and which hole each draft was of."""
    done, drafts, _ = drive(CanvasCore(model, threads=1, clock=Clock(0.001)), request)
    assert done.id == request.id
    assert all(0 <= draft.settled <= len(draft.text) for draft in drafts)
    assert done.stats.tokens == sum(len(hole.text) for hole in done.holes)
    return [hole.text for hole in done.holes], [draft.hole for draft in drafts]


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_all_holes_stand_on_one_canvas_with_the_text_between_them_locked(family: str) -> None:
    model = ScriptedCanvasModel(by_hole, FAMILIES[family])
    (first, second), holes = served(model)
    assert set(first) == {"a"}
    assert set(second) == {"b"}
    assert len(model.opened) == 1
    assert holes == sorted(holes)
    for given in model.calls[0]:
        locked = bytes(given.canvas.ids[given.canvas.locked].tolist())
        assert locked.startswith(ISLAND.encode())
        # What the family cannot see behind the canvas stands on it.
        assert locked == ISLAND.encode() + (b"" if FAMILIES[family].right_context else REQUEST.suffix.encode()[:32])


def test_each_hole_keeps_its_own_limits() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        return peaked([ord("\n") if place % 2 else ord("a") for place in range(canvas.length)])

    further = (FurtherHole(ISLAND, max_lines=2),)
    request = replace(REQUEST, max_lines=1, max_tokens=7, further=further)
    done, _, _ = drive(CanvasCore(ScriptedCanvasModel(script), threads=1, clock=Clock()), request)
    first, second = done.holes
    assert "\n" not in first.text.strip()
    assert second.text.strip().count("\n") <= 1
    assert all(len(hole.text) <= 7 for hole in done.holes)


def test_present_texts_are_warm_starts_of_their_holes() -> None:
    model = ScriptedCanvasModel(by_hole)
    served(model, replace(REQUEST, draft="one", further=(FurtherHole(ISLAND, draft="twos"),)))
    texts = [bytes(token for token in given.canvas.ids.tolist() if token < 256) for given in model.calls[0]]
    assert b"one" + ISLAND.encode() + b"twos" in texts


def test_holes_too_far_apart_for_a_canvas_are_filled_one_by_one() -> None:
    model = ScriptedCanvasModel(by_hole, uniform_facts(**BLIND))
    request = replace(REQUEST, further=(FurtherHole("\n# a long way" * 12 + ISLAND),))
    (first, second), holes = served(model, request)
    assert set(first) == set(second) == {"a"}
    # A look at each, and then the holes; equal doubts go from the top.
    assert len(model.opened) == 4
    assert bytes(model.opened[3].prefix).decode().endswith(f"return {first}" + request.further[0].island)
    assert set(holes) == {0, 1}


def test_alternatives_are_for_one_hole() -> None:
    done, _, _ = drive(CanvasCore(ScriptedCanvasModel(by_hole), threads=1), replace(REQUEST, alternatives=4))
    assert done.alternatives == ()


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_constraints_hold_in_every_hole(family: str) -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        logits = by_hole(known, canvas)
        logits[:, ord("z")] = 4.0
        return logits

    rules = Constraints(allowed="az")
    first, second = served(ScriptedCanvasModel(script, FAMILIES[family]), replace(REQUEST, constraints=rules))[0]
    assert (set(first), set(second)) == ({"a"}, {"z"})


@pytest.mark.parametrize("facts", [scripted_facts(), uniform_facts(**BLIND)])
def test_a_document_is_judged_with_all_its_holes_and_nothing_that_pads_a_canvas(facts: CanvasFacts) -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        places, letter, ids = canvas.locked.tolist(), 0, []
        for is_locked, run in groupby(places):
            letter += not is_locked
            # Numbers in the holes; behind them what would break any document.
            ids += [ord("1") if letter < 3 else ord("{")] * len(list(run))
        return peaked(ids)

    schema = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}
    request = Fill("1", "json", '{"a": ', "}", further=(FurtherHole(', "b": '),), max_tokens=16)
    rules = Constraints(json_schema=json.dumps(schema))
    first, second = served(ScriptedCanvasModel(script, facts), replace(request, constraints=rules))[0]
    assert json.loads(f'{{"a": {first}, "b": {second}}}') == {"a": int(first), "b": int(second)}
    wrong = Constraints(json_schema=json.dumps(schema | {"required": ["c"]}))
    with pytest.raises(EngineError, match="is JSON of the schema") as failure:
        served(ScriptedCanvasModel(script, facts), replace(request, constraints=wrong))
    assert failure.value.kind == "unsatisfied"


def telling(text: str, start: int) -> ScriptedCanvasModel:
    """Says `text` canvas by canvas, behind a prefix of `start` tokens, and an end behind it."""
    ids = [*text.encode()]

    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        behind = ids[len(known.prefix) - start :]
        logits = peaked((behind + [END] * canvas.length)[: canvas.length])
        logits[:, END] = logits[:, END].clamp_min(4.0)
        return logits

    return ScriptedCanvasModel(script, uniform_facts(canvas_length=8, right_context=False))


def test_a_text_over_several_canvases_is_judged_when_it_is_whole() -> None:
    text = "11, 22, 33, 44]"
    rules = Constraints(json_schema='{"type": "array", "items": {"type": "integer"}}')
    request = Fill("1", "json", "[", "", max_tokens=40, constraints=rules)
    model = telling(text, 1)
    assert served_text(model, request) == text
    assert len(model.committed) >= 1
    broken = telling(text.replace("44]", '"x"]'), 1)
    with pytest.raises(EngineError) as failure:
        served_text(broken, request)
    assert failure.value.kind == "unsatisfied"


def test_a_limit_counts_what_earlier_canvases_hold() -> None:
    model = telling("x" * 40, 1)
    request = Fill("1", "python", "[", "", max_tokens=40, constraints=Constraints(max_characters=11))
    text = served_text(model, request)
    assert set(text) == {"x"}
    # More than one canvas holds, and no more than is allowed of all.
    assert 8 <= len(text) <= 11


def served_text(model: ScriptedCanvasModel, request: Fill) -> str:
    return drive(CanvasCore(model, threads=1, clock=Clock()), request)[0].text


def test_a_hole_whose_every_place_was_taken_away_obeys() -> None:
    def script(known: Known, canvas: Canvas) -> torch.Tensor:
        return peaked([DELETE] * canvas.length)

    facts = scripted_facts(expand_id=EXPAND, delete_id=DELETE)
    request = replace(REQUEST, further=(), constraints=Constraints(allowed="a", max_characters=9, must_parse=True))
    assert served_text(ScriptedCanvasModel(script, facts), request) == ""
