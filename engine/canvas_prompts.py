"""From a request to a canvas: what is known in front of it and behind it, and what stands in it.

Pure functions of the request, a tokenizer and the family's facts and style. Context is cut where it is farthest from
the gap; what was asked to be changed is never cut.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.canvas_checks import require_room, require_round_trip
from engine.diffusion.stopping import Limits
from engine.models.base import Tokenizer
from engine.models.canvas_model import CanvasFacts, CanvasJob, Known, Part
from engine.prompt_style import Chat, PromptStyle
from engine.prompts import PREFIX_TOKENS, QUESTION, SUFFIX_TOKENS, SYSTEM, cut_left, dedent, fence_for, sentence
from engine.protocol.messages import Fill, Rewrite

MARK = "<gap>"
GAP_QUESTION = (
    "Here is a piece of code with a gap, marked {mark}:\n\n{code}\n\n"
    "Write the whole piece with the gap filled, in one code block, with everything else unchanged."
)
ISLAND_TOKENS = 32
"""How much right-hand text stands in the canvas of a family that sees nothing behind it."""
LEAST_GAP = 4
"""The gap that is kept free, in tokens, when a small window has to be shared with context."""


@dataclass(frozen=True, slots=True)
class CanvasPrompt:
    """A laid-out request. The text wanted is that of the job's first hole; `prompt_tokens` counts what is known."""

    job: CanvasJob
    limits: Limits

    @property
    def prompt_tokens(self) -> int:
        """Tokens the model reads and does not write, islands included."""
        known = len(self.job.known.prefix) + len(self.job.known.suffix)
        return known + sum(len(part.ids) for part in self.job.parts)


def fill_canvas(request: Fill, tokenizer: Tokenizer, facts: CanvasFacts, style: PromptStyle) -> CanvasPrompt:
    """The gap of a fill. Raises EngineError: round_trip, window_exceeded."""
    prefix, suffix, warm = (
        require_round_trip(text, tokenizer) for text in (request.prefix, request.suffix, request.draft)
    )
    limits = Limits(request.max_tokens, request.max_lines, "", request.deadline_ms)
    least = max(len(warm), min(request.max_tokens, LEAST_GAP))
    room = facts.window_tokens - max(least, min(request.max_tokens, facts.window_tokens // 4))
    chat = style.chat if style.gap in {"answer", "quoted"} else None
    if chat is None:
        frame = (style.start, style.stop) if style.gap == "framed" else ((), ())
        before, behind = _within(prefix, suffix, room - len(frame[0]) - len(frame[1]), times=1)
        if facts.right_context:
            return _finished(Known((*frame[0], *before), (*behind, *frame[1])), tuple(warm), limits, facts)
        return _finished(Known((*frame[0], *before)), tuple(warm), limits, facts, behind[:ISLAND_TOKENS])
    return _in_answer(request, tokenizer, facts, chat, (prefix, suffix, tuple(warm)), room, limits)


def _in_answer(
    request: Fill,
    tokenizer: Tokenizer,
    facts: CanvasFacts,
    chat: Chat,
    texts: tuple[list[int], list[int], tuple[int, ...]],
    room: int,
    limits: Limits,
) -> CanvasPrompt:
    """The gap inside an answer that repeats the code; both sides are quoted in the question as well."""
    prefix, suffix, warm = texts
    fence = fence_for(request.prefix + request.suffix)
    opened = f"{fence}{request.language}\n"
    frame = _turns(tokenizer, chat, GAP_QUESTION.format(mark=MARK, code=f"{opened}{MARK}\n{fence}"), opened)
    before, behind = _within(prefix, suffix, room - len(frame), times=2)
    left, right = (tokenizer.decode_bytes(ids).decode("utf-8", errors="ignore") for ids in (before, behind))
    question = GAP_QUESTION.format(mark=MARK, code=f"{opened}{left}{MARK}{right}\n{fence}")
    known = (*_turns(tokenizer, chat, question, opened), *before)
    if facts.right_context:
        closing = (*behind, *tokenizer.encode(f"\n{fence}"), *chat.assistant.closes)
        return _finished(Known(known, closing), warm, limits, facts)
    island = tuple(behind[:ISLAND_TOKENS])
    return _finished(Known(known), warm, limits, facts, island)


def rewrite_canvas(request: Rewrite, tokenizer: Tokenizer, facts: CanvasFacts, style: PromptStyle) -> CanvasPrompt:
    """The selection as a gap that starts from its present text. Raises EngineError: round_trip, window_exceeded."""
    code = dedent(request.selection).strip("\n")
    fence = fence_for(code)
    opened = f"{fence}{request.language}\n"
    warm = tuple(require_round_trip(code, tokenizer))
    question = QUESTION.format(code=f"{opened}{code}\n{fence}", instruction=sentence(request.instruction))
    require_round_trip(question, tokenizer)
    closing = tuple(tokenizer.encode(f"\n{fence}"))
    limits = Limits(request.max_tokens, 0, f"\n{fence}", request.deadline_ms)
    if style.chat is None:
        start, stop = (style.start, style.stop) if style.gap == "framed" else (style.start[:1], ())
        prefix = (*start, *tokenizer.encode(f"{question}\n\n{opened}"))
        closing = (*closing, *stop)
    else:
        prefix = _turns(tokenizer, style.chat, question, opened)
        closing = (*closing, *style.chat.assistant.closes)
    if facts.right_context:
        return _finished(Known(prefix, closing), warm, limits, facts)
    # Nothing is seen behind the canvas: the model closes the block itself, and there the text is cut.
    return _finished(Known(prefix), warm, limits, facts)


def _turns(tokenizer: Tokenizer, chat: Chat, question: str, opened: str) -> tuple[int, ...]:
    """A conversation up to the answer, which is already opened with a fence."""
    ids = [*chat.start]
    if chat.system is not None:
        ids += [*chat.system.opens, *tokenizer.encode(SYSTEM), *chat.system.closes]
    asked = question if chat.system is not None else f"{SYSTEM}\n\n{question}"
    ids += [*chat.user.opens, *tokenizer.encode(asked), *chat.user.closes]
    return (*ids, *chat.assistant.opens, *tokenizer.encode(opened))


def _within(prefix: list[int], suffix: list[int], room: int, *, times: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What of both sides fits into `room` tokens when it stands there `times` times; the suffix gets up to a quarter.

    When nothing fits both are empty; whether the rest fits is judged afterwards.
    """
    share = max(0, room // times)
    behind = suffix[: min(SUFFIX_TOKENS, max(share // 4, share - len(prefix)))] if share else []
    left = min(PREFIX_TOKENS, share - len(behind))
    before = cut_left(prefix, left) or prefix[len(prefix) - left :] if left > 0 else []
    return tuple(before), tuple(behind)


def _finished(
    known: Known, warm: tuple[int, ...], limits: Limits, facts: CanvasFacts, island: tuple[int, ...] = ()
) -> CanvasPrompt:
    parts = (Part(is_hole=True, warm=warm), *([Part(is_hole=False, ids=island)] if island else []))
    job = CanvasJob(known, parts)
    budget = require_room(job, facts, limits.max_tokens)
    return CanvasPrompt(job, Limits(budget, limits.max_lines, limits.stop_text, limits.deadline_ms))
