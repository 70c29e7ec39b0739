"""Positions of a client in one immutable text, turned into offsets and back.

Owns the clamping: a position off its line or off the text is pulled onto it, and one inside a character goes back to
its start. How text is kept is the rope's, what a unit is `positions`' affair.
"""

from __future__ import annotations

from lsp_server.positions import PositionEncoding, TextPosition, TextRange, code_points_before
from lsp_server.rope import Rope


class LineIndex:
    """Lines and columns of one text; `replaced` derives those of the next one without reading the rest of it."""

    __slots__ = ("rope",)

    def __init__(self, text: str | Rope) -> None:
        self.rope = Rope.of(text) if isinstance(text, str) else text

    @property
    def text(self) -> str:
        """The whole text; `rope.slice` is cheaper where a part is enough."""
        return self.rope.text

    @property
    def line_count(self) -> int:
        """One more than the number of line ends."""
        return self.rope.line_count

    def line_at(self, offset: int) -> int:
        """The line that holds `offset` (clamped); a place behind the last line end is on the last line."""
        return self.rope.line_at(offset)

    def line_start(self, line: int) -> int:
        """Where `line` starts; raises IndexError when there is no such line."""
        return self.rope.line_start(line)

    def line_end(self, line: int) -> int:
        """Where the text of `line` ends: before its line end, if it has one. Raises IndexError as `line_start` does."""
        return self.rope.line_end(line)

    def to_offset(self, line: int, character: int, encoding: PositionEncoding) -> int:
        """The offset of a client's position; positions off the line or the text are clamped into it.

        A position inside a character snaps back to that character's start.
        """
        if line < 0:
            return 0
        if line >= self.line_count:
            return len(self.rope)
        offset, left = self.line_start(line), max(character, 0)
        # A line may span many chunks; those passed whole know their units.
        for piece in self.rope.pieces(offset, self.line_end(line)):
            units = piece.units(encoding)
            if left < units:
                return offset + code_points_before(piece.text, left, encoding)
            offset, left = offset + piece.stop - piece.start, left - units
        return offset

    def to_position(self, offset: int, encoding: PositionEncoding) -> TextPosition:
        """The position of `offset` (clamped); an offset inside a `\\r\\n` becomes the end of that line's text."""
        line = self.line_at(offset)
        pieces = self.rope.pieces(self.line_start(line), min(offset, self.line_end(line)))
        return TextPosition(line, sum(piece.units(encoding) for piece in pieces))

    def offset_at(self, position: TextPosition, encoding: PositionEncoding) -> int:
        """`to_offset` for a `TextPosition`."""
        return self.to_offset(*position, encoding)

    def to_range(self, start: int, end: int, encoding: PositionEncoding) -> TextRange:
        """The positions of two offsets."""
        return TextRange(self.to_position(start, encoding), self.to_position(end, encoding))

    def replaced(self, start: int, end: int, inserted: str) -> LineIndex:
        """The index of the text in which `inserted` stands for `[start, end)`, two offsets in this one, in order."""
        return LineIndex(self.rope.replaced(start, end, inserted))
