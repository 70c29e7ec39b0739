"""Options become settings; what cannot be used is reported and harmless."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.own_actions import OwnAction
from lsp_server.settings import Settings, markdown_table, merge, parse, rules

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
            other = next(choice for choice in rule.choices if choice != default)
        elif rule.are_actions:
            other = [{"title": "Use pathlib", "instruction": "Use pathlib.", "languages": ["python"]}]
        else:
            other = ["x"]
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


def test_the_table_names_every_setting_with_its_default() -> None:
    lines = markdown_table().splitlines()
    assert len(lines) == 2 + len(list(rules()))
    assert "| `inlineCompletion.enable` | `true` | Offer ghost text. |" in lines
    assert all(line.endswith(". |") for line in lines[2:])
