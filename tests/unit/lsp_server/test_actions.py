"""The catalogue of code actions: kinds, what suits which selection, and titles that stay short."""

from __future__ import annotations

import pytest

from lsp_server.actions import (
    FILL_SELECTION,
    KINDS,
    NAMES,
    PREPARED,
    fill_holes,
    fix_for,
    following,
    is_wanted,
    own_for,
    prepared_for,
    writing,
)
from lsp_server.own_actions import OwnAction, parse_own_actions

CODE = "def f(a):\n    return a\n"


@pytest.mark.parametrize(
    ("only", "wanted"),
    [
        (None, True),
        ([], False),
        (["refactor"], True),
        (["refactor.rewrite"], True),
        (["refactor.rewrite.lacuna.fil"], False),
        ([""], False),
        (["quickfix"], False),
        (["quickfix", "refactor.rewrite.lacuna.fill"], True),
    ],
)
def test_kinds_are_a_hierarchy(only: list[str] | None, wanted: bool) -> None:
    assert is_wanted("refactor.rewrite.lacuna.fill", only) is wanted


def test_every_action_has_a_name_of_its_own_and_a_kind_that_is_announced() -> None:
    offered = [FILL_SELECTION, *PREPARED, fill_holes(2), following("a"), writing("# a"), fix_for("a", "b")]
    offered += own_for("python", [OwnAction("T", "I")])
    assert len({action.name for action in PREPARED}) == len(PREPARED)
    assert {action.name for action in offered} == NAMES
    assert {action.kind for action in offered} == set(KINDS)
    assert all(action.instruction for action in PREPARED)


def names(language: str, selected: str, *, is_unfinished: bool = False) -> list[str]:
    return [action.name for action in prepared_for(language, selected, is_unfinished=is_unfinished)]


def test_only_what_makes_sense_is_offered() -> None:
    assert names("python", CODE) == ["docstring", "type_hints", "simplify", "error_handling"]
    assert names("c", "int f(void);") == ["docstring", "simplify", "error_handling"]
    assert names("python", " \n\t\n") == []
    assert names("markdown", "# Title") == []
    assert names("json", "{}") == []


def test_a_body_is_completed_where_one_is_missing() -> None:
    assert "complete_body" in names("python", CODE, is_unfinished=True)
    assert names("json", "{}", is_unfinished=True) == []


def test_a_lone_name_has_nothing_to_be_rewritten() -> None:
    assert names("python", " total\n") == []
    assert names("python", "pass", is_unfinished=True) == ["complete_body"]
    assert "simplify" in names("python", "not total")


def test_a_persons_own_actions_keep_to_their_languages() -> None:
    own = [OwnAction("All", "do"), OwnAction("Lua", "do so", ("lua",))]
    assert [action.title for action in own_for("python", own)] == ["All"]
    assert [action.title for action in own_for("lua", own)] == ["All", "Lua"]


def test_a_fix_says_what_and_where() -> None:
    action = fix_for("name 'y' is\n  not defined", "y")
    assert action.title == "Fix: name 'y' is not defined"
    assert action.instruction == "Fix this problem at `y`: name 'y' is not defined"
    assert fix_for("m", "").instruction == "Fix this problem: m"
    assert fix_for("m", "`").instruction == "Fix this problem: m"
    assert fix_for("a\0b\x1b[0m\u2028c \ud83d", "x\0").title == "Fix: a b [0m c"
    assert following("add\0\x07 more").title == "Rewrite: add more"
    assert own_for("go", [OwnAction("Do\nit\0", "do")])[0].title == "Do it"


def test_titles_stay_short() -> None:
    for action in (fix_for("word " * 400, "x"), following("word " * 400), writing("# " + "word " * 400)):
        assert len(action.title) < 75
        assert action.title.endswith("…")
    assert len(fix_for("word " * 400, "x" * 400).instruction) < 600
    assert writing("# return the sum\n    ").title == "Write: return the sum"
    assert fill_holes(1).title == "Fill 1 hole"


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        ([{"title": "T", "instruction": "I"}], ""),
        ([{"title": "T", "instruction": "I", "languages": ["go"]}], ""),
        ([{"title": "T", "instruction": "I", "languages": None}], ""),
        ([], ""),
        ("T", "must be a list"),
        ([{"title": "T", "instruction": "I"}, "T"], "entry 2 must be an object"),
        ([{"title": " ", "instruction": "I"}], "entry 1 must have text as its title"),
        ([{"title": "T"}], "entry 1 must have text as its instruction"),
        ([{"title": "T", "instruction": "I", "languages": "go"}], "entry 1 must have languages as a list"),
        ([{"title": "T", "instruction": "I", "lang": ["go"]}], "entry 1 has an unknown key lang"),
    ],
)
def test_a_persons_own_actions_are_checked(raw: object, fault: str) -> None:
    actions, found = parse_own_actions(raw)
    assert fault in found
    assert bool(found) == bool(fault)
    assert bool(actions) == (isinstance(raw, list) and bool(raw) and not fault)
