"""The table of published layouts: what it says of each family, and which one a checkpoint is taken for."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from engine.models.masked.families import LAYOUTS, candidates, detect, layout_named
from engine.protocol.errors import EngineError

SHIFTED = {"open-dcoder", "dream", "dream-coder", "diffucoder", "dreamon"}
MASKS = {"dream": 151666, "dream-coder": 151666, "diffucoder": 151666, "dreamon": 151666}
MASKS |= {"llada": 126336, "sdar": 151669, "stable-diffcoder": 5}


def test_shift_block_and_mask_are_as_published() -> None:
    assert {name for name, layout in LAYOUTS.items() if layout.shift} == SHIFTED
    blocks = {name: layout.block for name, layout in LAYOUTS.items() if layout.block}
    assert blocks == {"a2d-bd3lm": 32, "sdar": 4, "stable-diffcoder": 4}
    assert {name: layout.mask.published for name, layout in LAYOUTS.items() if layout.mask.published >= 0} == MASKS


def test_only_dreamon_changes_the_length_and_its_delete_is_the_end_of_text() -> None:
    assert [name for name, layout in LAYOUTS.items() if layout.expand.texts] == ["dreamon"]
    dreamon = LAYOUTS["dreamon"]
    assert (dreamon.expand.published, dreamon.delete.published) == (151667, 151643)
    assert dreamon.ends == ()


def test_what_sees_nothing_on_the_right_quotes_it() -> None:
    for layout in LAYOUTS.values():
        assert (layout.fill == "quoted") == (layout.block > 0)
        assert layout.chat != "none" or layout.fill in {"raw", "framed"}
        assert not layout.shift or layout.start.texts


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        LAYOUTS["dream"].shift = False  # type: ignore[misc]
    with pytest.raises(EngineError, match="no layout 'gpt'"):
        layout_named("gpt")
    assert layout_named("sdar") is LAYOUTS["sdar"]


@pytest.mark.parametrize(
    ("model_type", "tokens", "name", "layout"),
    [
        ("Dream", ["<|mask|>"], "Dream-org/Dream-v0-Instruct-7B", "dream"),
        ("Dream", ["<|mask|>"], "Dream-org/Dream-Coder-v0-Base-7B", "dream-coder"),
        ("Dream", ["<|mask|>", "<|dlm_pad|>"], "weights", "diffucoder"),
        ("Dream", ["<|mask|>"], "apple/DiffuCoder-7B-cpGRPO", "diffucoder"),
        ("Dream", ["<|mask|>", "<|expand|>"], "weights", "dreamon"),
        ("qwen2", ["<M>"], "weights", "open-dcoder"),
        ("qwen2", [], "fredzzp/open-dcoder-0.5B", "open-dcoder"),
        ("qwen2", ["<|im_end|>"], "Qwen/Qwen2.5-Coder-0.5B", None),
        ("a2d-qwen2", ["<|mask|>"], "dllm-hub/Qwen2.5-Coder-0.5B-Instruct-diffusion-mdlm-v0.1", "a2d-mdlm"),
        ("a2d-qwen3", ["<|mask|>"], "dllm-hub/Qwen3-0.6B-diffusion-bd3lm-v0.1", "a2d-bd3lm"),
        ("llada", ["<|mdm_mask|>"], "GSAI-ML/LLaDA-1.5", "llada"),
        ("sdar", ["<|MASK|>"], "JetLM/SDAR-1.7B-Chat", "sdar"),
        ("llama", [], "ByteDance-Seed/Stable-DiffCoder-8B-Instruct", "stable-diffcoder"),
        ("llama", [], "meta-llama/Llama-3.1-8B", None),
        ("sdar_moe", [], "JetLM/SDAR-30B-A3B-Chat", None),
        ("llada2_moe", [], "inclusionAI/LLaDA2.0-mini", None),
        ("", [], "weights", None),
    ],
)
def test_a_checkpoint_is_taken_for_what_it_is(
    model_type: str, tokens: list[str], name: str, layout: str | None
) -> None:
    found = detect({"model_type": model_type}, tokens, name)
    assert (found.name if found else None) == layout


@pytest.mark.parametrize("name", ["weights", "mdlm-and-bd3lm"])
def test_where_nothing_tells_two_layouts_apart_a_person_is_asked(name: str) -> None:
    with pytest.raises(EngineError, match="a2d-mdlm or a2d-bd3lm") as caught:
        detect({"model_type": "a2d-qwen3"}, ["<|mask|>"], name)
    assert (caught.value.kind, caught.value.remedy) == ("model_unsupported", "say so: --family a2d-mdlm or a2d-bd3lm")
    assert len(candidates({"model_type": "a2d-qwen3"}, [], name)) == 2


def test_a_block_in_the_configuration_says_more_than_a_name() -> None:
    found = detect({"model_type": "a2d-qwen2", "block_size": 64}, [], "my-mdlm")
    assert found == replace(LAYOUTS["a2d-bd3lm"], block=64)
