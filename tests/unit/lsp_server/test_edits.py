"""Edits: small, in order, apart from each other, and leading exactly to the text wanted."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.edits import TextReplacement, apply_edits, minimal_edits, unified_diff, with_line_ends_of

_LINES = st.sampled_from(["a = 1", "b = 2", "🙂", "", "    c", "\r", "漢字 = 1"])
_TEXTS = st.lists(st.tuples(_LINES, st.sampled_from(["\n", "\r\n", "\r", ""])), max_size=12).map(
    lambda lines: "".join(line + end for line, end in lines)
)


@given(_TEXTS, _TEXTS)
def test_applying_the_edits_gives_the_text_wanted(before: str, after: str) -> None:
    edits = minimal_edits(before, after)
    assert apply_edits(before, edits) == after
    assert all(left.end < right.start for left, right in itertools.pairwise(edits))
    assert all(before[edit.start : edit.end] != edit.text for edit in edits)
    for edit in edits:
        for border in (edit.start, edit.end):
            assert before[max(border - 1, 0) : border + 1] != "\r\n"


@given(_TEXTS, _TEXTS, st.sampled_from(["\n", "\r\n", "\r"]))
def test_line_ends_follow_the_text_before_and_lines_stay_lines(before: str, after: str, newline: str) -> None:
    wanted = after.replace("\r\n", "\n").replace("\r", "\n")
    found = with_line_ends_of(before, wanted, newline)
    assert found.replace("\r\n", "\n").replace("\r", "\n") == wanted
    unchanged = before.replace("\r\n", "\n").replace("\r", "\n")
    assert with_line_ends_of(before, unchanged, newline) == before


def test_mixed_line_ends_stay_where_lines_stay() -> None:
    before = "a\r\nb\nc\rd"
    assert with_line_ends_of(before, "a\nx\nb\nc\nd\n", "\r\n") == "a\r\nx\r\nb\nc\rd\r\n"
    assert minimal_edits(before, with_line_ends_of(before, "a\nB\nc\nd", "\r\n")) == [
        TextReplacement(3, 4, "B"),
    ]


def test_untouched_lines_are_not_part_of_any_edit() -> None:
    before = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\n"
    after = "a = 1\nb = 20\nc = 3\nd = 4\nnew\ne = 5\n"
    assert minimal_edits(before, after) == [TextReplacement(11, 11, "0"), TextReplacement(24, 24, "new\n")]


def test_offsets_count_from_the_base() -> None:
    assert minimal_edits("x = 1", "x = 2", 100) == [TextReplacement(104, 105, "2")]


def test_equal_texts_need_no_edit() -> None:
    assert minimal_edits("a\nb", "a\nb") == []
    assert unified_diff("a\nb", "a\nb", "x.py") == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nB\nc\n"),
        ("a\nb", "a\nb\n"),
        ("a\nb\n", "a\nb"),
        ("", "new\n"),
        ("a\x0cb\u2028c\nd\n", "a\x0cb\u2028c\nD\n"),
        ("a\r\nb\r\n", "a\r\nB\r\n"),
    ],
)
def test_patch_can_apply_the_diff(before: str, after: str, tmp_path: Path) -> None:
    target = tmp_path / "sample.txt"
    target.write_bytes(before.encode())
    diff = unified_diff(before, after, "sample.txt")
    command = ["git", "apply", "--whitespace=nowarn", "-"] if before else ["git", "apply", "--unidiff-zero", "-"]
    subprocess.run(command, cwd=tmp_path, input=diff.encode(), check=True, timeout=30)
    assert target.read_bytes() == after.encode()
