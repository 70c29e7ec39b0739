"""What a step's logits say of each place: the likeliest token, the chosen one, their probabilities, the entropy.

Everything is computed in float32 where the logits live; what comes of it, a few numbers for each place, is handed to
the host, where everything else is decided. A place whose logits hold no usable number reads as NaN, and NaN is never
accepted (see `samplers`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from engine.canvas import Canvas
from engine.diffusion.drawing import Choice, dice_for, draw, highest_of
from engine.models.canvas_model import CanvasFacts
from engine.runtime.packed import Kernel, find_kernel
from engine.runtime.softmax import Peaks, softmax

_VALUES_AT_ONCE = 1 << 19
"""Of a CPU: two such buffers of float32 stay in its caches; with smaller ones the calls themselves cost more."""


@dataclass(frozen=True, slots=True)
class Others:
    """The likeliest ids of n places, the likeliest first. ids: [n, k] int64. chances: [n, k] float32, 0 for none."""

    ids: torch.Tensor
    chances: torch.Tensor

    @classmethod
    def of(cls, probs: torch.Tensor, count: int) -> Others | None:
        """From [n, vocab] probabilities; None where nobody asks."""
        if not count:
            return None
        best = probs.topk(min(count, probs.shape[-1]), dim=-1)
        return cls(best.indices, best.values)

    def taken(self, source: torch.Tensor) -> Others:
        """Those of the places at `source` ([m] int64)."""
        return Others(self.ids[source], self.chances[source])

    def over(self, rows: torch.Tensor, places: int) -> Others:
        """These as those of the places `rows` of a canvas, and none elsewhere."""
        empty = Others(*(each.new_zeros(places, each.shape[1]) for each in (self.ids, self.chances)))
        return Others(empty.ids.index_copy(0, rows, self.ids), empty.chances.index_copy(0, rows, self.chances))


@dataclass(frozen=True, slots=True)
class Reading:
    """Of the n places of a canvas, or of some of them.

    likeliest, chosen: [n] int64; chosen is drawn, or equal to likeliest in deterministic mode. best, confidence,
    present: [n] float32, the probabilities of the likeliest, the chosen and the present token (with temperature,
    without top-p). entropy: [n] float32, nats, at least 0. others: where somebody looks on, else None.
    """

    likeliest: torch.Tensor
    chosen: torch.Tensor
    best: torch.Tensor
    confidence: torch.Tensor
    present: torch.Tensor
    entropy: torch.Tensor
    others: Others | None = None


@dataclass(frozen=True, slots=True)
class Admission:
    """Which ids may come out. forbidden: [k] int64, where the model lives: nowhere. ending: [l] int64, on the host:
    only at places that end a text."""

    forbidden: torch.Tensor
    ending: torch.Tensor

    @classmethod
    def of(cls, facts: CanvasFacts, device: torch.device, *, resizing: bool) -> Admission:
        """resizing: whether the expand and delete ids are consumed by the loop; they never come out otherwise."""
        forbidden = facts.forbidden.to(device, copy=True)
        length_ids = [token for token in (facts.expand_id, facts.delete_id) if token >= 0]
        forbidden[[token for token in length_ids if resizing or token not in facts.end_ids]] = not resizing
        if facts.mask_id >= 0:
            forbidden[facts.mask_id] = True
        ending = facts.end_ids - frozenset(length_ids if resizing else ())
        return cls(forbidden.nonzero().squeeze(-1), torch.tensor(sorted(ending), dtype=torch.int64))

    def apply(self, logits: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        """Overwrite [m, vocab] float32 logits with -inf where an id may not stand. ends: [m] bool, on any device."""
        logits.index_fill_(-1, self.forbidden, -torch.inf)
        if self.ending.numel():
            ending = self.ending.to(logits.device)
            columns = logits[:, ending]
            logits[:, ending] = columns.masked_fill_(~ends[:, None].to(logits.device), -torch.inf)
        return logits


class Scratch:
    """Two float32 buffers of [rows, vocab], kept for a whole job: touching fresh memory costs more than the sums.

    kernel: what reads rows on a CPU, None for torch.
    """

    def __init__(self, kernel: Kernel | None = None) -> None:
        self._held = torch.empty(0)
        self.kernel = kernel

    @classmethod
    def on_best_kernel(cls) -> Scratch:
        """With the kernel of this installation, if it has one."""
        return cls(find_kernel())

    def take(self, rows: int, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Both buffers for so many rows of logits such as `like`; what they held is void."""
        vocab = like.shape[-1]
        if self._held.shape[-1] != vocab or self._held.shape[0] < 2 * rows or self._held.device != like.device:
            self._held = torch.empty(2 * rows, vocab, device=like.device)
        return self._held[:rows], self._held[rows : 2 * rows]


@dataclass(frozen=True, slots=True)
class Places:
    """Which rows of a step's logits are read, and what is known of them, on the host.

    rows: [m] int64, or None for all of them. ids: [m] int64, what the places hold now. forbid: writes -inf into
    [k, vocab] logits of the places `[start, start + k)` of these, wherever an id may not stand.
    """

    rows: torch.Tensor | None
    ids: torch.Tensor
    forbid: Callable[[torch.Tensor, int], None]

    @property
    def count(self) -> int:
        return self.ids.shape[0]


def read(logits: torch.Tensor, places: Places, choice: Choice, generator: torch.Generator, scratch: Scratch) -> Reading:
    """Read `places` of [n, vocab] float32 logits, which are not written to. The reading is on the host.

    Draws from `generator`, which is the host's, only if `choice` asks for chance. The rows are taken a few at a time on
    a CPU, so that what is computed of them never leaves its cache; on another device all at once, and all that is known
    of them comes to the host in one transfer.
    """
    device = logits.device
    ids = places.ids.to(device)
    rows = None if places.rows is None else places.rows.to(device)
    dice = dice_for(choice, places.count, generator)
    # The stream of torch.multinomial is that of torch's own probabilities, to the bit.
    kernel = scratch.kernel if is_on_host(logits) and not choice.as_multinomial else None
    size = _rows_at_once(logits, choice, places.count)
    parts = []
    for start in range(0, places.count, size):
        end = min(start + size, places.count)
        held, spare = scratch.take(end - start, logits)
        source = logits[start:end] if rows is None else logits[rows[start:end]]
        torch.div(source, choice.divisor, out=held)  # and copied, in one pass
        places.forbid(held, start)
        mine = None if dice is None else dice[start:end].to(device)
        parts.append(judge(held, spare, ids[start:end], choice, mine, generator, kernel))
    return on_host(parts[0] if len(parts) == 1 else _joined(parts))


def judge(
    logits: torch.Tensor,
    spare: torch.Tensor,
    ids: torch.Tensor,
    choice: Choice,
    dice: torch.Tensor | None,
    generator: torch.Generator,
    kernel: Kernel | None = None,
) -> Reading:
    """Read [m, vocab] float32 logits, with temperature, of places that now hold `ids` ([m] int64), where they live.

    logits and spare, of the same shape, are overwritten. dice: see `draw`; None for the likeliest ids. kernel: what
    does it on a CPU instead of torch.
    """
    peaks = _peaks(logits, spare) if kernel is None else softmax(logits, spare, kernel)
    likeliest, best, entropy, probs = peaks.likeliest, peaks.best, peaks.entropy, spare
    present = probs.gather(-1, ids[:, None]).squeeze(-1)
    others = Others.of(probs, choice.others)
    if not choice.draws_chance:
        return Reading(likeliest, likeliest, best, best, present, entropy, others)
    drawn = draw(probs, logits, choice, dice, generator, kernel)
    chance = probs.gather(-1, drawn[:, None]).squeeze(-1)
    # Rounding at the rim of the sum may hit an id of no probability, and a row may hold no usable number.
    fair = chance > 0
    chosen, confidence = torch.where(fair, drawn, likeliest), torch.where(fair, chance, best)
    return Reading(likeliest, chosen, best, confidence, present, entropy, others)


def _peaks(logits: torch.Tensor, probs: torch.Tensor) -> Peaks:
    """As `softmax`, by torch; `logits` are overwritten."""
    highest, likeliest = highest_of(logits)
    logits.sub_(highest[:, None])
    torch.softmax(logits, dim=-1, out=probs)
    best = probs.gather(-1, likeliest[:, None]).squeeze(-1)
    # With the highest logit at 0 the probability of its id is one over the sum of exponentials, so this is
    # -sum p log p without a second pass of logarithms. The clamp keeps 0 * -inf out of the sum.
    logits.clamp_(min=torch.finfo(torch.float32).min).mul_(probs)
    return Peaks(likeliest, best, (-best.log() - logits.sum(dim=-1)).clamp_(min=0))


def on_host(reading: Reading) -> Reading:
    """The same reading in the host's memory, in one transfer: the only time in a step that the host waits.

    (Once more where somebody looks on.)
    """
    if is_on_host(reading.best):
        return reading
    others = reading.others
    if others is not None:
        others = Others(others.ids.to("cpu", copy=True), others.chances.to("cpu", copy=True))
    return replace(unpacked(packed(reading).to("cpu", copy=True)), others=others)


def is_on_host(tensor: torch.Tensor) -> bool:
    """Whether the processor reads the tensor without waiting for a device."""
    return tensor.device.type == "cpu"


def packed(reading: Reading) -> torch.Tensor:
    """A reading as one [6, m] float32 tensor; ids, which fit into 32 bits, as their bits."""
    ids = torch.stack([reading.likeliest, reading.chosen]).to(torch.int32).view(torch.float32)
    numbers = torch.stack([reading.best, reading.confidence, reading.present, reading.entropy])
    return torch.cat([ids, numbers])


def unpacked(values: torch.Tensor) -> Reading:
    """What `packed` made, read again."""
    likeliest, chosen = values[:2].contiguous().view(torch.int32).long()
    return Reading(likeliest, chosen, *values[2:])


def _joined(parts: Sequence[Reading]) -> Reading:
    def together(name: str) -> torch.Tensor:
        return torch.cat([getattr(part, name) for part in parts])

    told = [part.others for part in parts if part.others is not None]
    others = Others(torch.cat([t.ids for t in told]), torch.cat([t.chances for t in told])) if told else None
    return Reading(
        together("likeliest"),
        together("chosen"),
        together("best"),
        together("confidence"),
        together("present"),
        together("entropy"),
        others,
    )


def _rows_at_once(logits: torch.Tensor, choice: Choice, count: int) -> int:
    """How many rows are read together. torch.multinomial's stream is that of all rows in one draw."""
    if not is_on_host(logits) or choice.as_multinomial:
        return max(1, count)
    return max(1, _VALUES_AT_ONCE // logits.shape[-1])


def spread(reading: Reading, rows: torch.Tensor, canvas: Canvas) -> Reading:
    """A reading of the places `rows` ([m] int64), spread over the canvas; elsewhere what was known stays."""

    def over(base: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return base.index_copy(0, rows, values)

    sure = canvas.confidence
    return Reading(
        over(canvas.ids, reading.likeliest),
        over(canvas.ids, reading.chosen),
        over(sure, reading.best),
        over(sure, reading.confidence),
        over(sure, reading.present),
        over(torch.zeros_like(sure), reading.entropy),
        None if reading.others is None else reading.others.over(rows, canvas.length),
    )
