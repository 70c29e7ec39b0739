"""From a request to a canvas: what is known in front of it and behind it, and what stands in it.

Pure functions of the request, a tokenizer and the family's facts and style. Context is cut where it is farthest from
the gap; what was asked to be changed is never cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engine.canvas_serving.checks import require_room, require_round_trip
from engine.canvas_serving.holes import CanvasHole, holes_of, island_tokens, limits_of, parts_of
from engine.canvas_serving.prompt_style import Chat, PromptStyle
from engine.diffusion.length import GapShape, candidate_lengths
from engine.diffusion.stopping import Limits
from engine.models.base import Tokenizer
from engine.models.canvas_model import CanvasFacts, CanvasJob, Known, Part
from engine.prompts import (
    AHEAD,
    ALONE,
    PREFIX_TOKENS,
    QUESTION,
    SUFFIX_TOKENS,
    SYSTEM,
    cut_left,
    dedent,
    fence_for,
    sentence,
)
from engine.protocol.messages import Fill, Rewrite

ISLAND_TOKENS = 32
"""How much right-hand text stands in the canvas of a family that sees nothing behind it."""
GROWTH, GROWTH_LEAST = 0.5, 32
"""Places behind the present text of a rewrite, as a share of it and in tokens, for a text that becomes longer."""
LINE_LEAST = 24
"""The places of one line at the end of a text, in tokens, where the lines above are shorter than half of it."""


@dataclass(frozen=True, slots=True)
class CanvasPrompt:
    """A laid-out request. The texts wanted are those of the job's holes; `prompt_tokens` counts what is known.

    limits: of the job as a whole. own_limits: of each hole, where there is more than the one.
    """

    job: CanvasJob
    limits: Limits
    own_limits: tuple[Limits, ...] = ()

    @property
    def hole_limits(self) -> tuple[Limits, ...]:
        """The limits of each hole."""
        return self.own_limits or (self.limits,)

    def is_cut_off(self, ids: Sequence[int]) -> bool:
        """Whether a text that met no limit has no end either: nothing follows it, and it fills all its places."""
        last = self.job.parts[-1]
        follows = bool(self.job.known.suffix) or not last.is_hole
        return not follows and 0 < last.length <= len(ids)

    @property
    def prompt_tokens(self) -> int:
        """Tokens the model reads and does not write, islands included."""
        known = len(self.job.known.prefix) + len(self.job.known.suffix)
        return known + sum(len(part.ids) for part in self.job.parts)


LayOut = Callable[[Fill | Rewrite], CanvasPrompt]
"""How a family lays requests out. Raises EngineError: round_trip, window_exceeded, bad_request."""


def styled(style: PromptStyle, tokenizer: Tokenizer, facts: CanvasFacts) -> LayOut:
    """Requests laid out in a style; see `fill_canvas` and `rewrite_canvas`."""

    def lay_out(request: Fill | Rewrite) -> CanvasPrompt:
        if isinstance(request, Fill):
            return fill_canvas(request, tokenizer, facts, style)
        return rewrite_canvas(request, tokenizer, facts, style)

    return lay_out


def fill_canvas(request: Fill, tokenizer: Tokenizer, facts: CanvasFacts, style: PromptStyle) -> CanvasPrompt:
    """The holes of a fill. Raises EngineError: round_trip, window_exceeded."""
    prefix, suffix = (require_round_trip(text, tokenizer) for text in (request.prefix, request.suffix))
    holes = holes_of(request, tokenizer)
    limits = limits_of(holes)
    least = sum(hole.least for hole in holes)
    kept = max(least, min(limits.max_tokens, facts.window_tokens // 4)) + island_tokens(holes)
    room = facts.window_tokens - kept
    chat = style.chat if style.gap in {"answer", "quoted"} else None
    if chat is None:
        frame = (style.start, style.stop) if style.gap == "framed" else ((), ())
        before, behind = _within(prefix, suffix, room - len(frame[0]) - len(frame[1]))
        sees = facts.right_context
        known = Known((*frame[0], *before), (*behind, *frame[1]) if sees else ())
        parts = parts_of(holes, () if sees else _island(behind, facts))
        return sized_holes(CanvasJob(known, parts), holes, limits, facts)
    return _in_answer(request, tokenizer, facts, chat, (prefix, suffix), holes, room, limits)


def _in_answer(
    request: Fill,
    tokenizer: Tokenizer,
    facts: CanvasFacts,
    chat: Chat,
    sides: tuple[list[int], list[int]],
    holes: Sequence[CanvasHole],
    room: int,
    limits: Limits,
) -> CanvasPrompt:
    """The holes inside an answer that is the whole piece.

    What a family does not see behind the canvas is quoted in the question. The text in front of the gap stands last:
    while somebody types, only what was typed is read anew.
    """
    fence = fence_for(request.prefix + "".join(hole.island for hole in request.further) + request.suffix)
    opened = f"{fence}{request.language}\n"
    if facts.right_context:
        asked = _turns(tokenizer, chat, ALONE, opened)
        closing = (*tokenizer.encode(f"\n{fence}"), *chat.assistant.closes)
        before, behind = _within(*sides, room - len(asked) - len(closing))
        around = Known((*asked, *before), (*behind, *closing))
        return sized_holes(CanvasJob(around, parts_of(holes, ())), holes, limits, facts)
    frame = _turns(tokenizer, chat, AHEAD.format(behind=f"{opened}\n{fence}"), opened)
    before, behind = _within(*sides, room - len(frame) - ISLAND_TOKENS)
    quoted = tokenizer.decode_bytes(behind).decode("utf-8", errors="ignore")
    question = AHEAD.format(behind=f"{opened}{quoted}\n{fence}") if quoted.strip() else ALONE
    known = Known((*_turns(tokenizer, chat, question, opened), *before))
    # Where nothing follows, the model closes the block itself, and there the text is cut.
    stop_text = "" if behind else f"\n{fence}"
    job = CanvasJob(known, parts_of(holes, _island(behind, facts)))
    return sized_holes(job, holes, replace(limits, stop_text=stop_text), facts)


def rewrite_canvas(request: Rewrite, tokenizer: Tokenizer, facts: CanvasFacts, style: PromptStyle) -> CanvasPrompt:
    """The selection as a gap that starts from its present text. Raises EngineError: round_trip, window_exceeded."""
    code = dedent(request.selection).strip("\n")
    fence = fence_for(code)
    opened = f"{fence}{request.language}\n"
    warm = tuple(require_round_trip(code, tokenizer))
    question = QUESTION.format(code=f"{opened}{code}\n{fence}", instruction=sentence(request.instruction))
    require_round_trip(question, tokenizer)
    limits = Limits(request.max_tokens, 0, f"\n{fence}", request.deadline_ms)
    if style.chat is None:
        start = style.start if style.gap == "framed" else ()
        prefix = (*start, *tokenizer.encode(f"{question}\n\n{opened}"))
    else:
        prefix = _turns(tokenizer, style.chat, question, opened)
    budget = require_room(CanvasJob(Known(prefix), (Part(is_hole=True, warm=warm),)), facts, limits.max_tokens)
    # Nothing known follows: the model closes the block itself, wherever the new code ends, and there it is cut.
    closed = (*warm, *tokenizer.encode(f"\n{fence}"))[:budget]
    part = Part(is_hole=True, warm=closed, length=_grown(len(closed), budget, facts))
    return CanvasPrompt(CanvasJob(Known(prefix), (part,)), replace(limits, max_tokens=budget))


def _turns(tokenizer: Tokenizer, chat: Chat, question: str, opened: str) -> tuple[int, ...]:
    """A conversation up to the answer, which is already opened with a fence."""
    ids = [*chat.start]
    if chat.system is not None:
        ids += [*chat.system.opens, *tokenizer.encode(SYSTEM), *chat.system.closes]
    asked = question if chat.system is not None else f"{SYSTEM}\n\n{question}"
    ids += [*chat.user.opens, *tokenizer.encode(asked), *chat.user.closes]
    return (*ids, *chat.assistant.opens, *tokenizer.encode(opened))


def _within(prefix: list[int], suffix: list[int], room: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What of both sides fits into `room` tokens; the suffix gets up to a quarter, and what the prefix leaves.

    When nothing fits both are empty; whether the rest fits is judged afterwards.
    """
    room = max(0, room)
    behind = suffix[: min(SUFFIX_TOKENS, max(room // 4, room - len(prefix)))]
    left = min(PREFIX_TOKENS, room - len(behind))
    before = cut_left(prefix, left) or prefix[len(prefix) - left :] if left > 0 else []
    return tuple(before), tuple(behind)


def _grown(present: int, budget: int, facts: CanvasFacts) -> int:
    """The places of a text that stands at the end and may become longer; 0 where it simply goes on behind a canvas."""
    return 0 if _goes_on(facts) else min(budget, present + max(GROWTH_LEAST, int(present * GROWTH)))


def _goes_on(facts: CanvasFacts) -> bool:
    """Whether a text at the end goes on canvas by canvas, so that it needs no length."""
    return facts.canvas_length > 0 or facts.block > 0


def _island(behind: tuple[int, ...], facts: CanvasFacts) -> tuple[int, ...]:
    """What of the right-hand text stands in the canvas: at most a quarter of a fixed one, the rest is for the gap."""
    return behind[: min(ISLAND_TOKENS, facts.canvas_length // 4 or ISLAND_TOKENS)]


def sized_holes(job: CanvasJob, holes: Sequence[CanvasHole], limits: Limits, facts: CanvasFacts) -> CanvasPrompt:
    """A job that was made of `holes`, each with the lengths its shape suggests and its own limits.

    limits: of all together; a stop text of theirs ends the last hole. Raises EngineError: bad_request, window_exceeded.
    """
    prompt = sized(job, limits, facts, [hole.shape for hole in holes])
    own = [replace(hole.limits, max_tokens=min(hole.limits.max_tokens, prompt.limits.max_tokens)) for hole in holes]
    own[-1] = replace(own[-1], stop_text=limits.stop_text)
    return replace(prompt, own_limits=tuple(own))


def sized(job: CanvasJob, limits: Limits, facts: CanvasFacts, shapes: Sequence[GapShape] = ()) -> CanvasPrompt:
    """A job with its budget and, for holes of unknown length, what `shapes` tell of them, one for each hole.

    Where known text follows, lengths are tried; elsewhere an end token tells the length, and one line is not given
    places for many. Raises EngineError: bad_request, window_exceeded.
    """
    budget = require_room(job, facts, limits.max_tokens)
    share = max(1, budget // max(1, sum(part.is_hole for part in job.parts)))
    told, parts = iter(shapes), []
    for number, part in enumerate(job.parts):
        follows = bool(job.known.suffix) or number + 1 < len(job.parts)
        shape = next(told, None) if part.is_hole else None
        parts.append(part if shape is None else _sized(part, shape, share, limits, facts, follows=follows))
    return CanvasPrompt(replace(job, parts=tuple(parts)), replace(limits, max_tokens=budget))


def _sized(hole: Part, shape: GapShape, most: int, limits: Limits, facts: CanvasFacts, *, follows: bool) -> Part:
    """A hole with the lengths that are to be tried, or the one it has; neither where an end token tells."""
    grows = facts.expand_id >= 0
    if hole.length or hole.candidates:
        return hole
    if follows and not (hole.warm and grows):  # a family that grows a hole itself begins from the present length
        return replace(hole, candidates=candidate_lengths(shape, most))
    if not follows and hole.warm:
        return replace(hole, length=_grown(len(hole.warm), most, facts))
    if not (follows or grows or _goes_on(facts)) and limits.max_lines == 1:
        return replace(hole, length=min(most, max(LINE_LEAST, 2 * max(shape.lines, default=0))))
    return hole
