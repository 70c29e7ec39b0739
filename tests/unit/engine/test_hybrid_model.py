"""The default model itself: our forward against transformers' on the same file, int8 against fp32, the tokenizer.

Each test lets go of its models before the next is loaded: the float weights alone are 2.5 GB.
"""

from __future__ import annotations

import gc
import inspect
import textwrap
from pathlib import Path
from types import ModuleType

import pytest
import torch

from engine.models.base import CanvasRows, Denoiser
from engine.models.loading import adapter_path, load_denoiser

pytestmark = [pytest.mark.model, pytest.mark.timeout(900)]

NAME = "qwen2.5-coder-0.5b"


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("converted")


def load(gguf: Path, cache_dir: Path, precision: str, adapter: Path | None = None) -> Denoiser:
    return load_denoiser(gguf, cache_dir, name=NAME, precision=precision, adapter=adapter, threads=None)


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


def test_the_float_path_agrees_with_transformers(default_gguf: Path, cache_dir: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = load(default_gguf, cache_dir, "fp32")
    texts = held_out_texts()[:2]
    pairs = [(ids, logits_of(model, ids)) for ids in map(model.tokenizer.encode, texts)]
    del model
    gc.collect()
    reference = AutoModelForCausalLM.from_pretrained(
        default_gguf.parent, gguf_file=default_gguf.name, dtype=torch.float32
    )
    for ids, ours in pairs:
        with torch.no_grad():
            theirs = reference(torch.tensor([ids])).logits[0]
        assert float((ours - theirs).abs().max()) < 1e-3
    del reference
    gc.collect()


def test_int8_loses_less_than_three_percent_of_nll(default_gguf: Path, cache_dir: Path) -> None:
    texts = held_out_texts()
    nll = {}
    for precision in ("fp32", "int8"):
        model = load(default_gguf, cache_dir, precision)
        nll[precision] = mean_nll(model, texts)
        del model
        gc.collect()
    assert nll["fp32"] < 2.5
    assert nll["int8"] < 1.03 * nll["fp32"]


def test_the_shipped_adapter_fills_a_gap_the_plain_model_does_not(default_gguf: Path, cache_dir: Path) -> None:
    adapter = adapter_path()
    assert adapter is not None
    model = load(default_gguf, cache_dir, "int8", adapter)
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


def test_a_wide_step_equals_single_steps(default_gguf: Path, cache_dir: Path) -> None:
    model = load(default_gguf, cache_dir, "int8", adapter_path())
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


def test_the_tokenizer_agrees_with_transformers_on_ordinary_text(default_gguf: Path, cache_dir: Path) -> None:
    from transformers import AutoTokenizer

    reference = AutoTokenizer.from_pretrained(default_gguf.parent, gguf_file=default_gguf.name)
    ours = load(default_gguf, cache_dir, "int8").tokenizer
    ordinary = [
        "I'd say 'we'll' see it's 2024!\r\n\r\n\tdone",
        "äöü ß – “quoted” 日本語 123456 \U0001f600",
        "x=1;y  =   2\n\n\n  z",
    ]
    for text in [*held_out_texts(), textwrap.dedent(inspect.getsource(inspect)), *ordinary]:
        ids = ours.encode(text)
        assert ids == reference.encode(text, add_special_tokens=False)
        assert ours.decode_bytes(ids) == text.encode()


def test_special_text_is_text_in_the_real_vocabulary(default_gguf: Path, cache_dir: Path) -> None:
    model = load(default_gguf, cache_dir, "int8")
    special = model.facts.special
    assert (special.fim_prefix, special.fim_middle, special.fim_suffix) == (151659, 151660, 151661)
    assert {151643, 151645} <= special.end
    text = "<|endoftext|><|fim_prefix|>a<|im_end|>\0e\u0301\r\n"
    ids = model.tokenizer.encode(text)
    assert not special.special & set(ids)
    assert model.tokenizer.decode_bytes(ids) == text.encode()
