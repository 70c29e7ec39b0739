"""From a request to a prompt: which text the model reads, in which order, and what it drafts from.

Pure functions of the request and a tokenizer. The window rules live here: text is cut where it is farthest from the
gap, and the cut moves in steps of `CUT_STEP` tokens so that a resident prompt stays valid while somebody types.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.diffusion.denoise import Gap
from engine.diffusion.stopping import Limits
from engine.models.base import SpecialIds, Tokenizer
from engine.protocol.messages import Fill, Rewrite

PREFIX_TOKENS = 512
SUFFIX_TOKENS = 160
CUT_STEP = 64

# Of eleven wordings tried on 27 small edits, 19 of them not from the measured set, this one passed most (25; the others
# 16 to 24). It also leaves alone best what the instruction does not name.
SYSTEM = (
    "You edit code. You are given a piece of code and an instruction. Reply with the whole piece after the edit, "
    "in one code block, changing only what the instruction asks for. No explanation."
)
QUESTION = (
    "Here is a piece of code:\n\n{code}\n\n"
    "Instruction: {instruction}\n\nGive the complete code, with everything else unchanged."
)

# A gap as part of an answer that is the whole piece: what is asked for, with code that follows and without.
AHEAD = (
    "The file goes on with this code:\n\n{behind}\n\n"
    "Write the code in front of it and then that code, in one code block."
)
ALONE = "Write the code of a file, in one code block."


@dataclass(frozen=True, slots=True)
class Prompt:
    """A laid-out request. `ids` is everything before the gap's pending token."""

    ids: tuple[int, ...]
    gap: Gap
    limits: Limits


def fill_prompt(request: Fill, tokenizer: Tokenizer, special: SpecialIds) -> Prompt:
    """Fill-in-the-middle order, prefix first: `<prefix> … <suffix> … <middle>`, prefix and suffix tokenised apart."""
    prefix = cut_left(tokenizer.encode(request.prefix), PREFIX_TOKENS)
    suffix = tokenizer.encode(request.suffix)[:SUFFIX_TOKENS]
    ids = (special.fim_prefix, *prefix, special.fim_suffix, *suffix)
    warm = tokenizer.encode(request.draft) if request.draft else []
    end = (min(special.end),) if warm else ()
    gap = Gap(special.fim_middle, True, (*warm, *end), (tuple(suffix), tuple(prefix)))
    return Prompt(ids, gap, Limits(request.max_tokens, request.max_lines, "", request.deadline_ms))


def cut_left(ids: list[int], budget: int) -> list[int]:
    """The last ids within `budget`, dropping whole steps so that the border rests while the text grows."""
    if len(ids) <= budget:
        return ids
    over = len(ids) - budget
    return ids[-(-over // CUT_STEP) * CUT_STEP :]


def fence_for(text: str) -> str:
    """A code fence longer than any run of backticks in `text`."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return "`" * max(3, longest + 1)


def dedent(text: str) -> str:
    """`text` without its common leading white space; the engine's answer is re-indented by whoever applies it."""
    lines = text.split("\n")
    margins = [
        line[: len(line) - len(line.lstrip(" \t"))] for line in lines[0 if lines[0].strip() else 1 :] if line.strip()
    ]
    margin = margins[0] if margins else ""
    for other in margins[1:]:
        while not other.startswith(margin):
            margin = margin[:-1]
    return "\n".join(line.removeprefix(margin) if line.strip() else "" for line in lines)


def sentence(text: str) -> str:
    """`text` without white space around it, ended by a full stop unless it has an end of its own."""
    stripped = text.strip()
    return stripped if stripped.endswith((".", "!", "?", ":")) else f"{stripped}."


def rewrite_prompt(request: Rewrite, tokenizer: Tokenizer, special: SpecialIds) -> Prompt:
    """A chat turn whose answer is already opened with a fence, so that the gap holds code and nothing else."""
    code = dedent(request.selection).strip("\n")
    fence = fence_for(code)
    opened = f"{fence}{request.language}\n"
    ids = [special.chat_start, *tokenizer.encode(f"system\n{SYSTEM}"), special.chat_end, *tokenizer.encode("\n")]
    question = QUESTION.format(code=f"{opened}{code}\n{fence}", instruction=sentence(request.instruction))
    ids += [special.chat_start, *tokenizer.encode(f"user\n{question}"), special.chat_end, *tokenizer.encode("\n")]
    ids += [special.chat_start, *tokenizer.encode(f"assistant\n{opened}")]
    warm = tuple(tokenizer.encode(f"{code}\n{fence}"))
    gap = Gap(ids[-1], False, warm, (tuple(ids), warm))
    limits = Limits(request.max_tokens, 0, f"\n{fence}", request.deadline_ms)
    return Prompt(tuple(ids[:-1]), gap, limits)
