"""An editor's own idea of its text, for checking ours: a list of lines, edited by (line, character).

Written against the LSP text alone and sharing no code with the server: slow, and obviously right. A line is a
list of characters and the line end it carries; positions are found by walking the line one character at a time.
"""

from __future__ import annotations


class EditorModel:
    """A buffer whose characters are counted in `encoding` units."""

    def __init__(self, text: str, encoding: str) -> None:
        self.encoding = encoding
        self.lines = self._parse(text)

    @property
    def text(self) -> str:
        return "".join("".join(characters) + ending for characters, ending in self.lines)

    def replace(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Replace what lies between two positions; positions off the text are pulled onto it."""
        first_line, first_index = self._locate(*start)
        last_line, last_index = self._locate(*end)
        if (last_line, last_index) < (first_line, first_index):
            last_line, last_index = first_line, first_index
        before = [*self.lines[:first_line], (self.lines[first_line][0][:first_index], "")]
        rest = (self.lines[last_line][0][last_index:], self.lines[last_line][1])
        after = [rest, *self.lines[last_line + 1 :]]
        self.lines = self._parse(self._join(before) + text + self._join(after))

    def length(self, line: int) -> int:
        """Units in a line, its end not counted."""
        return sum(self._units(character) for character in self.lines[line][0])

    def offset_at(self, line: int, character: int) -> int:
        """Characters before a position; positions off the text are pulled onto it."""
        number, index = self._locate(line, character)
        return len(self._join(self.lines[:number])) + index

    def position_at(self, offset: int) -> tuple[int, int]:
        """The line and the units before `offset` on it; a place inside a line end is the end of the line's text."""
        left = max(offset, 0)
        for number, (characters, ending) in enumerate(self.lines):
            is_last = number + 1 == len(self.lines)
            if is_last or left < len(characters) + len(ending):
                return number, sum(self._units(character) for character in characters[:left])
            left -= len(characters) + len(ending)
        raise AssertionError("the last line takes what is left")

    def _locate(self, line: int, character: int) -> tuple[int, int]:
        if line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1][0])
        seen = 0
        for index, each in enumerate(self.lines[line][0]):
            seen += self._units(each)
            if seen > character:
                return line, index
        return line, len(self.lines[line][0])

    def _units(self, character: str) -> int:
        if self.encoding == "utf-32":
            return 1
        if self.encoding == "utf-16":
            return 2 if ord(character) > 0xFFFF else 1
        return 1 + sum(ord(character) >= limit for limit in (0x80, 0x800, 0x10000))

    @staticmethod
    def _join(lines: list[tuple[list[str], str]]) -> str:
        return "".join("".join(characters) + ending for characters, ending in lines)

    @staticmethod
    def _parse(text: str) -> list[tuple[list[str], str]]:
        text = EditorModel._whole(text)
        lines: list[tuple[list[str], str]] = []
        characters: list[str] = []
        place = 0
        while place < len(text):
            ending = "\r\n" if text[place : place + 2] == "\r\n" else text[place]
            if ending in ("\r\n", "\r", "\n"):
                lines.append((characters, ending))
                characters = []
            else:
                characters.append(ending)
            place += len(ending)
        return [*lines, (characters, "")]

    @staticmethod
    def _whole(text: str) -> str:
        """Two halves of a surrogate pair that stand together are one character, as in an editor counting UTF-16."""
        whole = ""
        for character in text:
            if "\udc00" <= character <= "\udfff" and "\ud800" <= whole[-1:] <= "\udbff":
                high, low = ord(whole[-1]) - 0xD800, ord(character) - 0xDC00
                whole = whole[:-1] + chr(0x10000 + (high << 10) + low)
            else:
                whole += character
        return whole
