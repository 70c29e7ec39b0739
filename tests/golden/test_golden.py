"""What an engine says, and what the document must be once its suggestion is accepted: data in `cases/`.

A case has a `document` with the cursor `‸` or a selection `⟦…⟧`, the engine's raw texts `says` (each must give the
same), and the document it `becomes`, or `nothing = true`. `⇥` stands for a tab. A document that starts with a line
end starts behind it. Every case runs with all three line ends and all three position encodings.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from lsp_server.document import Document
from lsp_server.ghost_text import present_in
from lsp_server.positions import PositionEncoding
from lsp_server.rewrite_text import clean_rewrite

CASES = Path(__file__).parent / "cases"
NEWLINES = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}


@dataclass(frozen=True)
class Case:
    name: str
    language: str
    document: str
    says: tuple[str, ...]
    becomes: str | None
    single_line: bool | None
    automatic: bool


def _text(field: str) -> str:
    return field.replace("⇥", "\t")


def _case(entry: dict[str, object]) -> Case:
    unknown = set(entry) - {"name", "covers", "nothing", *Case.__dataclass_fields__}
    assert not unknown, f"{entry['name']}: unknown keys {unknown}"
    assert ("becomes" in entry) != bool(entry.get("nothing")), f"{entry['name']}: what does it become?"
    says = entry["says"]
    single_line = entry.get("single_line")
    assert isinstance(says, list)
    return Case(
        name=str(entry["name"]),
        language=str(entry["language"]),
        document=_text(str(entry["document"])),
        says=tuple(_text(str(said)) for said in says),
        becomes=_text(str(entry["becomes"])) if "becomes" in entry else None,
        single_line=None if single_line is None else bool(single_line),
        automatic=bool(entry.get("automatic", True)),
    )


def _load(*names: str) -> list[Case]:
    files = [CASES / f"{name}.toml" for name in names]
    return [_case(entry) for file in files for entry in tomllib.loads(file.read_text("utf-8"))["case"]]


GHOST_CASES = _load("indentation", "overlap", "surroundings")
REWRITE_CASES = _load("rewrite")
EACH_NEWLINE = pytest.mark.parametrize("newline", NEWLINES.values(), ids=NEWLINES)


def check(case: Case, said: str, newline: str) -> None:
    """Accept what is offered for `said`, in a document with this line end, and compare."""
    before, after = case.document.replace("\n", newline).split("‸")
    document = Document.open("untitled:a", 1, case.language, before + after)
    ghost = present_in(document, len(before), said, single_line=case.single_line, automatic=case.automatic)
    if ghost is None:
        assert case.becomes is None, f"nothing offered for {said!r}"
        return
    assert "\r" not in ghost.text
    assert 0 <= ghost.start <= len(before) <= ghost.end <= len(document.text)
    _assert_one_line(document, ghost.start, ghost.end)
    inserted = document.to_document_newlines(ghost.text)
    accepted = document.text[: ghost.start] + inserted + document.text[ghost.end :]
    assert case.becomes is not None, f"offered {ghost.text!r} for {said!r}"
    assert accepted == _in_style_of(document, case.becomes, newline), f"for {said!r}"


def _in_style_of(document: Document, text: str, newline: str) -> str:
    # A document without any line end has no style of its own yet.
    return text.replace("\n", newline if newline in document.text else "\n")


def _assert_one_line(document: Document, start: int, end: int) -> None:
    for encoding in PositionEncoding:
        found = document.index.to_range(start, end, encoding)
        assert found.start.line == found.end.line
        assert document.index.offset_at(found.start, encoding) == start
        assert document.index.offset_at(found.end, encoding) == end


def check_rewrite(case: Case, said: str, newline: str) -> None:
    """Apply the rewrite made of `said`, in a document with this line end, and compare."""
    before, rest = case.document.replace("\n", newline).split("⟦")
    selection, after = rest.split("⟧")
    document = Document.open("untitled:a", 1, case.language, before + selection + after)
    found = clean_rewrite(said.replace("\n", newline), before, selection, after, case.language)
    if found is None:
        assert case.becomes is None, f"no edit for {said!r}"
        return
    assert "\r" not in found
    assert case.becomes is not None, f"edited to {found!r} for {said!r}"
    result = before + document.to_document_newlines(found) + after
    assert result == _in_style_of(document, case.becomes, newline), f"for {said!r}"


@EACH_NEWLINE
@pytest.mark.parametrize("case", GHOST_CASES, ids=lambda case: case.name)
def test_an_accepted_suggestion_gives_the_document_wanted(case: Case, newline: str) -> None:
    for said in case.says:
        check(case, said, newline)


@EACH_NEWLINE
@pytest.mark.parametrize("case", REWRITE_CASES, ids=lambda case: case.name)
def test_an_applied_rewrite_gives_the_document_wanted(case: Case, newline: str) -> None:
    for said in case.says:
        check_rewrite(case, said, newline)


def test_every_case_is_marked_and_named_once() -> None:
    assert all(case.document.count("‸") == 1 for case in GHOST_CASES)
    assert all(case.document.count("⟦") == case.document.count("⟧") == 1 for case in REWRITE_CASES)
    names = [case.name for case in GHOST_CASES + REWRITE_CASES]
    assert len(names) == len(set(names))


def test_every_case_that_has_an_id_is_there() -> None:
    entries = [case for file in CASES.glob("*.toml") for case in tomllib.loads(file.read_text("utf-8"))["case"]]
    covered = {case["covers"] for case in entries if "covers" in case}
    assert sorted(covered) == sorted((CASES / "case_ids.txt").read_text("utf-8").split())
