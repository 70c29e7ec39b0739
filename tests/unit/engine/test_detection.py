"""Which family a folder or file is of, told without loading it; and what happens to those of no family."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.canvas_serving.core import CanvasCore
from engine.canvas_serving.startup import Wanted, load_canvas_core
from engine.config import EngineConfig
from engine.models import memory
from engine.models.detection import FAMILIES, family_of
from engine.models.special_tokens import special_tokens
from engine.protocol.errors import EngineError
from engine.protocol.messages import Fill
from engine.startup import load_core
from engine.store import Registry, Store
from tests.fakes.checkpoints import write_checkpoint, writers
from tests.fakes.driving import drive
from tests.fakes.model_sources import small_store
from tests.fakes.tiny_model import write_tiny_gguf


def no_progress(stage: str, done: float) -> None:
    """Nobody watches."""


def folder_of(path: Path, config: dict[str, Any]) -> Path:
    write_checkpoint(path, "sdar")
    (path / "config.json").write_text(json.dumps(config))
    return path


@pytest.mark.parametrize("layout", sorted(writers()))
def test_every_published_layout_is_known_by_its_folder(tmp_path: Path, layout: str) -> None:
    folder = writers()[layout](tmp_path / layout, 0)
    family = "diffusion_gemma" if layout == "diffusion-gemma" else "masked"
    assert family_of("", folder) == family
    entry = small_store(tmp_path / "home").add(folder, "mine")
    assert (entry.family, entry.loadable) == (family, True)


def test_detecting_a_family_loads_no_framework(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "sdar", "sdar")
    code = (
        "import sys\nfrom pathlib import Path\nfrom engine.models.detection import family_of\n"
        f"assert family_of('', Path({str(folder)!r})) == 'masked'\n"
        "assert not {'torch', 'transformers', 'tokenizers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_gguf_is_known_by_its_architecture(tmp_path: Path) -> None:
    write_tiny_gguf(tmp_path / "tiny.gguf")
    assert family_of("qwen2", tmp_path / "tiny.gguf") == "hybrid"
    assert family_of("llama", tmp_path / "tiny.gguf") is None


def test_every_family_of_the_registry_is_one_that_is_loaded() -> None:
    assert {entry.family for entry in Registry.built_in().entries} == set(FAMILIES)


@pytest.mark.parametrize("config", [{"model_type": "bert"}, {"model_type": "llama"}, {}, {"model_type": ["odd"]}])
def test_a_folder_of_no_family_is_refused_by_its_path(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = folder_of(tmp_path / "model", config)
    with pytest.raises(EngineError, match="no family of this version") as caught:
        Store(small_store(tmp_path).paths, Registry.built_in()).locate(str(folder))
    assert (caught.value.kind, "config.json" in caught.value.remedy) == ("model_unsupported", True)


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="does not exist") as caught:
        small_store(tmp_path).locate(str(tmp_path / "nothing"))
    assert caught.value.kind == "bad_request"


def test_what_a_path_names_is_loaded_from_there(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "sdar", "sdar")
    store = small_store(tmp_path / "home")
    found = store.locate(str(folder))
    assert (found.path, found.entry.family) == (folder, "masked")
    assert found.entry.name.startswith("sdar-")
    assert not (tmp_path / "home").exists()


def test_an_added_folder_that_changed_is_of_a_wrong_digest(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "sdar", "sdar")
    store = small_store(tmp_path / "home")
    store.add(folder, "mine")
    assert store.locate("mine").path == folder
    write_checkpoint(folder, "sdar", seed=1)
    with pytest.raises(EngineError, match="not the file that was added") as caught:
        store.locate("mine")
    assert caught.value.kind == "model_corrupt"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACUNA_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize(("family", "words"), [("tiny", "no family 'tiny'"), ("masked", "is a file")])
def test_a_family_that_cannot_load_the_weights_is_refused(home: Path, family: str, words: str) -> None:
    write_tiny_gguf(home / "tiny.gguf")
    with pytest.raises(EngineError, match=words) as caught:
        load_core(EngineConfig(model=str(home / "tiny.gguf"), family=family, device="cpu"), no_progress)
    assert caught.value.kind == "model_unsupported"


def test_a_gguf_is_served_by_its_path(home: Path) -> None:
    write_tiny_gguf(home / "tiny.gguf")
    config = EngineConfig(model=str(home / "tiny.gguf"), precision="fp32", device="cpu", threads=1)
    core = load_core(config, no_progress)
    assert (core.facts.family, core.facts.model[:10]) == ("hybrid", "tiny.gguf-")
    done, _, _ = drive(core, Fill("1", "python", "def f(x):\n    return ", "\n", max_tokens=4))
    assert 0 < done.stats.tokens <= 4


def test_a_folder_said_to_be_of_a_family_it_is_not_of_is_refused(home: Path) -> None:
    folder = write_checkpoint(home / "sdar", "sdar")
    for family in ("diffusion_gemma", "hybrid"):
        with pytest.raises(EngineError) as caught:
            load_core(EngineConfig(model=str(folder), family=family, device="cpu"), no_progress)
        assert caught.value.kind in {"model_unsupported", "model_corrupt"}


def test_where_nothing_tells_the_layout_it_is_named_as_the_family(home: Path) -> None:
    folder = write_checkpoint(home / "weights", "a2d-bd3lm")
    with pytest.raises(EngineError, match="a2d-mdlm or a2d-bd3lm"):
        load_core(EngineConfig(model=str(folder), device="cpu"), no_progress)
    core = load_core(EngineConfig(model=str(folder), family="a2d-bd3lm", device="cpu"), no_progress)
    assert isinstance(core, CanvasCore)
    assert core.model.facts.block == 32


def test_a_model_that_does_not_fit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1000)
    folder = write_checkpoint(tmp_path / "sdar", "sdar")
    wanted = Wanted(folder, "sdar", "sdar", "cpu", "auto", 0, 1)
    with pytest.raises(EngineError, match="are free on cpu") as caught:
        load_canvas_core("masked", wanted, no_progress)
    assert caught.value.kind == "out_of_memory"


def test_a_configuration_without_its_tokenizer_is_no_masked_model(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", "open-dcoder")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(EngineError, match="no masked-diffusion model") as caught:
        load_canvas_core("masked", Wanted(folder, "model", "model", "cpu", "auto", 0, 1), no_progress)
    assert caught.value.kind == "model_unsupported"


def test_special_tokens_come_from_whichever_file_names_them(tmp_path: Path) -> None:
    (tmp_path / "added_tokens.json").write_text('{"<a>": 1, "<odd>": "x"}')
    (tmp_path / "tokenizer_config.json").write_text('{"added_tokens_decoder": {"2": {"content": "<b>"}, "x": {}}}')
    (tmp_path / "tokenizer.json").write_text('{"added_tokens": [{"id": 3, "content": "<c>"}, {"id": "4"}, 5]}')
    assert special_tokens(tmp_path) == {"<a>": 1, "<b>": 2, "<c>": 3}


@pytest.mark.parametrize("text", ["", "[]", "{", '{"added_tokens": 1, "added_tokens_decoder": []}'])
def test_files_that_cannot_be_read_name_no_tokens(tmp_path: Path, text: str) -> None:
    for name in ("added_tokens.json", "tokenizer_config.json", "tokenizer.json"):
        (tmp_path / name).write_text(text)
    assert special_tokens(tmp_path) == ({} if not text.startswith('{"added_tokens"') else {"added_tokens": 1})
