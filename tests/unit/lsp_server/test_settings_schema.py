"""What editors are told of settings says the same as the server that reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lsp_server import settings_schema
from lsp_server.own_actions import MOST_ACTIONS
from lsp_server.settings import LONGEST_ITEM, Rule, Value, markdown_table, parse, rules

ACTION = {"title": "Use pathlib", "instruction": "Use pathlib.", "languages": ["python"]}
ANYTHING: tuple[Any, ...] = (
    *(True, False, -1, 0, 1, 4, 9, 96, 10_001, 2**40, 1.5, 3.0, "", "auto", "utf-16", "utf-8", {}, [], [""]),
    *(["*.txt"], ["a\nb"], ["  "], [1], ["a" * LONGEST_ITEM], ["a" * (LONGEST_ITEM + 1)], ["a"] * 33, ["a"] * 257),
    *(["/w"], ["~/w", "~"], ["/w", "w"], ["/w\na"], ["~w"], ["/w"] * 257),
    *([ACTION], [ACTION] * MOST_ACTIONS, [ACTION] * (MOST_ACTIONS + 1), [{"title": "x"}], [ACTION | {"more": 1}]),
)


def nested(path: str, value: object) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(("default", "rule"), [pytest.param(d, r, id=r.path) for _, d, r in rules()])
def test_the_schema_allows_what_the_server_takes(default: Value, rule: Rule) -> None:
    schema = settings_schema.json_schema(default, rule)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    taken = [not parse(nested(rule.path, value))[1] for value in ANYTHING]
    assert [validator.is_valid(value) for value in ANYTHING] == taken
    assert any(taken)
    assert not all(taken)
    assert validator.is_valid(schema["default"])


def test_vs_code_has_a_text_for_every_setting() -> None:
    block, texts = settings_schema.vscode_configuration(), settings_schema.vscode_texts()
    assert list(block["properties"]) == [f"lacuna.{rule.path}" for _, _, rule in rules()]
    named = [block["title"], *(entry["markdownDescription"] for entry in block["properties"].values())]
    assert sorted(name.strip("%") for name in named) == sorted(texts)
    assert all(texts.values())


def test_vs_code_s_defaults_are_the_server_s_but_for_the_preview_with_nothing_ticked() -> None:
    schemas = {f"lacuna.{rule.path}": settings_schema.json_schema(default, rule) for _, default, rule in rules()}
    properties = settings_schema.vscode_configuration()["properties"]
    assert [name for name in schemas if properties[name]["default"] != schemas[name]["default"]] == [
        "lacuna.rewrite.confirm"
    ]
    assert properties["lacuna.rewrite.confirm"]["default"] is False


def test_what_opens_files_needs_trust_and_what_is_agreed_once_holds_for_the_window() -> None:
    assert "lacuna.privacy.openFiles" in settings_schema.vscode_restricted()
    assert "lacuna.inlineCompletion.enable" not in settings_schema.vscode_restricted()
    scopes = {name: entry["scope"] for name, entry in settings_schema.vscode_configuration()["properties"].items()}
    assert [name for name, scope in scopes.items() if scope == "window"] == ["lacuna.positionEncoding"]
    # To where documents go is nobody's to choose but the person's, not even a trusted project's.
    machine = [name for name, scope in scopes.items() if scope == "machine"]
    assert machine == [name for name in scopes if name.startswith("lacuna.engine.")]
    assert set(machine) <= set(settings_schema.vscode_restricted())


def test_a_package_keeps_what_is_the_client_s_own() -> None:
    own = {"title": "Server", "properties": {"lacuna.server.path": {"type": "string"}}}
    package: dict[str, Any] = {
        "name": "lacuna",
        "contributes": {"commands": [], "configuration": [own]},
        "capabilities": {
            "virtualWorkspaces": False,
            "untrustedWorkspaces": {"supported": "limited", "restrictedConfigurations": ["lacuna.server.path"]},
        },
    }
    once = settings_schema.with_configuration(package)
    assert once["contributes"]["configuration"] == [own, settings_schema.vscode_configuration()]
    assert once["capabilities"]["virtualWorkspaces"] is False
    restricted = once["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    assert restricted == ["lacuna.server.path", *settings_schema.vscode_restricted()]
    assert settings_schema.with_configuration(once) == once
    stale = json.loads(json.dumps(once))
    stale["contributes"]["configuration"][1]["properties"] = {"lacuna.gone": {"type": "string"}}
    assert settings_schema.with_configuration(stale) == once


def test_texts_of_settings_that_are_gone_go_too() -> None:
    texts = settings_schema.with_texts({"lacuna.command": "Rewrite", "lacuna.settings.gone": "Gone"})
    assert texts == {"lacuna.command": "Rewrite", **settings_schema.vscode_texts()}


def test_the_lua_types_nest_as_the_options_do() -> None:
    text = settings_schema.lua_types()
    assert text.startswith("---@meta\n")
    top = text.split("---@class lacuna.Settings\n")[1].split("\n\n")[0]
    assert "---@field inlineCompletion? lacuna.Settings.inlineCompletion" in top.splitlines()
    inner = text.split("---@class lacuna.Settings.inlineCompletion\n")[1].split("\n\n")[0]
    assert len(inner.splitlines()) == sum(rule.path.startswith("inlineCompletion.") for _, _, rule in rules())
    assert "---@field positionEncoding? 'auto'|'utf-16' " in text


def test_the_help_has_a_tag_for_every_setting_and_fits_its_width() -> None:
    text = settings_schema.vim_help()
    for _, _, rule in rules():
        assert text.count(f"*lacuna-settings-{rule.path}*") == 1
    assert max(map(len, text.splitlines())) <= 78
    assert text.endswith("ft=help:norl:\n")


def test_write_brings_a_checkout_up_to_date(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# A\n\n| setting | default | meaning |\n|---|---|---|\n| old |\n\nend\n")
    assert settings_schema.write(tmp_path) == [Path("README.md")]
    assert (tmp_path / "README.md").read_text() == f"# A\n\n{markdown_table()}\nend\n"
    (tmp_path / "editors/vscode").mkdir(parents=True)
    (tmp_path / "editors/vscode/package.json").write_text("{}")
    (tmp_path / "editors/nvim/lua/lacuna").mkdir(parents=True)
    assert len(settings_schema.write(tmp_path)) == 5
    package = json.loads((tmp_path / "editors/vscode/package.json").read_text())
    assert package["contributes"]["configuration"] == [settings_schema.vscode_configuration()]
    assert (tmp_path / "editors/nvim/doc/lacuna-settings.txt").read_text() == settings_schema.vim_help()


def test_a_readme_without_a_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="has no table"):
        settings_schema.with_table("# Nothing here\n")


def test_the_command_prints_one_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert settings_schema.main(["lua"]) == 0
    assert capsys.readouterr().out == settings_schema.lua_types()
    assert settings_schema.main(["xml"]) == 2
    assert "usage:" in capsys.readouterr().err
