"""Whether the tokens of a denoised text are fit to be shown: doubt and repetition, told by gate and in words. Pure.

Nothing is cut or changed here: repetition is often right in code (a table of zeros), so it is only ever told. What the
text itself says is judged in `text_gates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum, inf
from sys import maxsize

from engine.protocol.messages import Gate


@dataclass(frozen=True, slots=True)
class Fault:
    """What speaks against a text: the gate it did not pass, and why in words that quote nothing of it."""

    gate: Gate
    words: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of a text: the mean probability of its tokens, None where it was not computed, and what speaks against it."""

    confidence: float | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The gates it did not pass, each once."""
        return tuple(dict.fromkeys(fault.gate for fault in self.faults))

    @property
    def words(self) -> str:
        """All faults in words."""
        return "; ".join(fault.words for fault in self.faults)


@dataclass(frozen=True, slots=True)
class Gates:
    """The limits of all gates.

    least_confidence: mean probability of a text's tokens below which it is doubtful; 0 is off.
    window, most_repetition: of the runs of `run` tokens within `window` tokens, the share that stood in it before.
    most_growth, spare_characters: a rewrite may be so many times as long as its selection, and so much longer.
    longest_line: characters. may_be_blank: whether a rewrite may leave nothing. parse: whether syntax errors count.
    """

    least_confidence: float = 0.25
    window: int = 32
    run: int = 4
    most_repetition: float = 0.15
    most_growth: float = 8.0
    spare_characters: int = 2000
    longest_line: int = 1000
    may_be_blank: bool = False
    parse: bool = True

    @classmethod
    def open(cls) -> Gates:
        """Limits that no text exceeds, for who wants texts as they come."""
        far = cls(least_confidence=0.0, most_repetition=1.0, most_growth=inf, longest_line=maxsize)
        return replace(far, may_be_blank=True, parse=False)


def faults(ids: Sequence[int], confidence: float | None, gates: Gates | None = None) -> tuple[Fault, ...]:
    """What speaks against a text's tokens, nothing where it has none.

    confidence: NaN is doubt, None where it was not computed.
    """
    gates = gates or Gates()
    found = []
    if ids and confidence is not None and gates.least_confidence and not confidence >= gates.least_confidence:
        found.append(Fault("confidence", f"confidence {confidence:.2f} is low"))
    share = repetition(ids, gates.window, gates.run)
    if share > gates.most_repetition:
        found.append(
            Fault("repetition", f"{share:.0%} of {gates.window} tokens in a row repeat what stands before them")
        )
    return tuple(found)


def repetition(ids: Sequence[int], window: int, run: int) -> float:
    """The largest share, over every `window` ids in a row, of its runs of `run` ids that stood in it before.

    0.0 of fewer ids than a window. As the duplicate n-grams of Welleck et al. (arXiv 1908.04319), within a window.
    """
    runs = [tuple(ids[at : at + run]) for at in range(len(ids) - run + 1)]
    in_window = window - run + 1
    worst = 0.0
    for first in range(len(ids) - window + 1):
        worst = max(worst, 1 - len(set(runs[first : first + in_window])) / in_window)
    return worst


class MeanProbability:
    """The mean of probabilities as they come; None before any."""

    def __init__(self) -> None:
        self._sum = 0.0
        self._count = 0

    def add(self, probabilities: Sequence[float]) -> None:
        """Take in the probabilities of some tokens. One that is no number makes the mean none."""
        self._sum += fsum(probabilities)
        self._count += len(probabilities)

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return self._sum / self._count if self._count else None
