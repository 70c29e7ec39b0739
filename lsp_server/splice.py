"""A new text in an old one's place: does it bring syntax errors, and where.

Pure. The judge is `syntax` (trees where there is a grammar, brackets and strings elsewhere); what is broken is found by
applying the hunks one after the other. Texts have `\\n` line ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server.edits import TextReplacement, apply_edits, minimal_edits
from lsp_server.languages import language_of
from lsp_server.syntax import has_grammar, new_errors

# What is read around a splice: enough to see it break, little enough to parse at once.
_BEFORE_CHARS, _AFTER_CHARS = 8_000, 4_000
_MOST_HUNKS = 12
# What may stand in a hole that nobody filled: nothing, or any name.
_NEUTRAL = ("", "x")

REPAIR = "This code has a syntax error. Correct it and change nothing else."


@dataclass(frozen=True, slots=True)
class Splice:
    """`old`, between `before` and `after`, and what its language is. `is_hole` says that `old` is only a marker."""

    before: str
    old: str
    after: str
    language: str
    is_hole: bool = False

    def breaks(self, new: str) -> bool:
        """Whether `new` in place of `old` has more syntax errors than there were. Prose has none."""
        if not has_grammar(self.language) and not language_of(self.language).quotes:
            return False
        before, after = self._near()
        references = _NEUTRAL if self.is_hole else (self.old,)
        candidate = before + new + after
        return any(new_errors(before + reference + after, candidate, self.language) for reference in references)

    def broken_span(self, new: str) -> tuple[int, int] | None:
        """The lines of `new` that bring the errors, as offsets in it; None when there are none."""
        if not self.breaks(new):
            return None
        hunks = minimal_edits(self.old, new)
        if self.is_hole or len(hunks) > _MOST_HUNKS:
            return 0, len(new)
        spans = [_place_in_new(hunks, number) for number in self._broken(hunks)]
        if not spans:
            return 0, len(new)
        start = new.rfind("\n", 0, spans[0][0]) + 1
        end = new.find("\n", spans[-1][1])
        end = len(new) if end < 0 else end
        return (start, end) if new[start:end].strip() else (0, len(new))

    def _broken(self, hunks: list[TextReplacement]) -> list[int]:
        """The hunks that break the text, alone or on top of those in front of them."""
        return [
            number
            for number in range(len(hunks))
            if self.breaks(apply_edits(self.old, [hunks[number]]))
            or (
                self.breaks(apply_edits(self.old, hunks[: number + 1]))
                and not self.breaks(apply_edits(self.old, hunks[:number]))
            )
        ]

    def _near(self) -> tuple[str, str]:
        before, after = self.before[-_BEFORE_CHARS:], self.after[:_AFTER_CHARS]
        if len(before) < len(self.before):
            before = before[before.find("\n") + 1 :]
        if len(after) < len(self.after):
            after = after[: after.rfind("\n") + 1]
        return before, after


def _place_in_new(hunks: list[TextReplacement], number: int) -> tuple[int, int]:
    """Where the text of a hunk stands once all of them are applied."""
    shift = sum(len(hunk.text) - (hunk.end - hunk.start) for hunk in hunks[:number])
    start = hunks[number].start + shift
    return start, start + len(hunks[number].text)
