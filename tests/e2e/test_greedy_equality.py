"""Invariant 7 on the default model: whatever the drafts, the text is the model's own greedy text, token for token.

On the int8 path rows of one pass may be summed in another order than rows alone. Where the texts part, the two best
logits at that place must lie closer together than that noise; the fp32 path must not part at all.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from engine.diffusion.cost_curve import CostCurve
from engine.diffusion.denoise import Gap, denoise, greedy
from engine.diffusion.stopping import Limits
from engine.diffusion.verify_config import VerifyConfig
from engine.models.base import Context, Denoiser
from engine.models.hybrid import HybridDenoiser

pytestmark = pytest.mark.model

TOKENS = 12
# Measured on the int8 path: the same row in passes of 1 to 64 rows differs by less than this.
NOISE = 0.02
OFF: dict[str, Any] = {"warm_start": False, "ngram": False, "masks": False}
SOURCES = {
    "warm_start": VerifyConfig(**{**OFF, "warm_start": True}),
    "ngram": VerifyConfig(**{**OFF, "ngram": True}, ngram_min=1),
    "masks": VerifyConfig(**{**OFF, "masks": True}, costs=CostCurve.linear(0.01)),
    "all": VerifyConfig(costs=CostCurve.linear(0.01)),
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """Text on both sides of a gap, and what stood in it."""

    prefix: str
    middle: str
    suffix: str


def prompts() -> list[Prompt]:
    """Gaps in the standard library's own functions, plus other languages and prose: none from a benchmark."""
    found = []
    for module in ("bisect", "textwrap", "shlex", "colorsys", "fnmatch", "heapq", "statistics"):
        path = Path(os.__file__).with_name(f"{module}.py")
        found += list(_gaps(path.read_text(encoding="utf-8")))[:8]
    found += [
        Prompt("function add(a, b) {\n  return ", "a + b;", "\n}\n"),
        Prompt("func Max(a, b int) int {\n\tif ", "a > b {\n\t\treturn a", "\n\t}\n\treturn b\n}\n"),
        Prompt('{"name": "lacuna", "files": [', '"engine", "tests"', "]}\n"),
        Prompt("SELECT id, name FROM users WHERE ", "id = 1", " ORDER BY name;\n"),
        Prompt("# Héllo 🙂\ngreeting = ", '"Grüße, 世界"', "\nprint(greeting)\n"),
    ]
    return found


def _gaps(text: str) -> Iterator[Prompt]:
    """The second half of the first statements of functions, between the lines around them."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and len(node.body) > 1 and node.end_lineno is not None:
            start, end = node.body[-1].lineno - 1, node.end_lineno
            before = "\n".join(lines[max(0, start - 8) : start]) + "\n"
            yield Prompt(before, "\n".join(lines[start:end]), "\n" + "\n".join(lines[end : end + 3]))


def _open(model: Denoiser, prompt: Prompt, *, adapted: bool) -> tuple[Context, Gap]:
    special, encode = model.facts.special, model.tokenizer.encode
    prefix, suffix = encode(prompt.prefix), encode(prompt.suffix)
    ids = [special.fim_prefix, *prefix, special.fim_suffix, *suffix]
    context = model.context_for(ids)
    model.encode(context, ids[context.length :])
    # The warm start is the true text with one token wrong, so that re-alignment is part of what is proven.
    warm = encode(prompt.middle)
    warm[len(warm) // 2 : len(warm) // 2 + 1] = encode("zz")
    return context, Gap(special.fim_middle, adapted, tuple(warm), (tuple(suffix), tuple(prefix)))


def _denoised(model: Denoiser, prompt: Prompt, config: VerifyConfig, *, adapted: bool) -> tuple[int, ...]:
    context, gap = _open(model, prompt, adapted=adapted)
    settled: tuple[int, ...] = ()
    for canvas in denoise(model, context, gap, Limits(TOKENS + 1), config, lambda: False):
        settled = canvas.settled_ids
    model.release(context)
    return settled[:TOKENS]


@dataclass(frozen=True, slots=True)
class Reference:
    """A gap's greedy text, and by how much the best logit led the second at each place."""

    ids: list[int]
    leads: list[float]


def _greedy(model: Denoiser, prompt: Prompt, *, adapted: bool) -> Reference:
    context, gap = _open(model, prompt, adapted=adapted)
    ids, leads = [], []
    for token, logits in greedy(model, context, gap.pending, TOKENS, adapted=adapted):
        best, second = logits.topk(2).values.tolist()
        ids.append(token)
        leads.append(best - second)
    model.release(context)
    return Reference(ids, leads)


def _is_adapted(number: int) -> bool:
    """Two gaps of three are fills, which run with the patch; the third runs as a rewrite does, without."""
    return number % 3 != 0


@pytest.fixture(scope="module")
def references(default_model: HybridDenoiser) -> list[Reference]:
    """The greedy text of every prompt, computed once for all sources."""
    return [_greedy(default_model, prompt, adapted=_is_adapted(i)) for i, prompt in enumerate(prompts())]


def _parting(settled: tuple[int, ...], expected: list[int]) -> int | None:
    """The first place at which two texts differ; the shorter one having ended early is no difference."""
    return next((i for i, (a, b) in enumerate(zip(settled, expected, strict=False)) if a != b), None)


def test_there_are_at_least_fifty_gaps() -> None:
    assert len(prompts()) >= 50


@pytest.mark.parametrize("source", SOURCES)
def test_int8_text_is_greedy_text(default_model: HybridDenoiser, references: list[Reference], source: str) -> None:
    compared = 0
    for number, (prompt, reference) in enumerate(zip(prompts(), references, strict=True)):
        settled = _denoised(default_model, prompt, SOURCES[source], adapted=_is_adapted(number))
        place = _parting(settled, reference.ids)
        if place is not None:
            assert reference.leads[place] < NOISE, f"prompt {number} parts from greedy at {place} on a clear choice"
        compared += len(settled)
    assert compared > 5 * len(references)


def test_fp32_text_is_exactly_greedy_text(default_gguf: Path, tmp_path: Path) -> None:
    from engine.models.loading import adapter_path, load_denoiser

    model = load_denoiser(
        default_gguf, tmp_path, name="fp32", precision="fp32", adapter=adapter_path(), threads=os.cpu_count()
    )
    for number, prompt in enumerate(prompts()[::9]):
        reference = _greedy(model, prompt, adapted=_is_adapted(number))
        settled = _denoised(model, prompt, SOURCES["all"], adapted=_is_adapted(number))
        assert list(settled) == reference.ids[: len(settled)]
