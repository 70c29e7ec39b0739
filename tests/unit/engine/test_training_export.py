"""Adapter files: what is exported is what the engine loads, and what cannot be one is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from engine.diffusion.confidence import MaskConfidence
from engine.models.adapter import CONFIDENCE, load_adapter
from engine.models.digest import sha256_of_file
from engine.protocol.errors import EngineError
from engine.training.export import MOST_BYTES, export_terms
from tests.fakes.tiny_loading import load
from tests.fakes.tiny_training import frozen_model, random_terms


def test_the_engine_loads_what_was_exported(tiny: Path, tmp_path: Path) -> None:
    model, out, base = frozen_model(tiny), tmp_path / "out" / "patch.safetensors", sha256_of_file(tiny)
    terms = random_terms(model)
    digest = export_terms(out, terms.parameters, {"base_sha256": base, "step": "7"})
    adapter = load_adapter(out, model.shape, base)
    assert adapter.digest == digest == sha256_of_file(out)
    assert set(adapter.tensors) == set(terms.parameters)
    for name, parameter in terms.parameters.items():
        assert adapter.tensors[name].dtype == torch.float16
        assert torch.equal(adapter.tensors[name], parameter.detach().half())
    assert load(tiny, adapter=out, precision="fp32").facts.can_draft
    assert sorted(path.name for path in out.parent.iterdir()) == ["patch.safetensors", "patch.safetensors.sha256"]


def test_another_export_takes_the_place_of_the_first(tiny: Path, tmp_path: Path) -> None:
    model, out, base = frozen_model(tiny), tmp_path / "patch.safetensors", sha256_of_file(tiny)
    digests = [
        export_terms(out, random_terms(model, seed=s, rank=r).parameters, {"base_sha256": base})
        for s, r in ((0, 4), (1, 2))
    ]
    assert digests[0] != digests[1] == load_adapter(out, model.shape, base).digest


def test_an_export_belongs_to_its_model(tiny: Path, tmp_path: Path) -> None:
    model, out = frozen_model(tiny), tmp_path / "patch.safetensors"
    export_terms(out, random_terms(model).parameters, {"base_sha256": "0" * 64})
    with pytest.raises(EngineError, match="made for another model file"):
        load_adapter(out, model.shape, sha256_of_file(tiny))


def test_what_masks_are_worth_travels_with_the_adapter(tiny: Path, tmp_path: Path) -> None:
    model, out, base = frozen_model(tiny), tmp_path / "patch.safetensors", sha256_of_file(tiny)
    terms = random_terms(model).parameters
    export_terms(out, terms, {"base_sha256": base})
    assert load_adapter(out, model.shape, base).confidence == MaskConfidence()
    stored = '{"scale": [0.9, 0.8], "shift": [0.1, -0.2], "gains": [0.6, 0.3]}'
    export_terms(out, terms, {"base_sha256": base, CONFIDENCE: stored})
    expected = MaskConfidence((0.9, 0.8), (0.1, -0.2), (0.6, 0.3))
    assert load(tiny, adapter=out, precision="fp32").facts.confidence == expected


@pytest.mark.parametrize(
    "stored", ["{", "[]", '{"scale": [1, 1]}', '{"gains": ["x"]}', '{"worth": [1]}', '{"gains": []}']
)
def test_an_unreadable_worth_is_a_damaged_adapter(tiny: Path, tmp_path: Path, stored: str) -> None:
    model, out, base = frozen_model(tiny), tmp_path / "patch.safetensors", sha256_of_file(tiny)
    export_terms(out, random_terms(model).parameters, {"base_sha256": base, CONFIDENCE: stored})
    with pytest.raises(EngineError, match="damaged"):
        load_adapter(out, model.shape, base)


def test_what_no_package_should_carry_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "patch.safetensors"
    with pytest.raises(ValueError, match=r"40,000,002 bytes of at most 40,000,000: train a smaller rank"):
        export_terms(out, {"x": torch.zeros(MOST_BYTES // 2 + 1)}, {"base_sha256": "0"})
    assert not out.exists()


@pytest.mark.parametrize("value", [1e5, torch.nan, -torch.inf])
def test_numbers_that_fp16_cannot_hold_are_refused(tmp_path: Path, value: float) -> None:
    out = tmp_path / "patch.safetensors"
    with pytest.raises(ValueError, match="b does not fit fp16"):
        export_terms(out, {"a": torch.ones(2), "b": torch.tensor([1.0, value])}, {"base_sha256": "0"})
    assert not out.exists()


def test_an_adapter_must_say_whose_it_is(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must say in `base_sha256`"):
        export_terms(tmp_path / "patch.safetensors", {"a": torch.ones(2)}, {})
