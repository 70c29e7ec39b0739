"""Where a completion goes: the document around the cursor, in the terms the rules speak."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from lsp_server import lexing
from lsp_server.indentation import blanks_of, unit_of
from lsp_server.languages import Language, language_of

# Rules look at the neighbourhood only, so that a large file costs no more than a small one.
_CHARS_BEFORE = 8_000
_CHARS_AFTER = 8_000
_LINES_FOR_UNIT = 200


@dataclass(frozen=True)
class Surroundings:
    """The text before and after the cursor, cut to the neighbourhood; line ends are `\\n`."""

    before: str
    after: str
    language_id: str

    @classmethod
    def of(cls, text: str, offset: int, language_id: str) -> Surroundings:
        """The surroundings of `offset` in `text`."""
        start = max(0, offset - _CHARS_BEFORE)
        if start:
            start = max(text.find("\n", start, offset) + 1, start)
        return cls(text[start:offset], text[offset : offset + _CHARS_AFTER], language_id)

    @cached_property
    def language(self) -> Language:
        """The facts of the document's language."""
        return language_of(self.language_id)

    @cached_property
    def head(self) -> str:
        """The cursor's line before the cursor."""
        return self.before[self.before.rfind("\n") + 1 :]

    @cached_property
    def tail(self) -> str:
        """The cursor's line behind the cursor."""
        return self.after.partition("\n")[0]

    @cached_property
    def lines_before(self) -> list[str]:
        """The lines above the cursor's, in document order."""
        return self.before.split("\n")[:-1]

    @cached_property
    def lines_after(self) -> list[str]:
        """The lines below the cursor's, in document order."""
        return self.after.split("\n")[1:]

    @cached_property
    def stack(self) -> lexing.Stack:
        """What is open at the cursor; a line comment is not, since no text closes it."""
        return lexing.stack_after(self.before, self.language)

    @cached_property
    def is_in_front_of_line(self) -> bool:
        """True when the cursor stands before the first character of a line that has text."""
        return bool(self.tail.strip()) and not self.head.strip()

    @cached_property
    def unit(self) -> str:
        """One level of indentation in this document."""
        near = [*self.lines_before[-_LINES_FOR_UNIT:], self.head, *self.lines_after[:_LINES_FOR_UNIT]]
        return unit_of(near, self.language.indent)

    @cached_property
    def indent(self) -> str:
        """The indentation of the cursor's line."""
        return blanks_of(self.head)

    @cached_property
    def last_line_before(self) -> str:
        """The nearest line above that is not blank, or an empty one."""
        return next((line for line in reversed(self.lines_before) if line.strip()), "")
