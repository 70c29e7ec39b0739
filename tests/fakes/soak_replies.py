"""What an answer must be like, whatever was asked in a long run: its shape, and every range inside the document.

Each function gives the faults of one answer, none when it is as it should be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from tests.fakes.soak_documents import About, OpenText
from tests.fakes.soak_texts import Place


def place_of(position: Any) -> Place:
    """A position of the wire."""
    return position["line"], position["character"]


def inline_faults(result: Any, about: About) -> Iterator[str]:
    """Items, each on one line around the cursor; with a menu entry selected each extends exactly that."""
    for item in result["items"] if result is not None else ():
        span, text = item["range"], item["insertText"]
        if not about.document.holds(span, about.version):
            yield f"range {span} is not in version {about.version}"
        if span["start"]["line"] != span["end"]["line"]:
            yield f"an item over several lines: {span}"
        if not text:
            yield "an item without text"
        if about.chosen is None:
            if not place_of(span["start"]) <= about.place <= place_of(span["end"]):
                yield f"an item at {span} for a cursor at {about.place}"
        elif not text.startswith(about.chosen["text"]):
            yield f"an item that does not extend the entry selected: {text!r}"


def menu_faults(result: Any, about: About) -> Iterator[str]:
    """At most one entry, on one line around the cursor, in a list that is asked for again."""
    if result["isIncomplete"] is not True or len(result["items"]) > 1:
        yield f"a menu of {len(result['items'])}, incomplete: {result['isIncomplete']}"
    for item in result["items"]:
        edit = item["textEdit"] if "textEdit" in item else {"range": result["itemDefaults"]["editRange"]}
        edit = edit["range"] if "insert" in edit.get("range", ()) else edit
        spans = [edit[name] for name in ("range", "insert", "replace") if name in edit]
        for span in spans:
            if not about.document.holds(span, about.version):
                yield f"range {span} is not in version {about.version}"
            if not place_of(span["start"]) <= about.place <= place_of(span["end"]):
                yield f"an entry at {span} for a cursor at {about.place}"
            if span["start"]["line"] != span["end"]["line"]:
                yield f"an entry over several lines: {span}: {item}"
        if not item["label"] or not item["filterText"]:
            yield "an entry without a label or a filter text"


def actions_faults(result: Any, _about: About) -> Iterator[str]:
    """Actions with a name and a kind, of which none is preferred; what is disabled has nothing to resolve."""
    for action in result:
        if not action["title"] or "lacuna" not in action["kind"].split(".") or action.get("isPreferred"):
            yield f"an action without a name or kind of ours, or preferred: {action['title']}, {action['kind']}"
        if "disabled" in action and "data" in action:
            yield f"disabled, and to be resolved: {action['title']}"


def resolved_faults(result: Any, about: About) -> Iterator[str]:
    """An action whose edit, if it has one, is one of its document."""
    if "edit" in result:
        yield from edit_faults(result["edit"], about)


def edit_faults(result: Any, about: About) -> Iterator[str]:
    """An edit of a version no older than the one asked about; its parts are in the document and do not overlap."""
    for change in result["documentChanges"] if result is not None else ():
        head = change["textDocument"]
        if head["uri"] != about.document.uri or head["version"] < about.version:
            yield f"an edit of {head}, asked for {about.document.uri} at {about.version}"
        spans = sorted((each["range"] for each in change["edits"]), key=lambda span: place_of(span["start"]))
        yield from _spans_faults(spans, head["version"], about)


def holes_faults(result: Any, about: About) -> Iterator[str]:
    """Texts for places that are in the version named."""
    if result is None:
        return
    spans = sorted((hole["range"] for hole in result["holes"]), key=lambda span: place_of(span["start"]))
    yield from _spans_faults(spans, result["version"], about)


def draft_faults(draft: Any, documents: Sequence[OpenText]) -> Iterator[str]:
    """A draft at a place that was in its document; `documents` are those that have been open under its name."""
    if documents and not any(document.holds(draft["range"], draft["version"]) for document in documents):
        yield f"a draft at {draft['range']}, which is not in version {draft['version']}"
    if not 0 <= draft["settled"] <= len(draft["text"]):
        yield f"{draft['settled']} settled of {len(draft['text'])}"


def _spans_faults(spans: list[Any], version: int, about: About) -> Iterator[str]:
    yield from (
        f"range {span} is not in version {version}" for span in spans if not about.document.holds(span, version)
    )
    for left, right in pairwise(spans):
        if place_of(left["end"]) > place_of(right["start"]):
            yield f"{left} and {right} overlap"
