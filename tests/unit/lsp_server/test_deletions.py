"""A line that was deleted is not put back for a while; what was typed, replaced or moved inside a line may be."""

from __future__ import annotations

import pytest

from lsp_server.deletions import KEPT_S, LINES_KEPT, LONGEST_CHARS, Deletions
from lsp_server.document import Change, Document, apply_changes
from lsp_server.ghost_text import GhostText
from lsp_server.positions import PositionEncoding, TextPosition
from tests.fakes.fake_editor import FakeClock

URI, UNITS = "file:///a.py", PositionEncoding.UTF16
TEXT = "import app\n    debug = True\nother = 1\n"


def change(start: tuple[int, int], end: tuple[int, int], text: str = "") -> Change:
    return Change(TextPosition(*start), TextPosition(*end), text)


def delete(deletions: Deletions, document: Document, *changes: Change) -> Document:
    """The document after changes of one notification, of which `deletions` is told."""
    after = apply_changes(document, 2, changes, UNITS)
    deletions.changed(document, after, changes, UNITS)
    return after


def offers(text: str, *changes: Change, said: str = "debug = True", waited_s: float = 0.0) -> bool:
    """Whether `said` may be shown after changes of one notification."""
    clock = FakeClock()
    deletions = Deletions(clock)
    delete(deletions, Document.open(URI, 1, "python", text), *changes)
    clock.advance(waited_s)
    return bool(deletions.without(URI, (GhostText(0, 0, said),)))


@pytest.mark.parametrize("deleted", [change((1, 4), (1, 16)), change((1, 0), (2, 0)), change((0, 10), (1, 16))])
@pytest.mark.parametrize("said", ["debug = True", "    debug = True", "x = 1\ndebug = True\n"])
def test_a_deleted_line_is_not_put_back(deleted: Change, said: str) -> None:
    assert not offers(TEXT, deleted, said=said)


def test_a_deletion_that_is_said_with_the_letters_of_two_lines_counts() -> None:
    # As an editor says it that looks for the smallest difference: `de` stands at the start of both lines.
    assert not offers("import app\ndebug = True\ndef f():\n", change((1, 2), (2, 2)))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_every_line_of_several_and_of_several_changes_counts(newline: str) -> None:
    text = TEXT.replace("\n", newline)
    assert not offers(text, change((0, 0), (3, 0)), said="import app")
    assert not offers(text, change((2, 0), (2, 9)), change((1, 0), (2, 0)))
    assert not offers("# first line\n# second line\n", change((0, 0), (2, 0)), said="# second line")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (change((1, 4), (1, 16), "debug = False"), "debug = True"),
        (change((1, 12), (1, 16)), "debug = True"),
        (change((1, 0), (2, 0), "debug = True\n"), "debug = True"),
        (change((2, 0), (3, 0)), "other = 1"),
        (change((1, 0), (2, 0)), "debug = Truest"),
        (Change(None, None, ""), "debug = True"),
        (change((1, 0), (1, 0), "x = 1\n"), "debug = True"),
    ],
    ids=["replaced", "shortened", "put back", "too short", "another", "all replaced", "inserted"],
)
def test_nothing_else_is_a_deletion(changed: Change, said: str) -> None:
    assert offers(TEXT, changed, said=said)


def test_typing_and_going_back_delete_no_line() -> None:
    clock = FakeClock()
    deletions, document = Deletions(clock), Document.open(URI, 1, "python", "debug = True")
    for column in range(12, 0, -1):
        document = delete(deletions, document, change((0, column - 1), (0, column)))
    ghosts = (GhostText(0, 0, "debug = True"),)
    assert document.text == ""
    assert deletions.without(URI, ghosts) == ghosts


def test_it_is_forgotten_after_a_while_with_the_document_and_beyond_a_number() -> None:
    assert not offers(TEXT, change((1, 0), (2, 0)), waited_s=KEPT_S - 1)
    assert offers(TEXT, change((1, 0), (2, 0)), waited_s=KEPT_S)
    deletions = Deletions(FakeClock())
    ghosts = (GhostText(0, 0, "debug = True"),)
    delete(deletions, Document.open(URI, 1, "python", TEXT), change((1, 0), (2, 0)))
    assert deletions.without("file:///b.py", ghosts) == ghosts
    for number in range(LINES_KEPT):
        delete(deletions, Document.open(URI, 1, "python", f"something_{number}\n"), change((0, 0), (1, 0)))
    assert deletions.without(URI, ghosts) == ghosts
    delete(deletions, Document.open(URI, 1, "python", TEXT), change((1, 0), (2, 0)))
    deletions.forget(URI)
    assert deletions.without(URI, ghosts) == ghosts


def test_who_deletes_very_much_deletes_no_line_in_particular() -> None:
    assert offers("debug = True\n" + "x" * LONGEST_CHARS, change((0, 0), (1, LONGEST_CHARS)))
