"""Whatever a document holds and an engine says: outside of what was selected no byte changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from hypothesis import given
from hypothesis import strategies as st

from lsp_server.document import Document
from lsp_server.edits import apply_edits
from lsp_server.errand import Errand
from lsp_server.hole_filling import fill_holes
from lsp_server.holes import Hole, find_holes
from lsp_server.passage import to_fill, to_rewrite
from lsp_server.revision import Revision, revise
from lsp_server.session import Session
from tests.fakes.fake_editor import FakeClock, FakeEditor
from tests.fakes.fake_engine import FakeEngine, Reply

URI = "file:///a.py"
LINES = st.sampled_from(
    [
        "x = 1",
        "def f(a):",
        "    return <fill>",
        "    ...",
        "    pass  # fill",
        "",
        "  ",
        "f(<fill>, b)",
        "s = '🙂'",
        "\ty",
    ]
)
SAID = st.lists(
    st.sampled_from(["y", "return a", "    b = (", ")", "\n", "\r\n", "```", "x = 1", "🙂", "    "]), max_size=6
)
NEWLINES = st.sampled_from(["\n", "\r\n", "\r"])


def errand_on(text: str, start: int, end: int, replies: list[str]) -> tuple[Errand, FakeEditor]:
    """An errand on part of an open document, with what the engine will say, the last reply again and again."""
    editor = FakeEditor()
    session = Session(FakeEngine(replies=[Reply(reply) for reply in replies]), editor, FakeClock())
    session.open(Document.open(URI, 1, "python", text))
    snapshot = session.snapshot(URI)
    assert snapshot is not None
    return Errand(session, snapshot, start, end, "Test", None), editor


def outcome(errand: Errand, work: Callable[[Errand], Awaitable[Revision]]) -> Revision | None:
    async def run() -> Revision | None:
        return await errand.run(lambda: work(errand))

    return asyncio.run(run())


def line_ends(text: str) -> set[str]:
    rest = text.replace("\r\n", "")
    return {end for end, found in (("\r\n", "\r\n" in text), ("\n", "\n" in rest), ("\r", "\r" in rest)) if found}


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, int, int]:
    """A text, with one style of line ends or several, and a selection of whole characters."""
    lines = draw(st.lists(LINES, min_size=1, max_size=8))
    style = draw(st.lists(NEWLINES, min_size=1, max_size=2))
    text = "".join(line + style[number % len(style)] for number, line in enumerate(lines[:-1])) + lines[-1]
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    # No editor selects half a line end.
    start -= text[start - 1 : start + 1] == "\r\n"
    end += text[end - 1 : end + 1] == "\r\n"
    return text, start, end


@given(documents(), st.lists(SAID.map("".join), min_size=1, max_size=3), st.sampled_from(["", "tidy"]))
def test_a_revision_changes_nothing_outside_the_selection(
    document: tuple[str, int, int], replies: list[str], instruction: str
) -> None:
    text, start, end = document
    passage = to_rewrite(text, start, end, instruction) if instruction else to_fill(text, start, end)
    errand, editor = errand_on(text, passage.start, passage.end, replies)
    revision = outcome(errand, lambda errand: revise(errand, passage))
    if revision is None:
        assert len(editor.shown) == 1
        return
    after = apply_edits(text, revision.replacements)
    assert after.startswith(text[:start])
    assert after.endswith(text[end:])
    assert len(after) >= start + len(text) - end
    assert after != text
    if line_ends(text):
        assert line_ends(after) <= line_ends(text)


@given(documents(), st.lists(SAID.map("".join), min_size=1, max_size=3))
def test_filling_changes_nothing_outside_the_holes(document: tuple[str, int, int], replies: list[str]) -> None:
    text, _, _ = document
    holes = find_holes(text, ("<fill>", "...", "pass  # fill"))
    if not holes:
        return
    start = holes[0].start
    errand, editor = errand_on(text, start, holes[-1].end, replies)
    shifted = [Hole(hole.start - start, hole.end - start) for hole in holes]
    revision = outcome(errand, lambda errand: fill_holes(errand, shifted))
    if revision is None:
        assert len(editor.shown) == 1
        return
    assert {(item.start, item.end) for item in revision.replacements} <= {(hole.start, hole.end) for hole in holes}
    assert all(item.text for item in revision.replacements)
    if line_ends(text):
        assert line_ends(apply_edits(text, revision.replacements)) <= line_ends(text)
