"""Options become settings; what cannot be used is reported and harmless."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.own_actions import MOST_ACTIONS, OwnAction
from lsp_server.settings import LONGEST_ITEM, NO_FOLDER, Settings, markdown_table, merge, parse, rules

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@pytest.mark.parametrize("options", [None, {}])
def test_no_options_are_the_defaults(options: Any) -> None:
    assert parse(options) == (Settings(), [])


def test_every_setting_can_be_set_by_its_path() -> None:
    for name, default, rule in rules():
        other: Any
        if isinstance(default, bool):
            other = not default
        elif isinstance(default, int):
            other = default + 1
        elif isinstance(default, str):
            other = "other" if rule.is_text else next(choice for choice in rule.choices if choice != default)
        elif rule.are_actions:
            other = [{"title": "Use pathlib", "instruction": "Use pathlib.", "languages": ["python"]}]
        else:
            other = ["/x"]
        settings, problems = parse(nested(rule.path, other))
        assert problems == []
        wanted = [OwnAction("Use pathlib", "Use pathlib.", ("python",))] if rule.are_actions else other
        assert getattr(settings, name) == (tuple(wanted) if isinstance(wanted, list) else wanted)


def nested(path: str, value: Any) -> Any:
    """{"a": {"b": value}} for "a.b"."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return value


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"enable": "yes"}, "enable: must be true or false, not a string; using true"),
        ({"enabel": True}, "enabel: unknown setting"),
        ({"inlineCompletion": {"maxtokens": 5}}, "inlineCompletion.maxtokens: unknown setting"),
        (
            {"inlineCompletion": {"maxTokens": True}},
            "inlineCompletion.maxTokens: must be a whole number, not a boolean; using 96",
        ),
        ({"inlineCompletion": {"maxTokens": 1.5}}, "inlineCompletion.maxTokens: must be a whole number; using 96"),
        (
            {"inlineCompletion": {"maxTokens": float("nan")}},
            "inlineCompletion.maxTokens: must be a whole number; using 96",
        ),
        (
            {"inlineCompletion": {"maxTokens": 0}},
            "inlineCompletion.maxTokens: must lie between 1 and 4096; using 96",
        ),
        ({"inlineCompletion": 5}, "inlineCompletion: unknown setting"),
        ({"disabledLanguages": "python"}, "disabledLanguages: must be a list of strings; using []"),
        ({"disabledLanguages": [1]}, "disabledLanguages: must be a list of strings; using []"),
        ({"positionEncoding": "utf-7"}, "positionEncoding: must be one of auto, utf-16; using auto"),
        ([], "lacuna: must be an object, not a list"),
        ("fast", "lacuna: must be an object, not a string"),
    ],
)
def test_what_cannot_be_used_is_reported_and_the_default_kept(options: Any, problem: str) -> None:
    settings, problems = parse(options)
    assert [str(item) for item in problems] == [problem]
    assert settings == Settings()


def test_a_bad_entry_does_not_spoil_the_good_ones() -> None:
    settings, problems = parse({"drafts": True, "enable": 1, "context": {"prefixChars": 10}})
    assert (settings.drafts, settings.prefix_chars, settings.enable) == (True, 10, True)
    assert [problem.path for problem in problems] == ["enable"]


def test_null_is_not_set_and_a_whole_float_is_a_number() -> None:
    assert parse({"enable": None, "context": None}) == (Settings(), [])
    assert parse({"context": {"suffixChars": 300.0}}) == (Settings(suffix_chars=300), [])


@pytest.mark.parametrize("value", [10**400, -(10**400), 1e308, float("inf"), True, "1", [1], {"a": 1}])
def test_no_value_of_a_number_is_fatal_or_taken(value: Any) -> None:
    for name, default, rule in rules():
        if isinstance(default, int) and not isinstance(default, bool):
            settings, problems = parse(nested(rule.path, value))
            assert getattr(settings, name) == default
            assert [problem.path for problem in problems] == [rule.path]


@pytest.mark.parametrize("item", ["", " ", "\n", "a\nb", "a\n", "x" * (LONGEST_ITEM + 1)])
def test_an_entry_of_a_list_is_one_line_of_text(item: str) -> None:
    for name, default, rule in rules():
        if isinstance(default, tuple) and not rule.are_actions:
            settings, problems = parse(nested(rule.path, ["/w/*.txt", item]))
            assert getattr(settings, name) == (NO_FOLDER if rule.are_folders else default)
            assert [problem.path for problem in problems] == [rule.path]
            assert "entry 2" in problems[0].message


def test_lists_are_bounded() -> None:
    for _, default, rule in rules():
        if isinstance(default, tuple) and not rule.are_actions:
            assert parse(nested(rule.path, ["/x"] * rule.most_items))[1] == []
            assert len(parse(nested(rule.path, ["/x"] * (rule.most_items + 1)))[1]) == 1


ACTION = {"title": "Use pathlib", "instruction": "Use pathlib."}


@pytest.mark.parametrize(
    "actions",
    [
        [ACTION] * (MOST_ACTIONS + 1),
        [ACTION | {"title": "Use\npathlib"}],
        [ACTION | {"title": "x" * 1000}],
        [ACTION | {"instruction": "x" * 10_000}],
        [ACTION | {"languages": ["python"] * 1000}],
    ],
)
def test_actions_are_bounded(actions: Any) -> None:
    settings, problems = parse({"actions": actions})
    assert settings.own_actions == ()
    assert [problem.path for problem in problems] == ["actions"]


@given(JSON)
def test_no_options_are_fatal(options: Any) -> None:
    settings, _ = parse(options)
    assert isinstance(settings, Settings)


def test_later_options_lie_over_earlier_ones() -> None:
    below = {"drafts": True, "context": {"prefixChars": 1, "suffixChars": 2}}
    above = {"context": {"prefixChars": 3}}
    assert merge(below, above) == {"drafts": True, "context": {"prefixChars": 3, "suffixChars": 2}}
    assert merge(below, None) == below
    assert merge(None, above) == above
    assert merge(below, {"context": 5}) == {"drafts": True, "context": 5}


def test_options_nested_deeper_than_any_setting_are_laid_over_one_another() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = {"a": deep}
    merged = merge(deep, {"a": deep, "drafts": True})
    assert isinstance(merged, dict)
    assert merged["drafts"] is True


def test_the_table_names_every_setting_with_its_default() -> None:
    lines = markdown_table().splitlines()
    assert len(lines) == 2 + len(list(rules()))
    assert "| `inlineCompletion.enable` | `true` | Offer ghost text. |" in lines
    assert all(line.endswith(". |") for line in lines[2:])
    assert "| `completion.maxTokens` | `32` | Longest menu entry, in tokens. 1 to 4096. |" in lines
