"""What a text must obey while it is decoded from left to right: `CausalRules`.

Which characters may come and how many of them are left follows from what is settled, so those rules take logits away
at the verified rows: the text is what greedy decoding gives under the same rules, whatever was drafted. Whether a text
parses or follows a schema can only be said of all of it: such checks look at the finished text, and where one fails
the text is taken up again at the place in its faulty stretch where the model was least sure, without the token it had
chosen there (depth-first search with the model's own doubt as the guide).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import torch

from engine.diffusion.constraints.canvas_text import Span, byte_spans
from engine.diffusion.constraints.failure import unsatisfied
from engine.diffusion.constraints.reviewed import Faults
from engine.diffusion.constraints.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Check:
    """A rule about the whole text: where it is broken, and what the text should do, in words."""

    faults: Faults
    wanted: str


@dataclass(slots=True)
class CausalRules:
    """Of one gap. allowed: [vocab] bool, None for any. max_lines, max_characters: 0 for any number.

    before, after: the known text around the gap, as the checks are to see it. tries: how often a finished text is taken
    up again.
    """

    vocabulary: Vocabulary
    allowed: torch.Tensor | None = None
    max_lines: int = 0
    max_characters: int = 0
    checks: Sequence[Check] = ()
    before: str = ""
    after: str = ""
    tries: int = 8
    _tried: int = field(default=0, init=False)
    _barred: dict[tuple[int, ...], set[int]] = field(default_factory=dict, init=False)
    _doubts: dict[int, float] = field(default_factory=dict, init=False)

    def constrain(self, settled: Sequence[int], draft: Sequence[int], logits: torch.Tensor) -> torch.Tensor:
        """[rows, ids] float32 logits with -inf where an id may not stand; the given ones are not changed.

        The first 1 + len(draft) rows judge the places behind `settled` and behind each token of the draft; rows behind
        them are only guesses for later and stay as they are.
        """
        rows = logits[: 1 + len(draft)].clone()
        ids = rows.shape[1]
        if self.allowed is not None:
            rows.masked_fill_(~self.allowed[:ids], -torch.inf)
        for most, sizes in self.vocabulary.limits(self.max_lines, self.max_characters):
            left = most - torch.tensor(_used(sizes, settled, draft))
            rows.masked_fill_(sizes[None, :ids] > left.clamp_min(0)[:, None], -torch.inf)
        for row in range(rows.shape[0]) if self._barred else ():
            for token in self._barred.get((*settled, *draft[:row]), ()):
                rows[row, token] = -torch.inf
        if self.checks:
            self._doubts.update(enumerate(self._doubts_of(rows), start=len(settled)))
        return torch.cat([rows, logits[1 + len(draft) :]])

    def _doubts_of(self, rows: torch.Tensor) -> list[float]:
        """How likely the second choice is beside the first, for each row; 0 where there is none.

        The ids that end a text are one choice: the text is the same whichever of them comes.
        """
        ends = sorted(self.vocabulary.ends)
        end = rows[:, ends].amax(-1)
        others = rows.index_fill(1, torch.tensor(ends), -torch.inf).topk(2).values
        first = torch.maximum(end, others[:, 0])
        second = torch.where(end > others[:, 0], others[:, 0], torch.maximum(end, others[:, 1]))
        doubts: list[float] = (second - first).exp().nan_to_num(0.0).tolist()
        return doubts

    def review(self, text: str, settled: Sequence[int]) -> int | None:
        """Of a finished text the place from which on it is to be decoded anew, None when it passes every check.

        text: what `settled` writes, perhaps cut. Raises EngineError(unsatisfied) when the tries are used up.
        """
        for check in self.checks:
            spans = check.faults(self.before + text + self.after)
            if spans:
                return self._again(check, text, settled, spans)
        return None

    def beginning(self, settled: Sequence[int]) -> str | None:
        """The longest beginning of `settled`, in whole tokens, that writes something and passes every check."""
        for count in range(len(settled) - 1, 0, -1):
            try:
                text = b"".join(self.vocabulary.pieces[token] for token in settled[:count]).decode()
            except UnicodeDecodeError:
                continue
            if text.strip() and not any(check.faults(self.before + text + self.after) for check in self.checks):
                return text
        return None

    def _again(self, check: Check, text: str, settled: Sequence[int], spans: Sequence[Span]) -> int:
        blamed = set(self._blamed(text, settled, spans))
        near = {place + step for place in blamed for step in range(-self._tried, self._tried + 1)}
        open_ = [place for place in near if 0 <= place <= len(settled) and self._doubts.get(place, 0.0) > 0.0]
        if self._tried >= self.tries or not open_:
            raise unsatisfied(
                f"no text was found that {check.wanted}" + (f" in {self._tried} corrections" if self._tried else ""),
                "leave a smaller or a clearer gap, or ask for less",
            )
        self._tried += 1
        place = max(open_, key=lambda each: (self._doubts[each], -each))
        refused = {settled[place]} if place < len(settled) else set(self.vocabulary.ends)
        self._barred.setdefault(tuple(settled[:place]), set()).update(refused)
        return place

    def _blamed(self, text: str, settled: Sequence[int], spans: Sequence[Span]) -> Iterator[int]:
        """The places that wrote any of the spans; all of the gap for a span outside of it: what is missing in a gap
        shows as an error behind it, and then its end may have come too early."""
        start = len(self.before.encode())
        size = len(text.encode())
        ends = list(accumulate(len(self.vocabulary.pieces[token]) for token in settled))
        for first, last in byte_spans(self.before + text + self.after, spans):
            begin, stop = first - start, max(last, first + 1) - start
            inside = [
                place
                for place, end in enumerate(ends)
                if end > begin and end - len(self.vocabulary.pieces[settled[place]]) < min(stop, size)
            ]
            yield from inside if inside and begin < size else range(len(settled) + 1)


def _used(sizes: torch.Tensor, settled: Sequence[int], draft: Sequence[int]) -> list[int]:
    """What is used up in front of each row: of the settled text, and of the draft up to it."""
    before = int(sizes[list(settled)].sum()) if settled else 0
    return list(accumulate((int(sizes[token]) for token in draft), initial=before))
