"""Control tokens of language models, as text.

Owns the rule that such a token ends an engine's answer and is never shown. Knows nothing of documents.
"""

from __future__ import annotations

import re

from lsp_server.document import for_model

# `<|endoftext|>`, `<|fim_pad|>`, `<|im_end|>`, `<|file_sep|>`, `<|mask|>`: the Qwen kind, as most models now write
# them; `<｜fim▁hole｜>`: DeepSeek; `<fim_prefix>`: StarCoder; `<EOT>`: Code Llama (but not the shell's `<<EOT>`).
_SPECIAL_TOKEN = re.compile(
    r"<\|[A-Za-z][A-Za-z0-9_]{1,40}\|>"
    r"|<｜[^｜\n]{1,40}｜>"
    r"|<(?:fim_(?:prefix|middle|suffix|pad)|file_sep|repo_name|reponame|endoftext)>"
    r"|(?<!<)<(?:EOT|PRE|MID|SUF)>"
)


def text_before_special(raw: str, written: str = "") -> str:
    """`raw` up to its first control token, with `\\n` line ends and without half a character at its end.

    A token whose text stands in `written` (the surroundings, the selection, the instruction) is somebody's text and
    not control: a file about tokenizers must come through whole.
    """
    text = for_model(raw)
    control = (found for found in _SPECIAL_TOKEN.finditer(text) if found.group() not in written)
    first = next(control, None)
    return (text[: first.start()] if first else text).rstrip("\ufffd")
