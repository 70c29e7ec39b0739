"""How a family's texts are framed: which ids open and close a text and the turns of a conversation.

Data only. A family's loader says which style its checkpoints were trained with; `prompts` lays requests out
in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

GapLayout = Literal["raw", "framed", "answer", "quoted"]
"""How a gap is laid out.

raw: the text before it and the text behind it, nothing else. framed: the same between `start` and `stop`.
answer: in a conversation whose answer is the whole piece of code, the gap in it. quoted: the same, for families that
see nothing right of the canvas: the right-hand text is quoted in the question and stands in the canvas as an island.
"""

Encode = Callable[[str], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Turn:
    """Ids in front of and behind what one side of a conversation says."""

    opens: tuple[int, ...]
    closes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chat:
    """The turns of a conversation; `system` is None where what it would say opens the user's turn."""

    user: Turn
    assistant: Turn
    system: Turn | None = None
    start: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PromptStyle:
    """start, stop: ids around a text that is `framed`. chat: None for families that were taught no conversation."""

    gap: GapLayout = "raw"
    start: tuple[int, ...] = ()
    stop: tuple[int, ...] = ()
    chat: Chat | None = None


def qwen_chat(special: Mapping[str, int], encode: Encode) -> Chat | None:
    """ChatML, as Qwen2.5 and Qwen3 were trained with it; None where the vocabulary lacks its tokens."""
    try:
        start, end = special["<|im_start|>"], special["<|im_end|>"]
    except KeyError:
        return None
    line = tuple(encode("\n"))

    def turn(role: str) -> Turn:
        return Turn((start, *encode(f"{role}\n")), (end, *line))

    return Chat(turn("user"), Turn(turn("assistant").opens, (end,)), turn("system"))


def llama3_chat(special: Mapping[str, int], encode: Encode) -> Chat | None:
    """The headers of Llama 3, which LLaDA was trained with; None where the vocabulary lacks their tokens."""
    try:
        first, last, end = (special[name] for name in ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"))
    except KeyError:
        return None
    start = tuple(special[name] for name in ("<|startoftext|>",) if name in special)

    def turn(role: str) -> Turn:
        return Turn((first, *encode(role), last, *encode("\n\n")), (end,))

    return Chat(turn("user"), turn("assistant"), turn("system"), start)


def seed_chat(special: Mapping[str, int], encode: Encode) -> Chat | None:
    """Seed-Coder's turns, which Stable-DiffCoder was trained with: each is opened and closed like a text."""
    try:
        first, last = special["<[begin▁of▁sentence]>"], special["<[end▁of▁sentence]>"]
    except KeyError:
        return None

    def turn(role: str) -> Turn:
        return Turn((first, *encode(f"{role}\n")), (last,))

    return Chat(turn("user"), turn("assistant"), turn("system"))
