"""The store without a network: finding, checking, removing and adding models."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from filelock import FileLock

from engine.protocol.errors import EngineError
from engine.store.integrity import Stamp
from tests.fakes.model_sources import CONTENT, NAME, GoodSource, small_entry, small_store


def gguf_text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf(architecture: str = "qwen2", version: int = 3) -> bytes:
    """The smallest header that names an architecture, behind a value of every shape a reader must pass over."""
    list_of_texts = struct.pack("<IIQ", 9, 8, 2) + gguf_text("a") + gguf_text("b")
    pairs = [
        gguf_text("tokenizer.tokens") + list_of_texts,
        gguf_text("some.float") + struct.pack("<If", 6, 1.5),
        gguf_text("some.flag") + struct.pack("<I?", 7, True),
        gguf_text("general.architecture") + struct.pack("<I", 8) + gguf_text(architecture),
        gguf_text(f"{architecture}.context_length") + struct.pack("<II", 4, 4096),
    ]
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs)) + b"".join(pairs)


def safetensors_folder(folder: Path) -> Path:
    folder.mkdir()
    header = b'{"__metadata__":{}}'
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "max_position_embeddings": 512}))
    return folder


def refused(home: Path, path: Path, name: str = "mine") -> EngineError:
    with pytest.raises(EngineError) as caught:
        small_store(home).add(path, name)
    assert not (home / "models" / "registry.toml").exists()
    return caught.value


def test_a_missing_model_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        small_store(tmp_path).path(NAME)
    assert (caught.value.kind, caught.value.remedy) == ("model_missing", f"Run `lacuna models pull {NAME}`.")


def test_an_unknown_name_is_a_bad_request(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no model called 'small-modal'") as caught:
        small_store(tmp_path).path("small-modal")
    assert "Did you mean small-model?" in caught.value.remedy


def test_a_model_of_a_later_version_has_no_path(tmp_path: Path) -> None:
    with pytest.raises(EngineError) as caught:
        small_store(tmp_path, entry=small_entry(loadable=False)).path(NAME)
    assert caught.value.kind == "model_unsupported"


def test_a_file_put_there_by_hand_is_read_once_and_stamped(tmp_path: Path) -> None:
    store = small_store(tmp_path)
    file = store.shelf(NAME).path
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    assert store.path(NAME) == file
    assert store.shelf(NAME).stamped(small_entry().files[0])


def test_a_changed_file_is_removed_and_said(tmp_path: Path) -> None:
    store = small_store(tmp_path, [GoodSource()])
    file = store.pull(NAME)
    file.write_bytes(b"x" * len(CONTENT))
    with pytest.raises(EngineError, match="wrong digest") as caught:
        store.path(NAME)
    assert (caught.value.kind, file.exists()) == ("model_corrupt", False)


def test_verify_does_not_trust_the_stamp(tmp_path: Path) -> None:
    """Bytes changed behind the stamp's back (same size, same time) are found by reading."""
    store = small_store(tmp_path, [GoodSource()])
    file = store.pull(NAME)
    file.write_bytes(b"x" * len(CONTENT))
    Stamp.of(file, small_entry().files[0].sha256 or "").write(store.shelf(NAME).stamp(small_entry().files[0]))
    assert store.path(NAME) == file
    with pytest.raises(EngineError, match="wrong digest"):
        store.verify(NAME)
    assert not file.exists()


def test_verify_counts_what_it_reads(tmp_path: Path) -> None:
    counts: list[int] = []
    store = small_store(tmp_path, [GoodSource()])
    store.pull(NAME)
    store.verify(NAME, counts.append)
    assert counts[-1] == len(CONTENT)


def test_verify_of_a_model_of_a_later_version_says_so(tmp_path: Path) -> None:
    store = small_store(tmp_path, entry=small_entry(loadable=False))
    with pytest.raises(EngineError) as caught:
        store.verify(NAME)
    assert caught.value.kind in {"model_missing", "model_unsupported"}


@pytest.mark.parametrize("stamp", ["", "[]", "{}", '{"size": "many"}', "\x00"])
def test_a_stamp_that_cannot_be_read_costs_only_reading_the_file(tmp_path: Path, stamp: str) -> None:
    store = small_store(tmp_path, [GoodSource()])
    file = store.pull(NAME)
    store.shelf(NAME).stamp(small_entry().files[0]).write_text(stamp)
    assert store.path(NAME) == file


def test_remove_frees_the_file_and_its_conversion(tmp_path: Path) -> None:
    store = small_store(tmp_path, [GoodSource()])
    file = store.pull(NAME)
    converted = store.converted_dir(NAME)
    converted.mkdir(parents=True)
    (converted / "weights").write_bytes(b"1234")
    assert store.remove(NAME) >= len(CONTENT) + 4
    assert not file.exists()
    assert not converted.exists()


def test_removing_what_is_not_there_frees_nothing(tmp_path: Path) -> None:
    assert small_store(tmp_path).remove(NAME) == 0


def test_a_model_that_is_being_fetched_is_not_removed(tmp_path: Path) -> None:
    store = small_store(tmp_path)
    (tmp_path / "models").mkdir()
    with FileLock(str(store.shelf(NAME).lock)), pytest.raises(EngineError, match="Another process"):
        store.remove(NAME)


def test_a_conversion_belongs_to_the_content(tmp_path: Path) -> None:
    one = small_store(tmp_path).converted_dir(NAME)
    other = small_store(tmp_path, entry=small_entry(b"other content")).converted_dir(NAME)
    assert one != other
    assert one.parent == tmp_path / "cache" / "converted"
    assert not one.exists()


def test_an_added_gguf_is_found_by_name_and_stays_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / 'odd "name".gguf'
    file.write_bytes(gguf())
    entry = small_store(tmp_path / "home").add(file, "mine")
    store = small_store(tmp_path / "home")
    assert (entry.family, entry.loadable, entry.context_tokens) == ("hybrid", True, 4096)
    assert store.find("mine") == entry
    assert store.path("mine") == store.pull("mine") == file
    assert store.remove("mine") >= 0
    assert file.exists()
    assert [known.name for known in store.entries()] == [NAME]


def test_an_added_file_that_changed_is_refused_but_never_deleted(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(gguf())
    store = small_store(tmp_path / "home")
    store.add(file, "mine")
    file.write_bytes(gguf() + b"more")
    with pytest.raises(EngineError, match="not the file that was added"):
        store.path("mine")
    assert file.exists()


def test_an_added_file_that_is_gone_says_so(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(gguf())
    store = small_store(tmp_path / "home")
    store.add(file, "mine")
    file.unlink()
    with pytest.raises(EngineError, match="is gone") as caught:
        store.path("mine")
    assert "lacuna models remove mine" in caught.value.remedy


def test_another_architecture_can_be_added_and_says_it_is_for_later(tmp_path: Path) -> None:
    file = tmp_path / "llama.gguf"
    file.write_bytes(gguf("llama"))
    store = small_store(tmp_path / "home")
    assert not store.add(file, "mine").loadable
    with pytest.raises(EngineError, match="later version"):
        store.path("mine")


def test_every_file_a_loader_reads_has_a_digest(tmp_path: Path) -> None:
    folder = safetensors_folder(tmp_path / "weights")
    for name in ("vocab.json", "merges.txt", "generation_config.json", "modeling_theirs.py", "README.md"):
        (folder / name).write_text("{}")
    entry = small_store(tmp_path / "home").add(folder, "mine")
    read = {"model.safetensors", "config.json", "vocab.json", "merges.txt", "generation_config.json"}
    assert {file.name for file in entry.files} == read
    assert all(file.sha256 for file in entry.files)


def test_a_safetensors_folder_is_known_by_all_its_files(tmp_path: Path) -> None:
    folder = safetensors_folder(tmp_path / "weights")
    entry = small_store(tmp_path / "home").add(folder, "mine")
    assert {file.name for file in entry.files} == {"model.safetensors", "config.json"}
    assert (entry.family, entry.context_tokens) == ("llama", 512)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"GGUF",
        b"PK\x03\x04",
        gguf(version=1),
        gguf()[:60],
        gguf(""),
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + b"\xff" * 8,
    ],
)
def test_what_is_not_gguf_is_not_added(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "weights.gguf"
    file.write_bytes(content)
    assert "not a GGUF file" in refused(tmp_path / "home", file).message


def test_pickled_weights_are_refused(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "pytorch_model.bin").write_bytes(b"\x80\x02")
    assert "Pickled weights" in refused(tmp_path / "home", tmp_path / "weights").remedy


@pytest.mark.parametrize("content", [b"", b"12345678", b"\xff" * 9, (5).to_bytes(8, "little") + b"[1,2]"])
def test_what_is_not_safetensors_is_not_added(tmp_path: Path, content: bytes) -> None:
    folder = safetensors_folder(tmp_path / "weights")
    (folder / "model.safetensors").write_bytes(content)
    assert "not a safetensors file" in refused(tmp_path / "home", folder).message


@pytest.mark.parametrize("config", [None, "{", "nothing"])
def test_a_folder_needs_its_config(tmp_path: Path, config: str | None) -> None:
    folder = safetensors_folder(tmp_path / "weights")
    (folder / "config.json").unlink() if config is None else (folder / "config.json").write_text(config)
    assert "config.json" in refused(tmp_path / "home", folder).message


def test_a_path_that_is_not_there_is_not_added(tmp_path: Path) -> None:
    assert "does not exist" in refused(tmp_path / "home", tmp_path / "nothing").message


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.gguf"
    file.write_bytes(gguf())
    assert f"lacuna models remove {NAME}" in refused(tmp_path / "home", file, NAME).remedy


def test_a_damaged_list_of_added_models_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "registry.toml").write_text("[models")
    with pytest.raises(EngineError, match="cannot be read") as caught:
        small_store(tmp_path).entries()
    assert "registry.toml" in caught.value.remedy
