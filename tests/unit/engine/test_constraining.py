"""What "must parse" finds fault with: what the filled text broke, by the strictest reader there is for it."""

from __future__ import annotations

import pytest

from engine.constraining import syntax_faults
from engine.protocol.messages import Fill, FurtherHole
from engine.python_syntax import python_error


def wrong(before: str, text: str, after: str, language: str = "python") -> list[str]:
    """The faulty stretches of the text with its hole filled."""
    whole = before + text + after
    return [whole[start:end] for start, end in syntax_faults(Fill("1", language, before, after))(whole)]


@pytest.mark.parametrize(
    ("before", "text", "after", "faulty"),
    [
        ("result = ", "", "\nprint(result)\n", ["result = "]),
        ("result = ", "1", "\nprint(result)\n", []),
        ("def f():\n", "    a, b = 0, 1\n     while a:\n        pass", "\n", ["     while a:"]),
        ("def f():\n", "    a, b = 0, 1\n    while a:\n        pass", "\n", []),
        ("def f():\n    ", "return '\\d'", "\n", []),
        ("def f():\n    ", "", "\n\n\nx = 1\n", ["x = 1"]),
        ("def f():\n", "a = 1", "\n    return a\n", ["a = 1"]),
        ("def f():\n", "    a = 1", "\n    return a\n", []),
        ("if x:\n    y()\n", "    z()", "\n", []),
        ("def f():\n    return 1\n", "def g():", "", ["def g():"]),
    ],
)
def test_python_must_parse_as_python(before: str, text: str, after: str, faulty: list[str]) -> None:
    assert wrong(before, text, after) == faulty


def test_python_that_python_did_not_take_before_is_left_to_the_grammar() -> None:
    assert wrong("%matplotlib inline\nx = ", "", "\nprint(x)\n") == []
    assert wrong("%matplotlib inline\nx = ", "(", "\n") != []


def test_of_several_holes_one_that_is_left_empty_is_found() -> None:
    request = Fill("1", "python", "x = ", "\nprint(y)\n", further=(FurtherHole("\ny = "),))
    assert list(syntax_faults(request)("x = 1\ny = \nprint(y)\n")) == [(6, 10)]


@pytest.mark.parametrize(
    ("before", "text", "after", "is_sound"),
    [
        ('{\n "name": "web",\n "port": ', "8080", "\n}", True),
        ('{\n "name": "web",\n "port": ', "8080,", "\n}", False),
        ('{"name": "web", ', '"port": 80', "}", True),
        ('{"name": "web", ', '"port": 80,', "}", False),
    ],
)
def test_json_must_parse_as_json(before: str, text: str, after: str, is_sound: bool) -> None:
    assert (not wrong(before, text, after, "json")) is is_sound


@pytest.mark.parametrize("text", ["(", "x = (\n", "if x:", "if x:\n", "\n(", "a\nb c", "\0", "(" * 500, "-" * 99_999])
def test_a_fault_is_at_least_one_character_of_the_text(text: str) -> None:
    fault = python_error(text)
    assert fault is not None
    assert 0 <= fault[0] < fault[1] <= len(text)
