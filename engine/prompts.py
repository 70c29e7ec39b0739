"""From a request to a prompt: which text the model reads, in which order, and what it drafts from.

Pure functions of the request and a tokenizer. The window rules live here: text is cut where it is farthest from the
gap, and the cut moves in steps of `CUT_STEP` tokens. What stands before the cursor in its own line, but for the
indentation, is no part of the prompt's prefix but the known beginning of the middle, the *lead*: so prefix and suffix
stay as they are, and resident, while a line is typed, and a key costs the rows of the lead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from engine.diffusion.denoise import Gap
from engine.diffusion.stopping import Limits, cut_at_lines
from engine.models.base import SpecialIds, Tokenizer
from engine.protocol.messages import Fill, Rewrite

PREFIX_TOKENS = 512
SUFFIX_TOKENS = 160
CUT_STEP = 64
LEAD_CHARS = 160
"""Of a longer line whole steps of so many characters belong to the prefix."""

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
    """A laid-out request.

    ids: the prompt, which is encoded and stays resident. lead: known rows behind it that run as the gap's do, without
    the gap's pending token. opening: text that the pending token settled beyond what was known, part of every answer.
    Where there is a lead the pending token is the text's last before the cursor, and stands for its bytes only: see
    `lead.settle_lead`, which is to be called first.
    """

    ids: tuple[int, ...]
    gap: Gap
    limits: Limits
    lead: tuple[int, ...] = ()
    opening: str = ""

    @property
    def rows(self) -> int:
        """Rows in the context before the pending token."""
        return len(self.ids) + len(self.lead)

    def whole(self, text: str) -> str:
        """A text for the gap with what stands before it, within the line limit."""
        if not self.opening:
            return text
        whole = self.opening + text
        cut = cut_at_lines(whole, self.limits.max_lines)
        return whole if cut is None else cut


def fill_prompt(request: Fill, tokenizer: Tokenizer, special: SpecialIds) -> Prompt:
    """Fill-in-the-middle order, prefix first: `<prefix> … <suffix> … <middle> lead`, each part tokenised apart."""
    border = lead_border(request.prefix)
    lead = tokenizer.encode(request.prefix[border:])
    prefix = cut_left(tokenizer.encode(request.prefix[:border]), PREFIX_TOKENS, len(lead))
    suffix = tokenizer.encode(request.suffix)[:SUFFIX_TOKENS]
    ids = (special.fim_prefix, *prefix, special.fim_suffix, *suffix)
    *before, pending = special.fim_middle, *lead
    gap = Gap(pending, True, _warm(request.draft, tokenizer, special), (tuple(suffix), (*prefix, *lead)))
    limits = Limits(request.max_tokens, request.max_lines, "", request.deadline_ms)
    return Prompt(ids, gap, limits, tuple(before))


def warm_behind_opening(prompt: Prompt, request: Fill | Rewrite, tokenizer: Tokenizer, special: SpecialIds) -> Prompt:
    """The prompt whose draft goes on behind the opening, where the opening is the beginning of a fill's draft."""
    if not isinstance(request, Fill) or not prompt.opening or not request.draft.startswith(prompt.opening):
        return prompt
    warm = _warm(request.draft[len(prompt.opening) :], tokenizer, special)
    return replace(prompt, gap=replace(prompt.gap, warm=warm))


def expected_ids(prompt: Prompt, request: Fill | Rewrite, tokenizer: Tokenizer, special: SpecialIds) -> tuple[int, ...]:
    """The ids a fill's draft lets expect from the pending token on, that token healed and the end included.

    Nothing where there is no lead to heal, or where the text's own last token would not be lengthened but split.
    """
    if not isinstance(request, Fill) or not prompt.lead or not request.draft:
        return ()
    known = tokenizer.decode_bytes([prompt.gap.pending])
    try:
        ids = _warm(known.decode() + request.draft, tokenizer, special)
    except UnicodeDecodeError:
        return ()
    return ids if tokenizer.decode_bytes(ids[:1]).startswith(known) else ()


def _warm(draft: str, tokenizer: Tokenizer, special: SpecialIds) -> tuple[int, ...]:
    """A gap's present text as a draft, its end included; nothing for no text."""
    return (*tokenizer.encode(draft), min(special.end)) if draft else ()


def lead_border(prefix: str) -> int:
    """Where the lead begins: at the first word of the cursor's line, or whole steps of `LEAD_CHARS` behind that.

    The indentation belongs to the prefix. A model has learnt tokens that join blanks with the word behind them, so a
    gap that began with blanks alone would go on with a text indented by one blank too many.
    """
    line = prefix.rfind("\n") + 1
    word = len(prefix) - len(prefix[line:].lstrip(" \t"))
    return word + (len(prefix) - word) // LEAD_CHARS * LEAD_CHARS


def cut_left(ids: list[int], budget: int, behind: int = 0) -> list[int]:
    """The last ids within `budget`, dropping whole steps so that the border rests while the text grows.

    behind: how many tokens stand behind `ids` and count as well.
    """
    over = len(ids) + behind - budget
    if over <= 0:
        return ids
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
