"""A vocabulary small enough to read, and an any-order loop over it that believes nothing but the constraint."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from engine.canvas import FREE, SETTLED, Canvas
from engine.diffusion.constraints import Constraint, Vocabulary
from engine.models.canvas_model import CanvasFacts
from engine.protocol.errors import EngineError

PIECES = (
    *(b"a", b"b", b"ab", b"(", b")", b"\n", b"\n\n", b"a\n", b"1", b"23", b'"', b'"a"', b":", b",", b"{", b"}", b" "),
    *("é".encode(), "é".encode()[:1], "é".encode()[1:], "🙂b".encode(), b"true", b"abcdefgh"),
)
END, MASK = len(PIECES), len(PIECES) + 1
SIZE = len(PIECES) + 2


class PieceTokenizer:
    """Ids of `PIECES`; the two behind them write nothing. Encodes by the longest piece that fits."""

    def encode(self, text: str) -> list[int]:
        data, ids = text.encode(), []
        while data:
            token = max((i for i, piece in enumerate(PIECES) if data.startswith(piece)), key=lambda i: len(PIECES[i]))
            ids.append(token)
            data = data[len(PIECES[token]) :]
        return ids

    def decode_bytes(self, ids: Sequence[int]) -> bytes:
        return b"".join(PIECES[token] for token in ids if 0 <= token < len(PIECES))


def facts(*, ends: bool = True) -> CanvasFacts:
    forbidden = torch.zeros(SIZE, dtype=torch.bool)
    forbidden[MASK] = True
    forbidden[END] = not ends
    return CanvasFacts(
        name="pieces",
        family="masked",
        device="cpu",
        precision="fp32",
        vocab_size=SIZE,
        window_tokens=256,
        noise="mask",
        mask_id=MASK,
        end_ids=frozenset({END} if ends else ()),
        forbidden=forbidden,
    )


def vocabulary(*, ends: bool = True) -> Vocabulary:
    return Vocabulary.of(PieceTokenizer(), facts(ends=ends))


@dataclass(frozen=True)
class Dice:
    """Logits from a seed: peaked, so that the same step proposes the same tokens again unless they are taken away."""

    seed: int
    ends: bool = True

    def logits(self, places: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self.seed)
        logits = torch.randn(places, SIZE, generator=generator) * 4
        return logits.masked_fill(facts(ends=self.ends).forbidden, -torch.inf)


def denoised(canvas: Canvas, constraint: Constraint, propose: Callable[[int], torch.Tensor], together: int) -> Canvas:
    """Fill a canvas, the surest `together` places a step, until the constraint lets it pass. Raises EngineError."""
    for _ in range(400):
        if not bool(canvas.free.any()):
            again = constraint.review(canvas)
            if again is None:
                return canvas
            assert bool(again.any()), "a review that opens nothing would never end"
            assert not bool((again & canvas.locked).any())
            state = canvas.state.masked_fill(again, FREE)
            canvas = replace(canvas, state=state, ids=canvas.ids.masked_fill(again, MASK))
        logits = constraint.constrain(canvas, propose(canvas.length))
        chances, tokens = logits.softmax(-1).max(-1)
        surest = chances.masked_fill(~canvas.free, -1).topk(min(together, canvas.length)).indices
        accepted = torch.zeros_like(canvas.free)
        accepted[surest] = True
        accepted &= canvas.free
        canvas = Canvas(
            torch.where(accepted, tokens, canvas.ids),
            canvas.state.masked_fill(accepted, SETTLED),
            torch.where(accepted, chances, canvas.confidence),
        )
    raise AssertionError("the canvas was never finished")


def outcome(canvas: Canvas, constraint: Constraint, dice: Dice, together: int) -> Canvas | EngineError:
    """The finished canvas, or the failure by name."""
    try:
        return denoised(canvas, constraint, dice.logits, together)
    except EngineError as failure:
        return failure
