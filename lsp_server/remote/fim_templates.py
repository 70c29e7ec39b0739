"""How families of models are told of a gap in a plain prompt: the control tokens they were trained with. Pure.

For servers that complete a prompt but do not know what a suffix is (vLLM). Where the server lays the prompt out
itself (llama.cpp's `/infill`, Ollama's and others' `suffix`), none of this is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FimTemplate:
    """`before` prefix `between` suffix `behind` is the prompt; `stops` end an answer that goes on behind its end."""

    before: str
    between: str
    behind: str
    stops: tuple[str, ...] = ()

    def prompt(self, prefix: str, suffix: str) -> str:
        """The prompt for what stands around a gap."""
        return f"{self.before}{prefix}{self.between}{suffix}{self.behind}"


_PIPES = FimTemplate(
    "<|fim_prefix|>",
    "<|fim_suffix|>",
    "<|fim_middle|>",
    ("<|endoftext|>", "<|fim_pad|>", "<|file_sep|>", "<|repo_name|>"),
)
_STARCODER = FimTemplate("<fim_prefix>", "<fim_suffix>", "<fim_middle>", ("<|endoftext|>", "<file_sep>"))

# What stands in a model's name → its template. Qwen2.5-Coder: arXiv 2409.12186, section 3.1; CodeGemma: arXiv
# 2406.11409, table 1; StarCoder: arXiv 2305.06161 and 2402.19173; DeepSeek-Coder: arXiv 2401.14196, section 3.1.2;
# Code Llama: arXiv 2308.12950, section 2.3.
_BY_NAME: tuple[tuple[re.Pattern[str], FimTemplate], ...] = (
    (re.compile(r"qwen[\d.]*-?coder|qwen3-coder|codeqwen"), _PIPES),
    (re.compile(r"codegemma"), _PIPES),
    (re.compile(r"starcoder|santacoder|granite.*code"), _STARCODER),
    (
        re.compile(r"deepseek-coder"),
        FimTemplate("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", ("<｜end▁of▁sentence｜>",)),
    ),
    (re.compile(r"code-?llama"), FimTemplate("<PRE> ", " <SUF>", " <MID>", ("<EOT>",))),
)


def template_of(model: str) -> FimTemplate | None:
    """The template of a model by its name, as servers list it; None where it has none that is known."""
    name = model.lower().replace("_", "-")
    return next((template for pattern, template in _BY_NAME if pattern.search(name)), None)
