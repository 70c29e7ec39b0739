"""What a chat model is asked, and which part of its answer is the text. Pure.

The wording is for models of any maker: what is wanted stands last, and the answer is one code block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.protocol.messages import Rewrite
from lsp_server.fences import code_in
from lsp_server.remote.control_text import Disarmed, disarmed

_SYSTEM = (
    "You edit code in somebody's editor. Reply with one code block and nothing else: no explanation, no line numbers."
)
_REWRITE = (
    "This is a part of a {language} file:\n\n{fence}{language}\n{selection}\n{fence}\n\n{around}"
    "Change it as follows: {instruction}\n\n"
    "Reply with the whole part after the change, in one code block. Leave everything else as it is."
)
_AROUND = "For your information only, this stands {place} it:\n\n{fence}{language}\n{text}\n{fence}\n\n"
_FILL = (
    "This {language} file has a gap, marked {gap}:\n\n{fence}{language}\n{prefix}{gap}{suffix}\n{fence}\n\n"
    "Reply with the text that belongs in place of {gap}, in one code block. Repeat nothing that stands before or "
    "behind the gap.{limit}"
)
# So much of a rewrite's surroundings is shown, in characters on each side.
_AROUND_CHARS = 1200
_THOUGHT = "<think>", "</think>"
_RUN = re.compile(r"`+")


@dataclass(frozen=True, slots=True)
class Question:
    """The messages of a chat, and how to read what comes back."""

    messages: tuple[dict[str, str], ...]
    texts: Disarmed
    around: tuple[str, str, str]
    language: str

    def code(self, answer: str) -> str:
        """The code of a finished answer."""
        before, selection, after = self.around
        return code_in(self.texts.restored(without_thought(answer)), before, selection, after, self.language)

    def code_so_far(self, answer: str) -> str:
        """What of an answer that still comes can be shown: the lines of its first code block."""
        text = self.texts.restored(without_thought(answer))
        _, opened, rest = text.partition("```")
        _, ended, code = rest.partition("\n")
        if not opened or not ended:
            return ""
        return code.partition("\n```")[0]


def rewrite_question(request: Rewrite) -> Question:
    """A rewrite as a chat."""
    texts = disarmed(request.selection.strip("\n"), request.before[-_AROUND_CHARS:], request.after[:_AROUND_CHARS])
    selection, before, after = texts.texts
    fence = _fence(selection, before, after)
    shown = ((before, "in front of"), (after, "behind"))
    around = "".join(
        _AROUND.format(place=place, fence=fence, language=request.language, text=text.strip("\n"))
        for text, place in shown
        if text.strip()
    )
    asked = _REWRITE.format(
        language=request.language,
        fence=fence,
        selection=selection,
        around=around,
        instruction=disarmed(request.instruction.strip()).texts[0],
    )
    return Question(_messages(asked), texts, (request.before, request.selection, request.after), request.language)


def fill_question(prefix: str, suffix: str, language: str, max_lines: int) -> Question:
    """A gap as a chat, for models that know no other way to be told of one."""
    texts = disarmed(prefix, suffix)
    before, after = texts.texts
    limit = f" Write {max_lines} lines at most." if max_lines > 1 else " Write one line." if max_lines else ""
    asked = _FILL.format(
        language=language,
        gap=_gap_mark(before + after),
        fence=_fence(before, after),
        prefix=before,
        suffix=after,
        limit=limit,
    )
    return Question(_messages(asked), texts, (prefix, "", suffix), language)


def without_thought(answer: str) -> str:
    """`answer` without what a model thought aloud before it; nothing while it still thinks."""
    opens, closes = _THOUGHT
    if not answer.lstrip().startswith(opens):
        return answer
    _, ended, said = answer.partition(closes)
    return said if ended else ""


def _messages(asked: str) -> tuple[dict[str, str], ...]:
    return {"role": "system", "content": _SYSTEM}, {"role": "user", "content": asked}


def _gap_mark(text: str) -> str:
    """A mark of the gap that stands nowhere in the text."""
    number = 0
    while (mark := f"<GAP{number or ''}>") in text:
        number += 1
    return mark


def _fence(*texts: str) -> str:
    """A code fence longer than any run of backticks in the texts."""
    longest = max((len(run) for text in texts for run in _RUN.findall(text)), default=0)
    return "`" * max(3, longest + 1)
