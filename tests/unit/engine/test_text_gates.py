"""The gates of a finished text: a syntax error it brings, a length nobody meant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.protocol.messages import Fill, Filled, FurtherHole, Rewrite, Stop
from engine.quality import Gates
from engine.text_gates import text_faults

FILL = Fill("1", "python", "def f(x):\n    ", "\n\nprint(f(2))\n")
EDIT = Rewrite("2", "python", "def f(x):\n", "    y = x\n    return y\n", "\n", "Add one.")


def gates_of(request: Fill | Rewrite, *texts: str, stop: Stop = "end") -> list[str]:
    return [fault.gate for fault in text_faults(request, [Filled(text, stop) for text in texts])]


@pytest.mark.parametrize(
    ("prefix", "text", "suffix", "is_refused"),
    [
        ("def f(x):\n    ", "return x", "\n", False),
        ("def f(x):\n    ", "return (x", "\n", True),
        # The standard library's parser knows more than the grammar.
        ("def f(x):\n    ", "y =", "\n", True),
        # What was broken before may stay so, and may be mended.
        ("print((\n\ndef f(x):\n    ", "return x", "\n", False),
        ("print(", "1)", "\n", False),
        # Cut off in front: a window may begin anywhere.
        ("        return 1\n    def g(self):\n        ", "return 2", "\n", False),
    ],
)
def test_a_fill_that_brings_a_syntax_error(prefix: str, text: str, suffix: str, is_refused: bool) -> None:
    assert gates_of(replace(FILL, prefix=prefix, suffix=suffix), text) == ["parse"] * is_refused


@pytest.mark.parametrize(
    "request_",
    [replace(FILL, language="brainfuck"), replace(FILL, max_lines=1), replace(FILL, prefix="x" * 70_000)],
    ids=["no grammar", "one line", "too long to look at"],
)
def test_what_is_not_parsed(request_: Fill) -> None:
    assert gates_of(request_, "return (") == []


@pytest.mark.parametrize("stop", ["budget", "deadline", "lines"])
def test_what_was_cut_off_is_not_parsed(stop: Stop) -> None:
    assert gates_of(FILL, "return (", stop=stop) == []


def test_several_holes_are_parsed_together() -> None:
    request = replace(FILL, suffix=")\n", further=(FurtherHole(" + (", "", 0),))
    assert gates_of(request, "return x", "1") == []
    assert gates_of(request, "return x", "1)") == ["parse"]


@pytest.mark.parametrize(
    ("selection", "text", "found"),
    [
        ("    y = x\n    return y\n", "y = x + 1\nreturn y\n", []),
        ("    y = x\n    return y\n", "y = x +\nreturn y\n", ["parse"]),
        # A piece that is no whole statement stays one.
        ("    else:\n        return 1\n", "else:\n    return 2\n", []),
        ("    y = x\n", "\n", ["length"]),
        ("    y = x\n", "y = x\n" * 400, ["length"]),
        ("    y = x\n" * 100, "y = x\n" * 400, []),
    ],
)
def test_a_rewrite(selection: str, text: str, found: list[str]) -> None:
    assert gates_of(replace(EDIT, selection=selection), text) == found


def test_a_line_without_end() -> None:
    assert gates_of(replace(FILL, max_lines=1), "x" * 1001) == ["length"]
    assert gates_of(FILL, f"x = '{'x' * 900}'\n    y = '{'y' * 900}'") == []


def test_open_gates_refuse_nothing() -> None:
    assert text_faults(EDIT, [Filled("", "end")], Gates.open()) == ()
    assert text_faults(FILL, [Filled(f"({'x' * 5000}", "end")], Gates.open()) == ()
