"""One text from a server that speaks OpenAI's API: where it is asked, with which body, how its events are read. Pure.

Four ways lead to the text of a gap: llama.cpp's `/infill`, a completion with a `suffix`, a completion of a prompt laid
out for the model's family, and a chat. Rewrites are chats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lsp_server.remote.chat_prompts import Question, fill_question
from lsp_server.remote.control_text import disarmed
from lsp_server.remote.fim_templates import FimTemplate

FillBy = Literal["infill", "suffix", "template", "chat"]

# Of a rewrite that is to differ from the likeliest one.
_OTHER_TEXT_TEMPERATURE = 0.8


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a text may cost, and whether it is the likeliest one: a `seed` from 1 on gives others."""

    max_tokens: int
    seed: int = 0

    def fields(self) -> dict[str, Any]:
        """The members of a body."""
        chance = {"temperature": _OTHER_TEXT_TEMPERATURE, "seed": self.seed} if self.seed else {"temperature": 0}
        return {"max_tokens": self.max_tokens, "stream": True, **chance}


@dataclass(frozen=True, slots=True)
class Asking:
    """A request as it is sent. `path` is behind the server's root; `text_of` reads what has come of the answer so far.

    `finished` reads a whole answer, and may be dearer.
    """

    path: str
    body: Mapping[str, Any]
    text_of: Callable[[str], str]
    finished: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Piece:
    """What one event adds: text, why the answer ended there (empty while it goes on), tokens as the server counts."""

    text: str = ""
    finish: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """What stands around a gap, and how many lines of text it may get; 0 for any number."""

    prefix: str
    suffix: str
    language: str
    max_lines: int = 0


@dataclass(frozen=True, slots=True)
class Wordings:
    """How this server is asked: `model` as it lists it, the way to fill, and members of every chat's body."""

    model: str
    fill_by: FillBy
    template: FimTemplate | None = None
    chat_extras: Mapping[str, Any] = field(default_factory=dict)

    def fill(self, gap: Gap, sampling: Sampling) -> Asking:
        """The text of a gap."""
        if self.fill_by == "chat":
            return self.chat(fill_question(gap.prefix, gap.suffix, gap.language, gap.max_lines), sampling)
        if self.fill_by == "infill":
            return _infill(gap, sampling)
        texts = disarmed(gap.prefix, gap.suffix)
        prefix, suffix = texts.texts
        body: dict[str, Any] = {"model": self.model, **sampling.fields(), "stream_options": {"include_usage": True}}
        if self.fill_by == "template" and self.template is not None:
            body |= {"prompt": self.template.prompt(prefix, suffix), "stop": list(self.template.stops)}
        else:
            body |= {"prompt": prefix, "suffix": suffix}
        return Asking("/v1/completions", body, texts.restored, texts.restored)

    def chat(self, question: Question, sampling: Sampling) -> Asking:
        """The answer to a question."""
        body = {
            "model": self.model,
            "messages": list(question.messages),
            **sampling.fields(),
            "stream_options": {"include_usage": True},
            **self.chat_extras,
        }
        return Asking("/v1/chat/completions", body, question.code_so_far, question.code)


def piece_of(event: Mapping[str, Any]) -> Piece:
    """What an event says, of whichever of the routes. One that makes no sense says nothing."""
    usage = _mapping(event.get("usage"))
    details = _mapping(usage.get("prompt_tokens_details"))
    prompt, cached = _number(usage.get("prompt_tokens")), _number(details.get("cached_tokens"))
    tokens = _number(usage.get("completion_tokens"))
    if "content" in event and "choices" not in event:
        # llama.cpp's own events.
        finish = ("length" if event.get("stop_type") == "limit" else "stop") if event.get("stop") is True else ""
        prompt, tokens = _number(event.get("tokens_evaluated")), _number(event.get("tokens_predicted"))
        return Piece(_text(event.get("content")), finish, prompt, 0, tokens)
    choices = event.get("choices")
    choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    # Thoughts come in members of their own, and are nobody's text.
    text = _text(choice.get("text")) or _text(_mapping(choice.get("delta")).get("content"))
    return Piece(text, _text(choice.get("finish_reason")), prompt, cached, tokens)


def _infill(gap: Gap, sampling: Sampling) -> Asking:
    """llama.cpp tokenises both sides as plain text, so control tokens in them need no care."""
    body = {
        "input_prefix": gap.prefix,
        "input_suffix": gap.suffix,
        "n_predict": sampling.max_tokens,
        "cache_prompt": True,
        **sampling.fields(),
    }
    return Asking("/infill", body, str, str)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
