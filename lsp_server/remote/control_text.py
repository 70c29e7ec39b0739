"""The text of control tokens in somebody's file, kept from being control. Pure.

A server that gets a prompt as text reads `<|im_end|>` in it as the token. So each is taken apart by a blank before it
is sent, and put together again where the answer repeats it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# More than what ends an answer (`special_tokens`): turns and ends of text of the Gemma, Llama and Mistral kinds, too.
_CONTROL = re.compile(
    r"<\|[A-Za-z][A-Za-z0-9_]{0,40}\|?>|<[A-Za-z][A-Za-z0-9_]{0,40}\|>|<｜[^｜\n]{1,40}｜>"
    r"|<(?:fim_(?:prefix|middle|suffix|pad)|file_sep|repo_name|reponame|endoftext|start_of_turn|end_of_turn)>"
    r"|<(?:EOT|PRE|MID|SUF|bos|eos|pad|unk|s)>|</s>|\[/?(?:INST|SYSTEM_PROMPT|PREFIX|SUFFIX|MIDDLE)\]"
)


@dataclass(frozen=True, slots=True)
class Disarmed:
    """Texts without control tokens, and how to get those back in an answer. `pairs` are (token, harmless form)."""

    texts: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...] = ()

    def restored(self, answer: str) -> str:
        """`answer` with the tokens that the texts held, where it repeats their harmless form."""
        for token, harmless in self.pairs:
            answer = answer.replace(harmless, token)
        return answer


def disarmed(*texts: str) -> Disarmed:
    """`texts` with every control token in them taken apart. Texts that hold none, nearly all, come back as they are."""
    tokens = {found.group() for text in texts for found in _CONTROL.finditer(text)}
    pairs = [(token, f"{token[0]} {token[1:]}") for token in sorted(tokens, key=lambda token: (-len(token), token))]
    made = list(texts)
    for token, harmless in pairs:
        made = [text.replace(token, harmless) for text in made]
    return Disarmed(tuple(made), tuple(pairs))
