"""From a request to a canvas job for DiffusionGemma. Pure functions of the request, a tokenizer and special ids.

The model sees what stands in front of the canvas and the canvas itself, so text right of a gap is quoted in the prompt
and stands in the canvas as a locked island. The quotation comes first and the text left of the gap last, right in front
of the canvas: while somebody types, only what was typed has to be encoded. Turns are made of ids, never of text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.canvas_serving.holes import CanvasHole, holes_of, limits_of, parts_of
from engine.diffusion.stopping import Limits
from engine.models.base import Tokenizer
from engine.models.canvas_model import CanvasFacts, CanvasJob, Known, Part
from engine.prompts import AHEAD, ALONE, QUESTION, SYSTEM, cut_left, dedent, fence_for, sentence
from engine.protocol.errors import EngineError
from engine.protocol.messages import Fill, Rewrite

# Of the fourth generation, and of those before.
_TURNS = (("<|turn>", "<turn|>"), ("<start_of_turn>", "<end_of_turn>"))
_BEGIN = "<bos>"
# Of the canvas, what the text behind the gap may take.
_ISLAND_SHARE = 4
# Of the prompt, what the quoted text behind the gap may take.
_QUOTED_SHARE = 4


@dataclass(frozen=True, slots=True)
class GemmaPrompt:
    """A laid-out request; the texts wanted are those of the job's holes. holes: what is known of each, of a fill."""

    job: CanvasJob
    limits: Limits
    holes: tuple[CanvasHole, ...] = ()


@dataclass(frozen=True, slots=True)
class GemmaIds:
    """begin: in front of every text, empty where there is none. turn, end: around a turn, -1 without a chat format."""

    begin: tuple[int, ...]
    turn: int
    end: int

    @classmethod
    def of(cls, special: Mapping[str, int]) -> GemmaIds:
        """From the special ids of a tokenizer by their text."""
        begin = (special[_BEGIN],) if _BEGIN in special else ()
        for turn, end in _TURNS:
            if turn in special and end in special:
                return cls(begin, special[turn], special[end])
        return cls(begin, -1, -1)

    @property
    def chat(self) -> bool:
        """Whether the checkpoint was taught to answer."""
        return self.turn >= 0


def fill_prompt(request: Fill, tokenizer: Tokenizer, facts: CanvasFacts, ids: GemmaIds) -> GemmaPrompt:
    """The holes in an answer that is the whole file, whose end is quoted in the question.

    Raises EngineError: round_trip for text the tokenizer cannot hold, window_exceeded for a window too small.
    """
    prefix, suffix = tokenizer.encode(request.prefix), tokenizer.encode(request.suffix)
    holes = holes_of(request, tokenizer)
    fence = fence_for(request.prefix + "".join(hole.island for hole in request.further) + request.suffix)
    opened = f"{fence}{request.language}\n"
    room = facts.window_tokens - facts.canvas_length
    quoted = tokenizer.decode_bytes(suffix[: room // _QUOTED_SHARE]).decode("utf-8", errors="ignore")
    behind = f"{opened}{quoted}\n{fence}"
    frame = _asked(AHEAD.format(behind=behind) if quoted.strip() else ALONE, opened, tokenizer, ids)
    left = room - len(frame)
    if left < min(len(prefix), 1):
        raise _too_small(facts)
    before = cut_left(prefix, left) or prefix[len(prefix) - left :]
    island = tuple(suffix[: facts.canvas_length // _ISLAND_SHARE])
    limits = replace(limits_of(holes), stop_text="" if island else f"\n{fence}")
    return GemmaPrompt(CanvasJob(Known((*frame, *before)), parts_of(holes, island)), limits, holes)


def rewrite_prompt(request: Rewrite, tokenizer: Tokenizer, facts: CanvasFacts, ids: GemmaIds) -> GemmaPrompt:
    """The answer starts from the present text; the model closes its code block itself, and there the text is cut.

    Raises EngineError: round_trip for text the tokenizer cannot hold, window_exceeded for a window too small.
    """
    code = dedent(request.selection).strip("\n")
    fence = fence_for(code)
    opened = f"{fence}{request.language}\n"
    question = QUESTION.format(code=f"{opened}{code}\n{fence}", instruction=sentence(request.instruction))
    known = _asked(question, opened, tokenizer, ids)
    if len(known) > facts.window_tokens - facts.canvas_length:
        raise _too_small(facts)
    hole = Part(is_hole=True, warm=tuple(tokenizer.encode(f"{code}\n{fence}")))
    return GemmaPrompt(
        CanvasJob(Known(known), (hole,)), Limits(request.max_tokens, 0, f"\n{fence}", request.deadline_ms)
    )


def _asked(question: str, opened: str, tokenizer: Tokenizer, ids: GemmaIds) -> tuple[int, ...]:
    """A question and the beginning of its answer, as turns where the checkpoint knows them."""
    if not ids.chat:
        return (*ids.begin, *tokenizer.encode(f"{question}\n\n{opened}"))
    line = tokenizer.encode("\n")
    turns: list[int] = [*ids.begin]
    for role, text in (("system", SYSTEM), ("user", question)):
        turns += [ids.turn, *tokenizer.encode(f"{role}\n{text}"), ids.end, *line]
    return (*turns, ids.turn, *tokenizer.encode(f"model\n{opened}"))


def _too_small(facts: CanvasFacts) -> EngineError:
    return EngineError(
        "window_exceeded",
        f"the request does not fit in front of a canvas of {facts.canvas_length} in a window of {facts.window_tokens}",
        "select less text, shorten the instruction, or load the model with a larger window",
    )
