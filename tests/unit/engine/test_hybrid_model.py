"""The default model itself: our forward against transformers' on the same file, int8 against fp32, the tokenizer.

The float weights alone are 2.5 GB: they are let go before transformers loads its own.
"""

from __future__ import annotations

import gc
import inspect
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from engine.models.base import CanvasRows, Denoiser
from engine.models.hybrid import HybridDenoiser
from engine.models.loading import load_denoiser

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

NAME = "qwen2.5-coder-0.5b"


@dataclass(frozen=True)
class FloatResults:
    """What the fp32 path says of the held-out texts: ids and logits of the first two, the mean nll of all."""

    rows: list[list[int]]
    logits: list[torch.Tensor]
    nll: float


@pytest.fixture(scope="module")
def float_results(default_gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> FloatResults:
    cache_dir = tmp_path_factory.mktemp("unused")
    model = load_denoiser(default_gguf, cache_dir, name=NAME, precision="fp32", adapter=None, threads=None)
    rows = [model.tokenizer.encode(text) for text in held_out_texts()[:2]]
    results = FloatResults(rows, [logits_of(model, ids) for ids in rows], mean_nll(model, held_out_texts()))
    assert not list(cache_dir.iterdir())
    del model
    gc.collect()
    return results


def held_out_texts() -> list[str]:
    """Real Python, about 250 tokens each, from the middle of ten modules of the standard library."""
    import argparse
    import bisect
    import colorsys
    import csv
    import difflib
    import fractions
    import heapq
    import shlex
    import statistics
    import textwrap as wrapping

    modules: list[ModuleType] = [
        *(argparse, bisect, colorsys, csv, difflib, fractions, heapq, shlex, statistics, wrapping)
    ]
    sources = [inspect.getsource(module) for module in modules]
    return [source[len(source) // 2 :][:900] for source in sources]


def logits_of(model: Denoiser, ids: list[int], *, adapted: bool = False) -> torch.Tensor:
    context = model.context_for([])
    try:
        return model.step(context, CanvasRows(torch.tensor(ids), torch.arange(len(ids)), None, adapted))
    finally:
        model.release(context)


def mean_nll(model: Denoiser, texts: list[str]) -> float:
    losses = []
    for text in texts:
        ids = model.tokenizer.encode(text)
        losses.append(torch.nn.functional.cross_entropy(logits_of(model, ids)[:-1], torch.tensor(ids[1:])))
    return float(torch.stack(losses).mean())


def transformers_logits(gguf: Path, rows: list[list[int]]) -> list[torch.Tensor]:
    """What transformers' own Qwen2 makes of the same file, configuration and weights read by its own code."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(**_read_by_transformers(gguf)["config"])
    with torch.device("meta"):
        reference = Qwen2ForCausalLM(config)
    tensors = _read_by_transformers(gguf, return_tensors=True, model_to_load=reference)["tensors"]
    reference = Qwen2ForCausalLM(config)
    missing, unexpected = reference.load_state_dict(tensors, strict=False)
    assert not [*missing, *unexpected]
    del tensors
    reference.train(mode=False)
    with torch.no_grad():
        return [reference(torch.tensor([ids])).logits[0] for ids in rows]


def _read_by_transformers(gguf: Path, **options: Any) -> dict[str, Any]:
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    parsed: dict[str, Any] = load_gguf_checkpoint(gguf, **options)  # type: ignore[no-untyped-call]
    return parsed


def test_the_float_path_agrees_with_transformers(default_gguf: Path, float_results: FloatResults) -> None:
    theirs = transformers_logits(default_gguf, float_results.rows)
    for mine, other in zip(float_results.logits, theirs, strict=True):
        assert float((mine - other).abs().max()) < 1e-3
    gc.collect()


def test_int8_loses_less_than_three_percent_of_nll(default_model: HybridDenoiser, float_results: FloatResults) -> None:
    assert float_results.nll < 2.5
    assert mean_nll(default_model, held_out_texts()) < 1.03 * float_results.nll


def test_the_shipped_adapter_fills_a_gap(default_model: HybridDenoiser) -> None:
    model = default_model
    special, encode = model.facts.special, model.tokenizer.encode
    prefix = 'def area(width, height):\n    """Area of a rectangle."""\n    return '
    suffix = "\n\n\nprint(area(3, 4))\n"
    prompt = [special.fim_prefix, *encode(prefix), special.fim_suffix, *encode(suffix)]
    context = model.context_for(prompt)
    model.encode(context, prompt)
    row, middle = special.fim_middle, []
    for at in range(len(prompt), len(prompt) + 12):
        logits = model.step(context, CanvasRows(torch.tensor([row]), torch.tensor([at]), None, adapted=True))
        row = int(logits[-1].argmax())
        if row in special.end:
            break
        middle.append(row)
    model.release(context)
    assert row in special.end
    assert model.tokenizer.decode_bytes(middle).strip() in {b"width * height", b"height * width"}


def test_a_wide_step_equals_single_steps(default_model: HybridDenoiser) -> None:
    model = default_model
    ids = model.tokenizer.encode(held_out_texts()[0])
    context = model.context_for(ids[:100])
    model.encode(context, ids[:100])
    wide = model.step(context, CanvasRows(torch.tensor(ids[100:116]), torch.arange(100, 116), None, adapted=True))
    context.truncate(100)
    for index, at in enumerate(range(100, 116)):
        row = CanvasRows(torch.tensor([ids[at]]), torch.tensor([at]), None, adapted=True)
        single = model.step(context, row)[0]
        difference = float((single - wide[index]).abs().max())
        best, second = single.topk(2).values.tolist()
        assert difference < 0.2
        assert int(single.argmax()) == int(wide[index].argmax()) or best - second < 2 * difference
    model.release(context)


def test_the_tokenizer_agrees_with_transformers_on_ordinary_text(
    default_gguf: Path, default_model: HybridDenoiser
) -> None:
    from transformers import AutoTokenizer

    reference = AutoTokenizer.from_pretrained(default_gguf.parent, gguf_file=default_gguf.name)
    ours = default_model.tokenizer
    ordinary = [
        "I'd say 'we'll' see it's 2024!\r\n\r\n\tdone",
        "äöü ß – “quoted” 日本語 123456 \U0001f600",
        "x=1;y  =   2\n\n\n  z",
    ]
    for text in [*held_out_texts(), textwrap.dedent(inspect.getsource(inspect)), *ordinary]:
        ids = ours.encode(text)
        assert ids == reference.encode(text, add_special_tokens=False)
        assert ours.decode_bytes(ids) == text.encode()


def test_special_text_is_text_in_the_real_vocabulary(default_model: HybridDenoiser) -> None:
    model = default_model
    special = model.facts.special
    assert (special.fim_prefix, special.fim_middle, special.fim_suffix) == (151659, 151660, 151661)
    assert {151643, 151645} <= special.end
    text = "<|endoftext|><|fim_prefix|>a<|im_end|>\0e\u0301\r\n"
    ids = model.tokenizer.encode(text)
    assert not special.special & set(ids)
    assert model.tokenizer.decode_bytes(ids) == text.encode()
