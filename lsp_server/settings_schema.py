"""The settings' table in the forms that editors and people read: one source, so that none of them can be wrong.

`python -m lsp_server.settings_schema FORM` prints one form, `python -m lsp_server.settings_schema write` brings those
in a checkout up to date: the README's table, VS Code's `contributes.configuration` and its texts, Neovim's types and
its help. Everything but `main` and `write` is pure.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lsp_server.own_actions import LONGEST_INSTRUCTION, LONGEST_TITLE, MOST_ACTIONS, MOST_LANGUAGES
from lsp_server.settings import LONGEST_ITEM, Rule, Value, markdown_table, rules

SECTION = "lacuna"
# The generated block of `contributes.configuration` is the one with this title; others beside it are the client's own.
VSCODE_TITLE = "%lacuna.settings%"
_TEXT_KEY = "lacuna.settings"
# VS Code's preview of changes comes with nothing ticked, so that "Apply" alone does nothing: there undoing is easier.
_VSCODE_DEFAULTS: Mapping[str, Value] = {"rewrite.confirm": False}
_TABLE = re.compile(r"^\| setting \| default \| meaning \|\n(?:\|.*\n)+", re.MULTILINE)
# As `settings` judges a folder, on whichever system: one package of an editor's extension serves all of them.
_WHOLE_PATH = r"^(/|~([/\\]|$)|[A-Za-z]:[/\\]|\\\\)[^\r\n]*$"
_MADE = "Made by `python -m lsp_server.settings_schema write`; change lsp_server/settings.py instead."
_HELP_WIDTH = 78
_HELP_NAME = "lacuna-settings.txt"

README = Path("README.md")
VSCODE_PACKAGE = Path("editors/vscode/package.json")
VSCODE_TEXTS = Path("editors/vscode/package.nls.json")
LUA_TYPES = Path("editors/nvim/lua/lacuna/settings_meta.lua")
VIM_HELP = Path("editors/nvim/doc") / _HELP_NAME


def json_schema(default: Value, rule: Rule) -> dict[str, Any]:
    """The JSON Schema of one setting, with its default and without a description."""
    return {**_type(default, rule), "default": list(default) if isinstance(default, tuple) else default}


def vscode_configuration() -> dict[str, Any]:
    """A block of `contributes.configuration`; its texts are those of `vscode_texts`."""
    properties = {
        f"{SECTION}.{rule.path}": {
            **json_schema(_VSCODE_DEFAULTS.get(rule.path, default), rule),
            "scope": _vscode_scope(rule),
            "markdownDescription": f"%{_TEXT_KEY}.{rule.path}%",
        }
        for _, default, rule in rules()
    }
    return {"title": VSCODE_TITLE, "properties": properties}


def vscode_texts() -> dict[str, str]:
    """The English texts of `vscode_configuration`, for `package.nls.json`."""
    return {_TEXT_KEY: "Suggestions"} | {f"{_TEXT_KEY}.{rule.path}": rule.doc for _, _, rule in rules()}


def vscode_restricted() -> list[str]:
    """The settings that a workspace nobody trusts may not choose."""
    return [f"{SECTION}.{rule.path}" for _, _, rule in rules() if rule.needs_trust]


def lua_types() -> str:
    """LuaCATS classes of the settings, nested as they are sent, as a file that is never run."""
    lines = ["---@meta", f"-- {_MADE}", ""]
    lines += ["---@class lacuna.OwnAction", "---@field title string", "---@field instruction string"]
    lines += ["---@field languages? string[] LSP language ids; without them for all languages", ""]
    groups: dict[str, list[str]] = {"": []}
    for _, default, rule in rules():
        group, _, name = rule.path.rpartition(".")
        if group not in groups:
            groups[group] = []
            groups[""].append(f"---@field {group}? lacuna.Settings.{group}")
        groups[group].append(f"---@field {name}? {_lua_type(default, rule)} {rule.meaning} Default: {_lua(default)}")
    for group, entries in groups.items():
        lines += [f"---@class lacuna.Settings{'.' + group if group else ''}", *entries, ""]
    return "\n".join(lines)


def vim_help() -> str:
    """A help file with one tag for every setting, `lacuna-settings-NAME`."""
    lines = [f"*{_HELP_NAME}*  The settings of Lacuna", "", *textwrap.wrap(_MADE, _HELP_WIDTH), "", "=" * _HELP_WIDTH]
    lines += ["SETTINGS".ljust(_HELP_WIDTH - 18) + " *lacuna-settings*", ""]
    for _, default, rule in rules():
        tag = f"*lacuna-settings-{rule.path}*"
        lines += [tag.rjust(_HELP_WIDTH), f"{rule.path}  (default `{_lua(default)}`)"]
        lines += [*textwrap.wrap(rule.meaning, _HELP_WIDTH - 4, initial_indent="    ", subsequent_indent="    "), ""]
    return "\n".join([*lines, f" vim:tw={_HELP_WIDTH}:ts=8:noet:ft=help:norl:", ""])


FORMS: Mapping[str, Callable[[], str]] = {
    "readme": markdown_table,
    "vscode": lambda: _pretty(vscode_configuration()),
    "vscode-texts": lambda: _pretty(vscode_texts()),
    "vscode-restricted": lambda: _pretty(vscode_restricted()),
    "lua": lua_types,
    "vim-help": vim_help,
}


def with_table(readme: str) -> str:
    """`readme` with its table of the settings as it must be. Raises ValueError where it has none."""
    if not _TABLE.search(readme):
        raise ValueError("README.md has no table that begins with `| setting | default | meaning |`")
    return _TABLE.sub(lambda _: markdown_table(), readme, count=1)


def with_configuration(package: Mapping[str, Any]) -> dict[str, Any]:
    """VS Code's `package.json` with the generated block in it, behind the client's own blocks when it is new."""
    contributes = dict(package.get("contributes", {}))
    own = contributes.get("configuration", [])
    blocks = list(own) if isinstance(own, list) else [own]
    places = [place for place, block in enumerate(blocks) if block.get("title") == VSCODE_TITLE]
    if places:
        blocks[places[0]] = vscode_configuration()
    else:
        blocks.append(vscode_configuration())
    contributes["configuration"] = blocks
    return {**package, "contributes": contributes} | {"capabilities": _with_restricted(package)}


def with_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """`package.nls.json` with the settings' texts, and without those of settings that are gone."""
    others = {key: text for key, text in texts.items() if key != _TEXT_KEY and not key.startswith(f"{_TEXT_KEY}.")}
    return others | vscode_texts()


def write(root: Path) -> list[Path]:
    """Bring the forms in the checkout at `root` up to date; the files of an editor that is not there are left out."""
    made = {README: with_table((root / README).read_text(encoding="utf-8"))}
    if (root / VSCODE_PACKAGE).exists():
        made[VSCODE_PACKAGE] = _pretty(with_configuration(_json(root / VSCODE_PACKAGE)))
        made[VSCODE_TEXTS] = _pretty(with_texts(_json(root / VSCODE_TEXTS)))
    if (root / LUA_TYPES).parent.exists():
        made |= {LUA_TYPES: lua_types(), VIM_HELP: vim_help()}
    for path, text in made.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8", newline="\n")
    return sorted(made)


def main(arguments: list[str]) -> int:
    """The command; 2 for a form there is not."""
    if arguments == ["write"]:
        root = Path(__file__).resolve().parent.parent
        sys.stdout.writelines(f"{path}\n" for path in write(root))
        return 0
    if len(arguments) != 1 or arguments[0] not in FORMS:
        sys.stderr.write(f"usage: python -m lsp_server.settings_schema {'|'.join((*FORMS, 'write'))}\n")
        return 2
    sys.stdout.write(FORMS[arguments[0]]())
    return 0


def _vscode_scope(rule: Rule) -> str:
    """Where VS Code lets a setting be written: `machine` is a person's own settings, and no workspace's."""
    if not rule.by_project:
        return "machine"
    return "resource" if rule.by_folder else "window"


def _type(default: Value, rule: Rule) -> dict[str, Any]:
    if isinstance(default, bool):
        return {"type": "boolean"}
    if isinstance(default, int):
        return {"type": "integer", "minimum": rule.least, "maximum": rule.most}
    if isinstance(default, str):
        return {"type": "string"} | ({"maxLength": LONGEST_ITEM} if rule.is_text else {"enum": list(rule.choices)})
    if rule.are_actions:
        return {"type": "array", "maxItems": MOST_ACTIONS, "items": _own_action()}
    pattern = _WHOLE_PATH if rule.are_folders else r"^[^\r\n]*[^\s][^\r\n]*$"
    line = {"type": "string", "maxLength": LONGEST_ITEM, "pattern": pattern}
    return {"type": "array", "maxItems": rule.most_items, "items": line}


def _own_action() -> dict[str, Any]:
    languages = {"type": "array", "maxItems": MOST_LANGUAGES, "items": {"type": "string"}}
    return {
        "type": "object",
        "required": ["title", "instruction"],
        "additionalProperties": False,
        "properties": {
            "title": {"type": "string", "maxLength": LONGEST_TITLE},
            "instruction": {"type": "string", "maxLength": LONGEST_INSTRUCTION},
            "languages": languages,
        },
    }


def _lua_type(default: Value, rule: Rule) -> str:
    if isinstance(default, bool):
        return "boolean"
    if isinstance(default, int):
        return "integer"
    if isinstance(default, str):
        return "string" if rule.is_text else "|".join(f"'{choice}'" for choice in rule.choices)
    return "lacuna.OwnAction[]" if rule.are_actions else "string[]"


def _lua(default: Value) -> str:
    """A default as a Lua literal. Only lists of strings have entries."""
    if isinstance(default, tuple):
        return "{ " + ", ".join(f"'{item}'" for item in default) + " }" if default else "{}"
    return f"'{default}'" if isinstance(default, str) else str(default).lower()


def _with_restricted(package: Mapping[str, Any]) -> dict[str, Any]:
    capabilities = dict(package.get("capabilities", {}))
    trust = dict(capabilities.get("untrustedWorkspaces", {"supported": "limited"}))
    ours = {f"{SECTION}.{rule.path}" for _, _, rule in rules()}
    clients = [name for name in trust.get("restrictedConfigurations", []) if name not in ours]
    trust["restrictedConfigurations"] = clients + vscode_restricted()
    return {**capabilities, "untrustedWorkspaces": trust}


def _json(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
