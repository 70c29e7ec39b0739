"""Code out of an answer in Markdown: prose and fences around it go, fences inside it stay.

Owns the reading of fences (CommonMark 0.31, section 4.5) where an answer and the code itself may hold them. Which
fence closes the answer's is decided by what parses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server.syntax import has_errors, has_grammar, new_errors

# Behind the language stands what cannot belong to it, so that there is one way only to read a line.
_FENCE = re.compile(
    r"[ \t]*(`{3,}|~{3,})[ \t]*(?:(?P<info>[\w+#.-]+)(?:[^`\n\w+#.-][^`\n]*)?|[^`~\n\w+#. \t-][^`\n]*)?$"
)
_INTRODUCTION = re.compile(r"(?:sure|certainly|of course|here\b|okay|ok\b|the (?:rewritten|updated|new)).*:\s*$", re.I)
_MARKDOWN = ("markdown", "md", "mdx")


@dataclass(frozen=True, slots=True)
class _Fence:
    line: int
    mark: str
    info: str


def code_in(answer: str, before: str, selection: str, after: str, language: str) -> str:
    """The code of `answer`, which is to stand between `before` and `after` in place of `selection`."""
    lines = answer.strip("\n").split("\n")
    fences = _fences(lines)
    opening = _opening(lines, fences, before, selection, after, language)
    if opening is None:
        return "\n".join(_without_introduction(lines, selection))
    inner = fences[fences.index(opening) + 1 :]
    closings = [
        fence.line
        for fence in inner
        if not fence.info and fence.mark[0] == opening.mark[0] and len(fence.mark) >= len(opening.mark)
    ]
    candidates = ["\n".join(lines[opening.line + 1 : closing]) for closing in closings]
    if not candidates:
        return "\n".join(lines[opening.line + 1 :])
    return _best(candidates, before, selection, after, language)


def _fences(lines: list[str]) -> list[_Fence]:
    found = [(number, _FENCE.match(line)) for number, line in enumerate(lines)]
    return [_Fence(number, match.group(1), match["info"] or "") for number, match in found if match]


def _opening(
    lines: list[str], fences: list[_Fence], before: str, selection: str, after: str, language: str
) -> _Fence | None:
    """The fence that opens the answer's code, or None when the whole answer is code, fences and all."""
    if not fences:
        return None
    holds_fences = bool(_fences(selection.split("\n")))
    is_first = not any(line.strip() for line in lines[: fences[0].line])
    if is_first:
        is_own = holds_fences and _FENCE.match(selection.strip().split("\n")[0])
        return None if is_own and fences[0].info not in _MARKDOWN else fences[0]
    if language in _MARKDOWN:
        return fences[0] if fences[0].info in _MARKDOWN else None
    if has_grammar(language):
        is_code = not new_errors(before + selection + after, before + "\n".join(lines) + after, language)
        return None if is_code and holds_fences else fences[0]
    is_alike = lines[0].strip() == selection.strip().split("\n")[0].strip()
    return None if holds_fences and is_alike else fences[0]


def _best(candidates: list[str], before: str, selection: str, after: str, language: str) -> str:
    """The first candidate that parses, alone or in its place; else the last if the selection held fences too."""
    whole = before + selection + after
    for candidate in candidates:
        if not has_errors(candidate, language) or not new_errors(whole, before + candidate + after, language):
            if language in _MARKDOWN:
                break
            return candidate
    return candidates[-1] if _fences(selection.split("\n")) or language in _MARKDOWN else candidates[0]


def _without_introduction(lines: list[str], selection: str) -> list[str]:
    """`lines` without a sentence such as `Here is the code:` at their start."""
    first = lines[0].strip()
    is_spoken = len(lines) > 1 and _INTRODUCTION.match(first) and first not in selection
    return lines[1:] if is_spoken else lines
