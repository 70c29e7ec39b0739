"""Whether an answer is what a protocol case wants. Pure: results and pages in, AssertionError out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.fakes.editor_page import Page, span_of
from tests.fakes.protocol_steps import Wanted

ABSENT = "(absent)"
Item = dict[str, Any]


def matches(pattern: Any, value: Any) -> bool:
    """Objects match when every key of the pattern does (`(absent)`: there is none), lists item by item."""
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(
            key not in value if wanted == ABSENT else key in value and matches(wanted, value[key])
            for key, wanted in pattern.items()
        )
    if isinstance(pattern, list | tuple):
        return (
            isinstance(value, list | tuple)
            and len(pattern) == len(value)
            and all(matches(wanted, found) for wanted, found in zip(pattern, value, strict=True))
        )
    return bool(pattern == value) and isinstance(pattern, bool) == isinstance(value, bool)


def items_of(result: Any) -> list[Item]:
    """The items of a list, of a menu, of holes, or the code actions: whatever an answer holds several of."""
    if isinstance(result, dict):
        return list(result.get("items") or result.get("holes") or [])
    return list(result) if isinstance(result, list) else []


def edits_of(result: Any) -> list[Item] | None:
    """The changes an answer makes to its one document; None when it makes none."""
    edit = result.get("edit", result) if isinstance(result, dict) else None
    if edit is None or "documentChanges" not in edit:
        return None
    (changed,) = edit["documentChanges"]
    changes: list[Item] = changed["edits"]
    return changes


def as_edit(item: Item) -> Item:
    """A suggestion, an entry or a hole as a TextEdit."""
    if "insertText" in item and "range" in item:
        return {"range": item["range"], "newText": item["insertText"]}
    if "textEdit" not in item:
        return item
    edit = item["textEdit"]
    return {"range": edit.get("range") or edit["replace"], "newText": edit["newText"]}


def check_answer(wanted: Wanted, result: Any, sent: Any, page: Page | None) -> None:
    """Raise AssertionError where the result is not what is wanted. `page`: the document it was asked for."""
    assert wanted.codes is None or wanted.or_nothing, f"an error was wanted, not {result!r}"
    items = items_of(result)
    if wanted.or_nothing and not items and edits_of(result) is None:
        return
    if wanted.no_items:
        assert not items, f"nothing was wanted, not {items!r}"
        assert edits_of(result) is None, result
    if wanted.same:
        assert result == sent
    if wanted.adds is not None:
        assert {key: value for key, value in result.items() if key not in wanted.adds} == sent
        assert set(wanted.adds) <= result.keys()
    if wanted.whole is not None:
        assert matches(wanted.whole, result), f"{result!r} is not {wanted.whole!r}"
    if wanted.kinds is not None:
        assert tuple(item["kind"] for item in items) == wanted.kinds
    for item in items:
        assert wanted.every is None or matches(wanted.every, item), f"{item!r} is not {wanted.every!r}"
    _check_texts(wanted, [as_edit(item) for item in items])
    if page is not None:
        _check_document(wanted, items, edits_of(result), page)


def _check_texts(wanted: Wanted, edits: list[Item]) -> None:
    texts = [edit.get("newText") for edit in edits]
    assert wanted.texts is None or tuple(texts) == wanted.texts, texts
    assert wanted.first is None or texts[:1] == [wanted.first], texts
    assert wanted.least is None or len(set(texts)) >= wanted.least, texts
    assert wanted.most is None or len(texts) <= wanted.most, texts
    if wanted.heads is not None:
        assert texts
        assert all(str(text).startswith(wanted.heads) for text in texts), texts
    if wanted.range is not None:
        assert edits
        assert {span_of(edit["range"]) for edit in edits} == {wanted.range}


def _check_document(wanted: Wanted, items: list[Item], edits: list[Item] | None, page: Page) -> None:
    if wanted.becomes is not None:
        changes = edits if edits is not None else [as_edit(item) for item in items[:1]]
        assert changes, "there is nothing that would change the document"
        assert page.with_edits(changes) == wanted.becomes
    if wanted.hunks is not None:
        assert edits is not None
        assert len(edits) == wanted.hunks, edits
    if wanted.without is not None:
        assert edits is not None
        in_order = sorted(edits, key=lambda edit: span_of(edit["range"]))
        left = [page.with_edits(in_order[:number] + in_order[number + 1 :]) for number in range(len(in_order))]
        assert tuple(left) == wanted.without


def check_suggestions(result: Any, cursor: tuple[int, int], page: Page) -> None:
    """What holds for every inline completion: a range of one line, of the document, around the cursor; no `\\r`."""
    seen = []
    for item in items_of(result):
        span = span_of(item["range"])
        here = page.model.position_at(page.model.offset_at(*cursor))
        assert page.holds(span), f"{span} is not in the document"
        assert span[0] == span[2]
        assert span[:2] <= here <= span[2:], f"{here} is outside {span}"
        assert "\r" not in item["insertText"]
        seen.append(item["insertText"])
    assert len(seen) == len(set(seen)), f"one text twice: {seen}"
