"""Which open documents may stand beside which, and the window they stand in front of."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.capabilities import Capabilities
from lsp_server.context import PREFIX_TOKENS
from lsp_server.document import Change, Document
from lsp_server.neighbours import MOST_EXCERPTS
from lsp_server.notebook import Notebook, Notebooks, OtherCells, text_before
from lsp_server.outline import PARSED_CHARS
from lsp_server.positions import TextPosition
from lsp_server.session import Session, Snapshot
from lsp_server.surroundings import window_of
from lsp_server.tokens import estimated_tokens
from lsp_server.vicinity import IGNORED_FOR_S, LARGEST_CHARS, LOOKED_AT_CHARS, Beside, shown_path
from tests.fakes.fake_editor import FakeClock, FakeEditor
from tests.fakes.fake_engine import FakeEngine

URI = "file:///w/a.py"


def session_with(*documents: Document, options: object = None, folders: tuple[str, ...] = ()) -> Session:
    session = Session(FakeEngine(), FakeEditor(), FakeClock())
    session.begin(Capabilities(), options, folders)
    for document in documents:
        session.open(document)
    return session


def document(uri: str = URI, text: str = "x = 1\n", language: str = "python") -> Document:
    return Document.open(uri, 1, language, text)


def snapshot_of(session: Session, uri: str = URI) -> Snapshot:
    snapshot = session.snapshot(uri)
    assert snapshot is not None
    return snapshot


def beside(session: Session) -> list[str]:
    return [other.document.uri for other in snapshot_of(session).around.others]


def test_the_most_recent_documents_stand_beside_one() -> None:
    session = session_with(document(), *(document(f"file:///w/{number}.py") for number in range(9)))
    session.change("file:///w/3.py", 2, [])
    assert beside(session) == [f"file:///w/{number}.py" for number in (3, 8, 7, 6)][:MOST_EXCERPTS]
    session.close("file:///w/3.py")
    assert "file:///w/3.py" not in beside(session)


LINES = "".join(f"line {number:05}\n" for number in range(LOOKED_AT_CHARS // 5))


@pytest.mark.parametrize("place", [0, 7, LOOKED_AT_CHARS // 2, LOOKED_AT_CHARS, len(LINES) - 1, len(LINES), 10**9])
def test_whole_lines_around_the_place_are_looked_at(place: int) -> None:
    region = Beside(document(text=LINES), place).region
    start = LINES.index(region)
    assert LOOKED_AT_CHARS - 2 * len("line 00000\n") < len(region) <= LOOKED_AT_CHARS
    assert start <= min(place, len(LINES)) <= start + len(region)
    assert LINES[: start + 1].endswith("\nl") or start == 0
    assert region.endswith("\n")


@pytest.mark.parametrize("text", ["", "x", "x\r" * LOOKED_AT_CHARS, "x" * 3 * LOOKED_AT_CHARS])
def test_a_text_without_line_feeds_is_looked_at_too(text: str) -> None:
    region = Beside(document(text=text), len(text) // 2).region
    assert len(region) == min(len(text), LOOKED_AT_CHARS)


def test_somebody_is_where_they_edited_or_looked_last() -> None:
    session = session_with(document(text="one\ntwo\nthree\n"), document("file:///w/b.py"))

    def place() -> int:
        (other,) = snapshot_of(session, "file:///w/b.py").around.others
        return other.place

    assert place() == 0
    session.change(URI, 2, [Change(TextPosition(2, 1), TextPosition(2, 3), "")])
    assert place() == 9
    session.change(URI, 3, [Change(None, None, "one\ntwo\nthree\n\n")])
    assert place() == 9
    session.vicinity.look(URI, 4)
    assert place() == 4
    session.close(URI)
    session.vicinity.look(URI, 4)
    assert snapshot_of(session, "file:///w/b.py").around.others == ()


@pytest.mark.parametrize(
    ("uri", "text", "language"),
    [
        ("file:///w/.env", "A=1", "python"),
        ("file:///w/long.py", "x = 1\n" * (LARGEST_CHARS // 6 + 1), "python"),
        ("file:///w/dense.js", "x" * 30_000, "javascript"),
        ("git:/w/a.py", "x = 0\n", "python"),
        ("output:tasks", "log", "plaintext"),
        ("file:///w/off.txt", "x", "plaintext"),
        ("file:///w/b.tex", "x", "latex"),
        ("file:///elsewhere/b.py", "x", "python"),
    ],
)
def test_some_documents_stand_beside_none(uri: str, text: str, language: str) -> None:
    options = {"disabledFiles": ["off.*"], "disabledLanguages": ["latex"]}
    session = session_with(document(), document(uri, text, language), options=options, folders=("file:///w",))
    assert beside(session) == []


def test_nothing_of_a_folder_where_all_is_off_is_shown() -> None:
    session = session_with(document(), document("file:///w/b.py"), folders=("file:///w",))
    assert beside(session) == ["file:///w/b.py"]
    session.workspace.configure_folder("file:///w", {"enable": False})
    assert beside(session) == []


def test_git_is_asked_again_after_a_while(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    uri, clock = (tmp_path / "a.py").as_uri(), FakeClock()
    session = Session(FakeEngine(), FakeEditor(), clock)
    session.open(document(uri))
    assert not snapshot_of(session, uri).around.is_ignored
    (tmp_path / ".gitignore").write_text("*.py\n", encoding="utf-8")
    assert not snapshot_of(session, uri).around.is_ignored
    clock.advance(IGNORED_FOR_S)
    assert snapshot_of(session, uri).around.is_ignored
    cell = document("cell:1")
    session.open(cell)
    session.vicinity.notebooks.put(Notebook((tmp_path / "n.py").as_uri(), (cell.uri,)))
    assert snapshot_of(session, cell.uri).around.is_ignored


@pytest.mark.parametrize(
    ("uri", "folder", "path"),
    [
        ("file:///w/lib/b.py", "file:///w", "lib/b.py"),
        ("file:///w/lib/b.py", "file:///w/", "lib/b.py"),
        ("file:///w2/b.py", "file:///w", "b.py"),
        ("file:///w/b%0Ac.py", None, "b c.py"),
        ("untitled:Untitled-1", None, "Untitled-1"),
        ("", None, ""),
    ],
)
def test_a_document_is_called_by_its_path_in_its_folder(uri: str, folder: str | None, path: str) -> None:
    assert shown_path(uri, folder) == path


@pytest.mark.parametrize("lines", [10, 100, PARSED_CHARS // 20])
def test_window_and_what_is_in_front_keep_the_engine_s_budget(lines: int) -> None:
    text = "import math\nclass A:\n    def f(self):\n" + "        value = math.pi\n" * lines
    other = document("file:///w/b.py", "def value_of(math):\n    return value\n" * 20)
    session = session_with(document(text=text), other, folders=("file:///w",))
    snapshot = snapshot_of(session)
    window = window_of(snapshot, snapshot.document, len(text), len(text))
    assert "# path: b.py\n" in window.prefix
    assert window.prefix.endswith("value = math.pi\n")
    assert ("import math\nclass A:\n    def f(self):\n        # ...\n" in window.prefix) is (lines > 10)
    assert estimated_tokens(window.prefix) <= PREFIX_TOKENS


def test_cells_whose_text_is_not_known_are_left_out() -> None:
    notebooks = Notebooks()
    notebooks.put(Notebook("n", ("a", "b", "c")))
    known = {"a": document("a", "x = 1"), "c": document("c", "")}
    assert notebooks.around("b", known.get) == OtherCells((known["a"],), (known["c"],))
    assert notebooks.around("elsewhere", known.get) == OtherCells()
    assert (notebooks.home_of("a"), notebooks.home_of("z")) == ("n", "z")
    notebooks.drop("n")
    assert (notebooks.home_of("a"), notebooks.get("n")) == ("a", None)


def test_cells_of_a_language_without_comments_show_only_their_own_kind() -> None:
    cells = OtherCells((document("a", "x = 1"), document("b", '{"a": 1}', "json")))
    assert text_before(cells, "json") == '{"a": 1}\n'
