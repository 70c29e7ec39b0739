"""From what a canvas holds to text: finished holes, cut where they are to end, and drafts on the way. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.canvas_serving.prompts import CanvasPrompt
from engine.diffusion.parallel import CanvasResult, CanvasStep
from engine.diffusion.stopping import Limits, cut_at_lines, cut_at_stop_text, decode_prefix
from engine.models.base import Tokenizer
from engine.protocol.messages import Stop


@dataclass(frozen=True, slots=True)
class Finished:
    """A hole's text as it is answered. ids: the tokens behind it, which may reach beyond where it was cut.

    lost_bytes: bytes of tokens that make no character together, left out of the text.
    """

    text: str
    ids: tuple[int, ...]
    stop: Stop
    lost_bytes: int = 0


def finished(result: CanvasResult, prompt: CanvasPrompt, tokenizer: Tokenizer) -> tuple[Finished, ...]:
    """The texts of all holes: each at most its tokens, cut at the stop text and its line limit, whole characters."""
    last = len(result.parts) - 1
    holes = []
    for number, ids in enumerate(result.parts):
        stop: Stop = result.stop if number == last or result.stop == "deadline" else "end"
        if stop == "end" and number == last and prompt.is_cut_off(ids):
            stop = "budget"
        holes.append(_finished(ids, stop, prompt.hole_limits[number], tokenizer))
    return tuple(holes)


def _finished(ids: Sequence[int], stop: Stop, limits: Limits, tokenizer: Tokenizer) -> Finished:
    """Tokens settle independently of each other, so one that ends inside a character may be followed by one that does
    not go on with it. Only the bytes of the broken character are left out: what stands behind them is still meant."""
    if len(ids) > limits.max_tokens:
        ids, stop = ids[: limits.max_tokens], "budget"
    data = tokenizer.decode_bytes(ids)
    whole = data.decode("utf-8", errors="ignore")
    text, reason = cut(whole, limits)
    return Finished(text, tuple(ids), reason or stop, len(data) - len(whole.encode()))


def cut(text: str, limits: Limits) -> tuple[str, Stop | None]:
    """`text` up to the stop text or behind its last allowed line, and which of them it was."""
    if (ended := cut_at_stop_text(text, limits.stop_text)) is not None:
        return ended, "end"
    if (lines := cut_at_lines(text, limits.max_lines)) is not None:
        return lines, "lines"
    return text, None


def first_open(step: CanvasStep, holes: int) -> int:
    """The first hole that still has a place to settle; the last one when there is none."""
    open_ = step.hole[step.canvas.free & (step.hole >= 0)]
    return int(open_.min()) if open_.numel() else holes - 1


def settled_prefix(step: CanvasStep, hole: int) -> int:
    """How many ids of a hole's draft are settled from its left: earlier canvases, then this one's places."""
    mine = step.hole == hole
    states = step.canvas.settled[mine].tolist()
    ids = step.canvas.ids[mine].tolist()
    count = len(step.before[hole])
    for is_settled, token in zip(states, ids, strict=True):
        if not is_settled:
            break
        count += token not in step.silent
    return count


def draft_text(tokenizer: Tokenizer, settled: Sequence[int], rest: Sequence[int]) -> tuple[str, int]:
    """Text of a draft and how many of its characters are settled.

    A token may end inside a character, and the one behind it need not go on with it: bytes that make no character are
    left out of the unsettled part, and the settled part ends in front of them.
    """
    sure = tokenizer.decode_bytes(settled)
    text = decode_prefix(sure)
    behind = sure[len(text.encode()) :] + tokenizer.decode_bytes(rest)
    return text + behind.decode("utf-8", errors="ignore"), len(text)
