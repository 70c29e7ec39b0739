"""What was answered lately, as a draft for the request behind it: whoever types along a text asks for the rest of it.

A draft is checked by the model like any other, so a text remembered wrongly costs rows and never changes an answer.
Owns strings; knows no model.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from engine.protocol.messages import Fill

ANSWERS = 16
"""How many answers are remembered: what several files and a few places in each come to."""
MOST_CHARACTERS = 65_536
"""Of prefix and text together; longer ones are not remembered, so that the memory stays small."""
SUFFIX_COMPARED = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` was the answer between `prefix` and something that begins with `suffix`."""

    prefix: str
    suffix: str
    text: str

    def rest_for(self, request: Fill) -> str:
        """What follows the request's prefix when this answer is taken as the file's text; "" where it does not fit."""
        if request.suffix[:SUFFIX_COMPARED] != self.suffix:
            return ""
        typed = len(request.prefix) - len(self.prefix)
        if typed >= 0:
            fits = request.prefix.startswith(self.prefix) and self.text.startswith(request.prefix[len(self.prefix) :])
            return self.text[typed:] if fits else ""
        return self.prefix[typed:] + self.text if self.prefix.startswith(request.prefix) else ""


@dataclass(slots=True)
class RecentAnswers:
    """The latest answers, the newest last."""

    _answers: deque[Answer] = field(default_factory=lambda: deque(maxlen=ANSWERS))

    def remember(self, request: Fill, text: str) -> None:
        """Note that `text` was the answer. An empty text, one of several holes, and a very long one are let go."""
        if text and not request.further and len(request.prefix) + len(text) <= MOST_CHARACTERS:
            self._answers.append(Answer(request.prefix, request.suffix[:SUFFIX_COMPARED], text))

    def draft_for(self, request: Fill) -> str:
        """The rest of the newest answer that the request's prefix goes along with; "" when there is none."""
        return next((rest for answer in reversed(self._answers) if (rest := answer.rest_for(request))), "")
