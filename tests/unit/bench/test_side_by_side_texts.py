"""What the comparison with llama.cpp asks: as many cases as promised, of the sizes promised, the same every time."""

from __future__ import annotations

import pytest

from engine.protocol.messages import Fill, Rewrite
from tests.bench.beside.texts import (
    KEYSTROKES,
    LONGEST_REWRITE,
    SCENARIOS,
    SHORTEST_REWRITE,
    cases,
    function_in,
    hole_in,
    library_text,
    line_offsets,
)

SOURCE = """import os

@cached
def first(x):
    return x

class Box:
    @property
    def first(self):
        y = "é"
        return y

LAST = 1"""


@pytest.mark.parametrize(("scenario", "count"), [("cold", 20), ("typing", 10), ("rewrite", 20), ("decode", 5)])
def test_there_are_as_many_cases_as_promised(scenario: str, count: int) -> None:
    found = cases(scenario)
    assert len({case.key for case in found}) == len(found) == count
    assert cases(scenario) == found


def test_every_scenario_is_of_real_requests() -> None:
    for scenario in SCENARIOS:
        kinds = {type(request) for case in cases(scenario) for request in case.requests}
        assert kinds == ({Fill} if scenario in ("cold", "typing") else {Rewrite})


def test_typing_types_what_was_taken_out_one_character_after_another() -> None:
    for case in cases("typing"):
        assert len(case.requests) == KEYSTROKES
        gone = hole_in(library_text(case.name)).gone
        for count, request in enumerate(case.requests, 1):
            assert isinstance(request, Fill)
            assert request.prefix.endswith(gone[:count])
        assert len({request.suffix for request in case.requests if isinstance(request, Fill)}) == 1
        assert not any(gone in request.suffix for request in case.requests if isinstance(request, Fill))


def test_rewritten_functions_have_the_promised_length_and_an_instruction_of_their_own() -> None:
    requests = [request for case in cases("rewrite") for request in case.requests]
    for request in requests:
        assert isinstance(request, Rewrite)
        assert SHORTEST_REWRITE <= request.selection.count("\n") + 1 <= LONGEST_REWRITE
        assert request.before + request.selection + request.after == library_text(request.id.split(".")[0])
        assert request.instruction.endswith(".")
    assert len({(request.id) for request in requests}) == 20


def test_a_function_comes_with_its_decorators_and_by_its_class() -> None:
    assert function_in(SOURCE, "first")[1] == "@cached\ndef first(x):\n    return x"
    before, selection, after = function_in(SOURCE, "Box.first")
    assert selection == '    @property\n    def first(self):\n        y = "é"\n        return y'
    assert before + selection + after == SOURCE


@pytest.mark.parametrize("name", ["second", "Box.second", "Bag.first"])
def test_a_function_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(LookupError, match=name.split(".")[0 if name.startswith("Bag") else -1]):
        function_in(SOURCE, name)


def test_a_text_too_short_for_a_hole_is_refused() -> None:
    with pytest.raises(LookupError):
        hole_in(SOURCE)


def test_offsets_are_of_every_line_and_one_behind_the_last() -> None:
    assert line_offsets("a\n\nbc") == [0, 2, 3, 6]
