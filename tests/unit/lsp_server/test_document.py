"""Documents: whatever a client sends, our text stays equal to the text the editor has."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.document import Change, Document, apply_changes, for_model
from lsp_server.line_index import LineIndex
from lsp_server.positions import PositionEncoding, TextPosition
from lsp_server.rope import CHUNK_CHARS, Rope
from tests.fakes.editor_model import EditorModel

UTF16 = PositionEncoding.UTF16

_PIECES = st.sampled_from(
    [
        "a",
        "é",
        "漢",
        "🙂",
        "\u200d",
        "\n",
        "\r",
        "\r\n",
        "\x0c",
        "\x0b",
        "\x1c",
        "\u0085",
        "\u2028",
        "\t",
        "\ud83d",
        "\ude42",
    ]
)
_TEXTS = st.lists(_PIECES, max_size=25).map("".join)
_COUNTS = st.integers(0, 14) | st.sampled_from([999, 2**31 - 1])
_PLACES = st.tuples(_COUNTS, _COUNTS)
_ENCODINGS = st.sampled_from(list(PositionEncoding))
# Chunks so small that a few edits fall on, and across, many of their borders.
_CHUNKS = st.sampled_from([1, 2, 5, CHUNK_CHARS])


@dataclass(frozen=True)
class Edit:
    """Without places, `text` is the whole new document."""

    start: tuple[int, int] | None
    end: tuple[int, int] | None
    text: str


_INSERTED = st.lists(_PIECES, max_size=6).map("".join)
_PARTIAL = st.builds(Edit, _PLACES, _PLACES, _INSERTED)
_EDITS = st.lists(_PARTIAL | _PARTIAL | st.builds(Edit, st.none(), st.none(), _TEXTS), max_size=8)


def _opened(text: str) -> Document:
    return Document.open("file:///a.py", 1, "python", text)


def _in_chunks(text: str, chunk_chars: int) -> Document:
    """As `Document.open` has it, but cut finer."""
    whole = _opened(text).text
    return Document("file:///a.py", 1, "python", LineIndex(Rope.of(whole, chunk_chars)))


def _change(edit: Edit) -> Change:
    if edit.start is None or edit.end is None:
        return Change(None, None, edit.text)
    return Change(TextPosition(*edit.start), TextPosition(*edit.end), edit.text)


def _edit(editor: EditorModel, edit: Edit) -> None:
    if edit.start is None or edit.end is None:
        editor.lines = EditorModel(edit.text, editor.encoding).lines
    else:
        editor.replace(edit.start, edit.end, edit.text)


def _replace(text: str, start: tuple[int, int], end: tuple[int, int], inserted: str) -> str:
    changes = [_change(Edit(start, end, inserted))]
    return apply_changes(_opened(text), 2, changes, UTF16).text


@given(_TEXTS, _EDITS, _ENCODINGS, _CHUNKS)
def test_any_edits_keep_our_text_equal_to_the_editors(
    text: str, edits: list[Edit], encoding: PositionEncoding, chunk_chars: int
) -> None:
    editor = EditorModel(text, encoding.value)
    document = _in_chunks(text, chunk_chars)
    for version, edit in enumerate(edits, start=2):
        _edit(editor, edit)
        document = apply_changes(document, version, [_change(edit)], encoding)
        assert document.text == editor.text
        assert document.length == len(editor.text)
        assert document.index.line_count == len(editor.lines)
        for line in range(len(editor.lines)):
            end = document.index.to_position(document.index.line_end(line), encoding)
            assert end == TextPosition(line, editor.length(line))


@given(_TEXTS, _EDITS, _ENCODINGS, _CHUNKS, st.lists(_PLACES, max_size=5), st.lists(st.integers(-2, 60), max_size=5))
def test_positions_are_the_editors_there_and_back(
    text: str,
    edits: list[Edit],
    encoding: PositionEncoding,
    chunk_chars: int,
    places: list[tuple[int, int]],
    offsets: list[int],
) -> None:
    editor = EditorModel(text, encoding.value)
    for edit in edits:
        _edit(editor, edit)
    index = apply_changes(_in_chunks(text, chunk_chars), 2, map(_change, edits), encoding).index
    for place in places:
        offset = index.offset_at(TextPosition(*place), encoding)
        assert offset == editor.offset_at(*place)
        # An answer's range is always a place in the document, and comes back as the same offset.
        inside = index.to_position(offset, encoding)
        assert inside == editor.position_at(offset)
        assert index.offset_at(inside, encoding) == offset
    for offset in offsets:
        found = index.to_position(offset, encoding)
        assert found == editor.position_at(min(offset, len(editor.text)))
        assert found.character <= editor.length(found.line)


@given(_TEXTS, _EDITS, _ENCODINGS)
def test_changes_of_one_message_build_on_each_other(text: str, edits: list[Edit], encoding: PositionEncoding) -> None:
    together = apply_changes(_opened(text), 2, [_change(edit) for edit in edits], encoding)
    apart = _opened(text)
    for edit in edits:
        apart = apply_changes(apart, 2, [_change(edit)], encoding)
    assert together.text == apart.text


def test_an_over_long_end_takes_the_whole_line() -> None:
    assert _replace("abc", (0, 0), (0, 99), "X") == "X"


@pytest.mark.parametrize("separator", ["\x0c", "\x0b", "\x1c", "\u0085", "\u2028"])
def test_an_edit_behind_a_form_feed_hits_its_line(separator: str) -> None:
    assert _replace(f"a = 1{separator}b\nc", (1, 0), (1, 1), "Z") == f"a = 1{separator}b\nZ"


def test_a_line_end_may_come_together_and_apart() -> None:
    joined = apply_changes(_opened("a\rb"), 2, [Change(TextPosition(1, 0), TextPosition(1, 0), "\n")], UTF16)
    assert joined.index.line_count == 2
    parted = apply_changes(joined, 3, [Change(TextPosition(0, 1), TextPosition(1, 0), "\r x\n")], UTF16)
    assert (parted.text, parted.index.line_count) == ("a\r x\nb", 3)


def test_a_backward_range_inserts_and_deletes_nothing() -> None:
    assert _replace("abcdef", (0, 4), (0, 2), "X") == "abcdXef"


def test_a_full_change_replaces_everything_and_leaves_the_old_version_alone() -> None:
    before = _opened("old")
    after = apply_changes(before, 7, [Change(None, None, "new\n")], UTF16)
    assert (after.text, after.version, after.index.line_count) == ("new\n", 7, 2)
    assert (before.text, before.version) == ("old", 1)


def test_halves_of_a_character_that_arrive_apart_become_one() -> None:
    half = apply_changes(_opened("ab"), 2, [Change(TextPosition(0, 1), TextPosition(0, 1), "\ud83d")], UTF16)
    whole = apply_changes(half, 3, [Change(TextPosition(0, 2), TextPosition(0, 2), "\ude42")], UTF16)
    assert whole.text == "a🙂b"
    assert whole.index.to_position(3, UTF16) == TextPosition(0, 4)
    behind = apply_changes(_opened("a\ude42b"), 2, [Change(TextPosition(0, 1), TextPosition(0, 1), "\ud83d")], UTF16)
    assert behind.text == "a🙂b"
    between = apply_changes(_opened("\ud83d--\ude42"), 2, [Change(TextPosition(0, 1), TextPosition(0, 3), "")], UTF16)
    assert between.text == "🙂"


def test_the_engine_never_sees_a_carriage_return_or_half_a_character() -> None:
    assert for_model("a\r\nb\rc\nd\x0c") == "a\nb\nc\nd\x0c"
    assert for_model("a\ud83db🙂") == "a\ufffdb🙂"


@pytest.mark.parametrize(
    ("text", "newline"),
    [
        ("", "\n"),
        ("a", "\n"),
        ("a\nb", "\n"),
        ("a\r\nb\r\nc\n", "\r\n"),
        ("a\nb\nc\r\n", "\n"),
        ("a\rb\rc\n", "\r"),
        ("a\r\nb\n", "\r\n"),
    ],
)
def test_the_commonest_line_end_is_the_documents_own(text: str, newline: str) -> None:
    document = _opened(text)
    assert document.newline == newline
    assert document.to_document_newlines("x\ny\r\nz\r") == f"x{newline}y{newline}z{newline}"


def test_an_edit_leaves_the_version_before_as_it_was() -> None:
    before = _opened("line\n" * 20_000)
    after = apply_changes(before, 2, [Change(TextPosition(10_000, 0), TextPosition(10_001, 0), "")], UTF16)
    assert (before.version, before.index.line_count, before.length) == (1, 20_001, 100_000)
    assert (after.version, after.index.line_count, after.length) == (2, 20_000, 99_995)
    assert before.text == "line\n" * 20_000


def test_a_part_is_read_without_joining_the_whole() -> None:
    document = _opened("line\r\n" * 20_000)
    assert document.slice(-5, 8) == "line\r\nli"
    assert document.slice(119_998, 200_000) == "\r\n"
    assert document.newline == "\r\n"
    assert "text" not in vars(document.index.rope)
