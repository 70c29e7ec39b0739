"""An engine's answer to a rewrite, turned into the selection's new text.

Owns what chat-tuned models put around code (prose, fences, the lines on either side) and the fit of what is left
to the selection: its indentation, its line ends at either end. Pure; must not know versions or edits.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server import lexing
from lsp_server.document import for_model
from lsp_server.fences import code_in
from lsp_server.indentation import blanks_of, fitted, unit_of
from lsp_server.languages import Language, language_of
from lsp_server.special_tokens import text_before_special

_MOST_REPEATED_LINES = 30
_LINES_FOR_UNIT = 200


@dataclass(frozen=True, slots=True)
class _Selection:
    """A selection and its surroundings, `\\n` only. `head` and `tail` are what its lines hold outside of it."""

    before: str
    text: str
    after: str
    language_id: str

    @property
    def language(self) -> Language:
        return language_of(self.language_id)

    @property
    def head(self) -> str:
        return self.before[self.before.rfind("\n") + 1 :]

    @property
    def tail(self) -> str:
        return "" if self.text.endswith("\n") else self.after.partition("\n")[0]

    @property
    def core(self) -> str:
        """The text without the blank lines and blanks around it; its first line's indentation is gone too."""
        return self.text.strip()

    @property
    def lead(self) -> str:
        """What stands before the core: blank lines and the first line's indentation."""
        blanks = self.text.lstrip() if self.core else self.text[len(self.text.rstrip("\n")) :]
        return self.text[: len(self.text) - len(blanks)]

    @property
    def trail(self) -> str:
        """What stands behind the core."""
        return self.text[len(self.text.rstrip() if self.core else self.lead) :]

    @property
    def unit(self) -> str:
        before = self.before.split("\n")[-_LINES_FOR_UNIT:]
        after = self.after.split("\n")[:_LINES_FOR_UNIT]
        near = ("\n".join(before) + self.text + "\n".join(after)).split("\n")
        return unit_of(near, self.language.indent)


def clean_rewrite(
    raw: str, before: str, selection: str, after: str, language: str, instruction: str = ""
) -> str | None:
    """The text that replaces `selection`, or None when nothing would change or nothing usable was said.

    `before` and `after` are the document's text on both sides. Line ends of the result are `\\n`; a workspace edit
    converts them with `Document.to_document_newlines`. Blank lines and line ends at either end of the selection
    stay as they are. The `instruction` only tells which control tokens' text the person wrote.
    """
    chosen = _Selection(for_model(before), for_model(selection), for_model(after), language)
    written = "\n".join((chosen.before, chosen.text, chosen.after, instruction))
    answer = code_in(text_before_special(raw, written), chosen.before, chosen.text, chosen.after, language)
    lines = _without_surroundings(answer.strip("\n").rstrip().split("\n"), chosen)
    if not any(line.strip() for line in lines):
        return None
    body = _within_line("\n".join(_indented(lines, chosen)), chosen)
    result = chosen.lead + body + chosen.trail
    return None if not body.strip() or result == chosen.text else result


def placed_draft(text: str, settled: int, selection: str) -> tuple[str, int]:
    """A rewrite's draft as it would stand in the place of `selection`, and how many code points of that are settled.

    An engine is shown a selection without the indentation that all its lines share and without the blank lines around
    it, and so are its drafts. The end is not known yet, so nothing is added there.
    """
    lines = _filled_lines(selection)
    margin = _shared_margin(lines)
    if text.startswith(margin):
        margin = ""
    above = "\n" * (len(selection) - len(selection.lstrip("\n"))) if lines else ""
    placed, count, start = [], settled + len(above), 0
    for line in text.split("\n"):
        added = margin if line.strip() else ""
        placed.append(added + line)
        count += len(added) if start < settled else 0
        start += len(line) + 1
    return above + "\n".join(placed), count


def _filled_lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _shared_margin(lines: list[str]) -> str:
    """The indentation that all of `lines` begin with."""
    margin = blanks_of(lines[0]) if lines else ""
    for line in lines:
        while not line.startswith(margin):
            margin = margin[:-1]
    return margin


def _indented(lines: list[str], chosen: _Selection) -> list[str]:
    """`lines` at the selection's indentation; the first one without its own, which `lead` or `head` holds."""
    lines = _dedented(lines)
    origin = blanks_of(lines[0])
    lines = [lines[0].removeprefix(origin), *lines[1:]]
    place = chosen.head + chosen.lead
    return fitted(
        lines,
        head=place[place.rfind("\n") + 1 :],
        origin=origin,
        unit=chosen.unit,
        language=chosen.language,
        margin=_shared_margin(_filled_lines(chosen.head + chosen.text)),
    )


def _dedented(lines: list[str]) -> list[str]:
    """`lines` without the blank ones around them, blanks only emptied."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return [line if line.strip() else "" for line in lines[filled[0] : filled[-1] + 1]]


def _within_line(body: str, chosen: _Selection) -> str:
    """`body` without the parts of the selection's first and last line that were not selected."""
    head, tail = chosen.head.strip(), chosen.tail.strip()
    if head and body.startswith(head) and not chosen.core.startswith(head):
        body = body[len(head) :].lstrip(" \t")
    if tail and body.endswith(tail) and not chosen.core.endswith(tail):
        shorter = body[: len(body) - len(tail)].rstrip()
        if _openness(shorter, chosen) <= _openness(body, chosen):
            body = shorter
    return body


def _openness(text: str, chosen: _Selection) -> int:
    """How far `text` is from leaving brackets as the selection left them."""
    wanted = _net(chosen.core, chosen.language)
    return abs(_net(text, chosen.language) - wanted)


def _net(text: str, language: Language) -> int:
    """Brackets and strings opened minus those closed, over all of `text`."""
    net = 0
    for event in lexing.scan(text, language):
        net += -1 if event.before == event.after else len(event.after) - len(event.before)
    return net


def _without_surroundings(lines: list[str], chosen: _Selection) -> list[str]:
    """`lines` without a copy of the lines just above or just below the selection."""
    own = _filled(chosen.text)
    above = _filled(chosen.before.removesuffix(chosen.head))
    below = _filled(chosen.after.removeprefix(chosen.tail))
    first = _copied_above(lines, above, own)
    last = len(lines) - _copied_below(lines[first:], below, own, chosen)
    return lines[first:last]


def _filled(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _copied_above(lines: list[str], above: list[str], own: list[str]) -> int:
    """How many of `lines` at the start are the last of `above`."""
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    ours = [lines[number].strip() for number in numbers]
    for size in range(min(len(ours) - 1, len(above), _MOST_REPEATED_LINES), 0, -1):
        if ours[:size] == above[-size:] and own[:size] != ours[:size] and _is_telling(ours[:size]):
            return numbers[size - 1] + 1
    return 0


def _copied_below(lines: list[str], below: list[str], own: list[str], chosen: _Selection) -> int:
    """How many of `lines` at the end are the first of `below`; brackets count when they are one too many."""
    numbers = [number for number, line in enumerate(lines) if line.strip()]
    ours = [lines[number].strip() for number in numbers]
    for size in range(min(len(ours) - 1, len(below), _MOST_REPEATED_LINES), 0, -1):
        if ours[-size:] != below[:size] or own[-size:] == ours[-size:]:
            continue
        first = numbers[-size]
        is_balanced = _openness("\n".join(lines[:first]), chosen) <= _openness("\n".join(lines), chosen)
        if _is_telling(ours[-size:]) or (is_balanced and _openness("\n".join(lines), chosen)):
            return len(lines) - first
    return 0


def _is_telling(lines: list[str]) -> bool:
    """False for lines that stand in many places, such as `}`, `else:` or `pass`."""
    return sum(each.isalnum() for line in lines for each in line) >= 5
