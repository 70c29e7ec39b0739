"""What stands in the tree about settings is what `lsp_server/settings.py` says.

`python -m lsp_server.settings_schema write` mends what these find.
"""

from __future__ import annotations

import json

from lsp_server import settings_schema
from tests.rules.sources import ROOT


def test_the_readme_shows_every_setting() -> None:
    text = (ROOT / settings_schema.README).read_text(encoding="utf-8")
    assert settings_schema.with_table(text) == text


def test_vs_code_is_told_of_every_setting() -> None:
    if not (ROOT / "editors/vscode").exists():
        return
    package = json.loads((ROOT / settings_schema.VSCODE_PACKAGE).read_text(encoding="utf-8"))
    assert settings_schema.with_configuration(package) == package
    texts = json.loads((ROOT / settings_schema.VSCODE_TEXTS).read_text(encoding="utf-8"))
    assert settings_schema.with_texts(texts) == texts


def test_neovim_is_told_of_every_setting() -> None:
    if not (ROOT / "editors/nvim").exists():
        return
    assert (ROOT / settings_schema.LUA_TYPES).read_text(encoding="utf-8") == settings_schema.lua_types()
    assert (ROOT / settings_schema.VIM_HELP).read_text(encoding="utf-8") == settings_schema.vim_help()
