"""How many lines a place asks for: a block where one begins, one line inside what is begun already.

Many lines: an empty line, the first word of a statement, the name in a definition, behind what opens a block, inside
text that spans lines. One line: in front of other text, inside an expression. A grammar decides where a statement
begins on its line when the line alone does not say. Pure.
"""

from __future__ import annotations

import re

from lsp_server import lexing
from lsp_server.grammars import parser_of
from lsp_server.indentation import opens_block
from lsp_server.languages import language_of
from lsp_server.syntax import position_kind, prefers_single_line
from lsp_server.words import word_at_end

# A statement is looked for in this much text around the cursor: parsing costs a millisecond for every 2,000 characters.
_READ_BEFORE_CHARS = 3_000
_READ_AFTER_CHARS = 500
_ALSO_IN_WORDS = "@#$"
_DEFINES = re.compile(
    r"\s*(?:(?:export|default|async|public|private|protected|static|final|pub|local|abstract|open|override)\s+)*"
    r"(?:def|class|function|func|fun|fn|interface|struct|enum|module|trait|impl|namespace)(?:[^\w(\[{=][^(\[{=]*)?$"
)
_LACKS_OPERAND = re.compile(r"(?:(?<![=-])>|[=+\-*/<&|,.!]|\b(?:and|or|not|in))$")
_CASE = re.compile(r"\s*(?:case\b|default\b)")
_OPENED_LAST = re.compile(r"[{\[][ \t]*$")


def is_single_line(text: str, offset: int, language: str) -> bool:
    """Whether one line is what the place at `offset` asks for; `text` has `\\n` line ends."""
    if prefers_single_line(text, offset, language):
        return True
    if _begins_block(text[text.rfind("\n", 0, offset) + 1 : offset], language):
        return False
    return _is_code(text, offset, language) and not _begins_statement(text, offset, language)


def _begins_block(head: str, language: str) -> bool:
    """An empty line, the word a line begins with, the name in a definition, or behind what opens a block."""
    facts = language_of(language)
    if not head[: len(head) - len(word_at_end(head, _ALSO_IN_WORDS))].strip() or _DEFINES.match(head):
        return True
    code = lexing.code_of_line(head, facts)
    if code.endswith(":") and not facts.off_side:
        # Behind any other colon stands a value.
        return bool(_CASE.match(code))
    if _LACKS_OPERAND.search(code):
        return False
    return opens_block(head, facts) or bool(_OPENED_LAST.search(code))


def _is_code(text: str, offset: int, language: str) -> bool:
    """Whether the place is code: prose, which knows no quotes, is none, and neither is a string that spans lines."""
    return bool(language_of(language).quotes) and position_kind(text, offset, language) == "code"


def _begins_statement(text: str, offset: int, language: str) -> bool:
    """Whether a word at the cursor would begin a statement, such as behind a semicolon or a block's opener."""
    parser = parser_of(language_of(language).grammar)
    if parser is None:
        return False
    start = max(0, offset - _READ_BEFORE_CHARS)
    before = text[text.find("\n", start, offset) + 1 if start else 0 : offset]
    word = word_at_end(before, _ALSO_IN_WORDS)
    place = len(before[: len(before) - len(word)].encode("utf-8", "replace"))
    probed = f"{before}x{text[offset : offset + _READ_AFTER_CHARS]}".encode("utf-8", "replace")
    node = parser.parse(probed).root_node.descendant_for_byte_range(place, place + 1)
    while node is not None and node.parent is not None and node.parent.start_byte == place:
        node = node.parent
    return node is not None and node.is_named and node.type.endswith(("statement", "declaration", "block"))
