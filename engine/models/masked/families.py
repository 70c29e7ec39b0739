"""The published layouts of masked-diffusion checkpoints, as one frozen table: `LAYOUTS`. Pure data and how to choose.

A wrong number here does not fail, it writes fluent nonsense: each line says what a family was trained with.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from engine.diffusion.sampling import SamplingConfig
from engine.protocol.errors import EngineError

Stock = Literal["qwen2", "qwen3", "llama"]
Chat = Literal["none", "qwen", "llama3", "seed"]
Fill = Literal["raw", "framed", "answer", "quoted"]


@dataclass(frozen=True, slots=True)
class Token:
    """A special token: its text in tokenizer.json, tried first (any of several), and its published id (-1: none)."""

    texts: tuple[str, ...]
    published: int = -1


NONE = Token(())


@dataclass(frozen=True, slots=True)
class Layout:
    """What one family of checkpoints expects.

    model_types: `model_type` in config.json. stock: whose classes run it; "" reads it off the model type.
    mask, expand, delete: the noise token, and those that change a hole's length. ends: tokens that end a text.
    start, stop: put around a text where `fill` is "framed"; `start` also stands in front of an empty prefix, so that a
        shifted family has a row that predicts the first place.
    shift: place i is predicted by the output of place i - 1, as in the causal model the family was made from.
    block: places of a block in block-causal families, counted from the first token of the text, as in training; 0
        where every place sees every other.
    fill: how a gap is laid out (see `prompts`). chat: whose turns an instruction is put in.
    window: tokens the family was trained on, 0 for what config.json says. trained_steps: as in `CanvasFacts`.
    """

    name: str
    model_types: frozenset[str]
    mask: Token
    ends: tuple[Token, ...]
    stock: Stock | Literal[""] = ""
    start: Token = NONE
    stop: Token = NONE
    expand: Token = NONE
    delete: Token = NONE
    shift: bool = False
    block: int = 0
    fill: Fill = "raw"
    chat: Chat = "none"
    window: int = 0
    trained_steps: int = 0
    sampling: SamplingConfig = field(default_factory=SamplingConfig)


_END_OF_TEXT = Token(("<|endoftext|>",), 151643)
_IM_END = Token(("<|im_end|>",), 151645)
_QWEN_ENDS = (_END_OF_TEXT, _IM_END)
_DREAM_MASK = Token(("<|mask|>",), 151666)
_DREAM_START = Token(("<|beginoftext|>",), 151665)

_REFRESH = 4
"""Steps between exact passes of bidirectional families. Fast-dLLM (arXiv 2505.22618) computes its dual cache anew once
per block of 32 places; this is more careful. 1 would be as the families were published, at the price of running the
whole text in every step."""

# The shifted families sample one place per step, the one of least entropy (alg="entropy"): a bound of 0 accepts just
# that one. Steps are left to the hole's length, which is what one per place means; DreamOn needs more, as its holes
# grow.


def _surest_first(temperature: float, top_p: float) -> SamplingConfig:
    return SamplingConfig(
        sampler="entropy_bound",
        entropy_bound=0.0,
        temperature_start=temperature,
        temperature_end=temperature,
        deterministic=False,
        top_p=top_p,
        refresh_every=_REFRESH,
    )


_LIKELIEST_FIRST = SamplingConfig(
    sampler="confidence", schedule="linear", confidence_threshold=1.0, refresh_every=_REFRESH
)
"""LLaDA's `low_confidence` order at temperature 0: the likeliest place of each step, never revisited."""


def _dream(name: str, *, temperature: float) -> Layout:
    return Layout(
        name=name,
        model_types=frozenset({"Dream", "dream"}),
        stock="qwen2",
        mask=_DREAM_MASK,
        ends=_QWEN_ENDS,
        start=_DREAM_START,
        shift=True,
        chat="qwen",
        window=2048,
        sampling=_surest_first(temperature, 0.95),
    )


def _a2d(name: str, *, block: int) -> Layout:
    return Layout(
        name=name,
        model_types=frozenset({"a2d-qwen2", "a2d-qwen3"}),
        mask=Token(("<|mask|>",)),
        ends=(_IM_END, _END_OF_TEXT),
        block=block,
        fill="quoted" if block else "answer",
        chat="qwen",
        sampling=_LIKELIEST_FIRST,
    )


_LAYOUTS = (
    Layout(
        # Open-dLLM, arXiv 2605.06885. It samples with P2 (Peng et al. 2025, arXiv 2502.03540): the least likely tokens
        # are masked again. Here the probability of the present token decides, there that of a freshly drawn one.
        name="open-dcoder",
        model_types=frozenset({"qwen2"}),
        stock="qwen2",
        mask=Token(("<M>", "[MASK]", "<|mask|>")),
        ends=_QWEN_ENDS,
        start=_END_OF_TEXT,
        shift=True,
        trained_steps=64,
        sampling=SamplingConfig(
            steps=64,
            sampler="remask",
            schedule="linear",
            temperature_start=0.6,
            temperature_end=0.6,
            deterministic=False,
            top_p=0.95,
            remask="cap",
            remask_strength=0.1,
            refresh_every=_REFRESH,
        ),
    ),
    _a2d("a2d-mdlm", block=0),  # dllm: the weights of Qwen with the causal mask taken away
    _a2d("a2d-bd3lm", block=32),
    _dream("dream", temperature=0.2),  # Ye et al. 2025, arXiv 2508.15487
    _dream("dream-coder", temperature=0.1),
    _dream("diffucoder", temperature=0.3),  # Gong et al. 2025, arXiv 2506.20639
    Layout(
        name="dreamon",  # Wu et al. 2025: expand becomes two masks, the end of text deletes its place
        model_types=frozenset({"Dream", "dream"}),
        stock="qwen2",
        mask=_DREAM_MASK,
        ends=(),
        start=_DREAM_START,
        stop=_END_OF_TEXT,
        expand=Token(("<|expand|>",), 151667),
        delete=_END_OF_TEXT,
        shift=True,
        fill="framed",
        window=2048,
        sampling=replace(_surest_first(0.2, 0.9), steps=256),
    ),
    Layout(
        name="llada",  # Nie et al. 2025, arXiv 2502.09992; LLaDA-8B and LLaDA-1.5
        model_types=frozenset({"llada"}),
        stock="llama",
        mask=Token(("<|mdm_mask|>",), 126336),
        ends=(Token(("<|endoftext|>",), 126081), Token(("<|eot_id|>",), 126348)),
        start=Token(("<|startoftext|>",), 126080),
        fill="framed",
        chat="llama3",
        sampling=_LIKELIEST_FIRST,
    ),
    Layout(
        name="sdar",  # Cheng et al. 2025, arXiv 2510.06303
        model_types=frozenset({"sdar"}),
        stock="qwen3",
        mask=Token(("<|MASK|>",), 151669),
        ends=_QWEN_ENDS,
        block=4,
        fill="quoted",
        chat="qwen",
        trained_steps=4,
        sampling=SamplingConfig(sampler="confidence", confidence_threshold=0.9),
    ),
    Layout(
        name="stable-diffcoder",  # ByteDance-Seed/Stable-DiffCoder-8B: block-causal Llama over Seed-Coder's vocabulary
        model_types=frozenset({"llama"}),
        stock="llama",
        mask=Token((), 5),
        ends=(Token(("<[end▁of▁sentence]>",), 2),),
        start=Token(("<[begin▁of▁sentence]>",), 0),
        block=4,
        fill="quoted",
        chat="seed",
        sampling=_LIKELIEST_FIRST,
    ),
)

LAYOUTS: Mapping[str, Layout] = {layout.name: layout for layout in _LAYOUTS}


def layout_named(name: str) -> Layout:
    """The layout called `name`. Raises EngineError(model_unsupported)."""
    if name not in LAYOUTS:
        raise EngineError("model_unsupported", f"there is no layout {name!r}", f"name one of {', '.join(LAYOUTS)}")
    return LAYOUTS[name]


def detect(config: Mapping[str, Any], tokens: Collection[str], name: str = "") -> Layout | None:
    """Which layout a checkpoint has, or None when it is of no masked family.

    config: its config.json. tokens: the texts of its tokenizer's special tokens. name: of its folder or repository,
    which alone tells Dream-Coder from Dream. A plain `qwen2` or `llama` is taken for a masked model only if its
    vocabulary or its name says so.

    Raises EngineError(model_unsupported) for a checkpoint of one of several layouts where nothing says which: `mdlm`
    and `bd3lm` have the same tensors and, as published, the same configuration; a wrong guess writes nonsense.
    """
    found = candidates(config, tokens, name)
    if len(found) > 1:
        names = " or ".join(layout.name for layout in found)
        raise EngineError(
            "model_unsupported",
            f"nothing in the checkpoint and its name says whether it was trained as {names}",
            f"say so: --family {names}",
        )
    return found[0] if found else None


def candidates(config: Mapping[str, Any], tokens: Collection[str], name: str = "") -> tuple[Layout, ...]:
    """The layouts a checkpoint may have; see `detect`. A configuration that gives a block's size settles it."""
    if str(config.get("model_type")) in LAYOUTS["a2d-mdlm"].model_types:
        return _of_a2d(config.get("block_size"), re.sub(r"[^a-z0-9]+", "", name.lower()))
    found = _one_of(config, tokens, name)
    return () if found is None else (found,)


def _of_a2d(block: object, called: str) -> tuple[Layout, ...]:
    whole, blocks = LAYOUTS["a2d-mdlm"], LAYOUTS["a2d-bd3lm"]
    if isinstance(block, int) and block > 0:
        return (replace(blocks, block=block),)
    is_whole, is_blocks = "mdlm" in called, "bd3lm" in called
    if is_whole == is_blocks:
        return (whole, blocks)
    return (whole if is_whole else blocks,)


def _one_of(config: Mapping[str, Any], tokens: Collection[str], name: str) -> Layout | None:
    kind = str(config.get("model_type", ""))
    called = re.sub(r"[^a-z0-9]+", "", name.lower())
    chosen = ""
    if kind.lower() == "dream":
        chosen = _of_dream(tokens, called)
    elif kind in {"llada", "sdar"}:
        chosen = kind
    elif kind == "qwen2" and (_has_any(tokens, LAYOUTS["open-dcoder"].mask) or "opendcoder" in called):
        chosen = "open-dcoder"
    elif kind == "llama" and ("diffcoder" in called or "diffcoder" in str(config.get("architectures", "")).lower()):
        chosen = "stable-diffcoder"
    return LAYOUTS.get(chosen)


def _of_dream(tokens: Collection[str], called: str) -> str:
    if _has_any(tokens, LAYOUTS["dreamon"].expand):
        return "dreamon"
    if "<|dlm_pad|>" in tokens or "diffucoder" in called:
        return "diffucoder"
    return "dream-coder" if "dreamcoder" in called else "dream"


def _has_any(tokens: Collection[str], token: Token) -> bool:
    return any(text in tokens for text in token.texts)
