"""Whether a finished text fits where it goes: does it parse, is it as long as it may be. Pure but for grammars.

The parse check asks only whether a text brings an error that was not there without it, and only of languages with a
grammar. What budget or deadline cut off, and single lines, may well be no whole statement and are not parsed.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.constraining import syntax_faults
from engine.grammars import GRAMMARS, error_spans, parser_for
from engine.prompts import dedent
from engine.protocol.errors import EngineError
from engine.protocol.messages import Fill, Filled, Rewrite
from engine.python_syntax import python_error
from engine.quality import Fault, Gates

MOST_PARSED = 60_000
"""Characters of text and surroundings: more would take longer to parse than to denoise."""


def text_faults(request: Fill | Rewrite, holes: Sequence[Filled], gates: Gates | None = None) -> tuple[Fault, ...]:
    """What speaks against the texts of a request's holes, a rewrite having one."""
    gates = gates or Gates()
    found = [*_length_faults(request, holes, gates)]
    if gates.parse and not _parses(request, holes):
        found.append(Fault("parse", "the text brings a syntax error"))
    return tuple(found)


def _length_faults(request: Fill | Rewrite, holes: Sequence[Filled], gates: Gates) -> list[Fault]:
    longest = max((len(line) for hole in holes for line in hole.text.split("\n")), default=0)
    found = []
    if longest > gates.longest_line:
        found.append(Fault("length", f"a line is {longest} characters long"))
    if not isinstance(request, Rewrite):
        return found
    size, given = len(holes[0].text), len(request.selection)
    if not holes[0].text.strip() and not gates.may_be_blank:
        found.append(Fault("length", "nothing is left of the selection"))
    elif size > gates.most_growth * given + gates.spare_characters:
        found.append(Fault("length", f"{given} characters became {size}"))
    return found


def _parses(request: Fill | Rewrite, holes: Sequence[Filled]) -> bool:
    if request.language not in GRAMMARS or any(hole.stop != "end" for hole in holes):
        return True
    try:
        return _rewrite_parses(request, holes[0].text) if isinstance(request, Rewrite) else _fill_parses(request, holes)
    except EngineError:  # the grammar's wheel is not installed
        return True


def _rewrite_parses(request: Rewrite, text: str) -> bool:
    """Whether the new text has no more errors than the old one, each without the indentation of its place."""
    old, new = (dedent(code).strip("\n") + "\n" for code in (request.selection, text))
    if len(old) + len(new) > MOST_PARSED:
        return True
    parser = parser_for(request.language)
    is_python = request.language == "python"
    errors = len(error_spans(parser, new))
    if errors == 0 and not (is_python and python_error(new)):
        return True
    if errors > len(error_spans(parser, old)):
        return False
    return not is_python or python_error(new) is None or python_error(old) is not None


def _fill_parses(request: Fill, holes: Sequence[Filled]) -> bool:
    if request.max_lines == 1 and not request.further:
        return True
    islands = (hole.island for hole in request.further)
    behind = "".join(island + hole.text for island, hole in zip(islands, holes[1:], strict=False))
    whole = request.prefix + holes[0].text + behind + request.suffix
    if len(whole) > MOST_PARSED:
        return True
    if not error_spans(parser_for(request.language), whole) and not (
        request.language == "python" and python_error(whole)
    ):
        return True
    # Only a text with errors is compared with what stood there before, which takes several times as long.
    return not syntax_faults(request)(whole)
