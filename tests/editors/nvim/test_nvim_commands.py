"""`:Lacuna` in a real Neovim: pausing, models, the trace, what is told of the engine, and the help."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from tests.fakes.fake_command import calls, choosing, fake_command, on_path
from tests.fakes.neovim import PLUGIN, Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

ADD = {"replies": [{"text": "(a, b):"}]}


def test_snoozing_stops_ghost_text_until_resumed(start: Start, write: Write) -> None:
    editor = start(ADD)
    editor.open(write("x = 1\n"))
    editor.command("Lacuna snooze 5")
    assert editor.lua("return require('lacuna').statusline()") == "Lacuna: snoozing, 5 min"
    editor.keys("odef add")
    editor.settle()
    assert editor.server_request("test/engine")["requests"] == []
    editor.command("Lacuna resume")
    editor.keys("s")
    editor.wait_shown("def adds(a, b):")
    editor.keys("<Esc>")
    editor.command("Lacuna snooze 0.002")
    editor.wait(lambda: "snoozing" not in editor.lua("return require('lacuna').statusline()"))


def test_a_language_is_turned_off_and_on_for_the_server_too(start: Start, write: Write) -> None:
    editor = start(ADD, more='vim.lsp.config("lacuna", { settings = { lacuna = { disabledLanguages = { "lua" } } } })')
    editor.open(write("x = 1\n"))
    editor.command("Lacuna language")
    assert editor.lua("return require('lacuna').statusline()") == "Lacuna: off in python"
    off = "return vim.lsp.get_clients()[1].settings.lacuna.disabledLanguages"
    assert editor.lua(off) == ["lua", "python"]
    editor.keys("odef add")
    editor.settle()
    assert editor.server_request("test/engine")["requests"] == []
    editor.keys("<Esc>")
    editor.command("Lacuna language python")
    assert editor.lua(off) == ["lua"]
    editor.keys("As")
    editor.wait_shown("def adds(a, b):")


def test_the_state_of_the_engine_is_in_the_status_line(start: Start, write: Write) -> None:
    editor = start(ADD, more="vim.o.laststatus = 2; vim.o.statusline = \"%f %{v:lua.require('lacuna').statusline()}\"")
    editor.open(write("x = 1\n"))
    editor.wait_shown("a.py Lacuna")
    for state, shown in (("loading", "Lacuna: loading"), ("failed", "Lacuna: failed"), ("ready", "Lacuna: ready")):
        editor.server_notify("test/state", {"state": state, "message": "the model is not here"})
        editor.wait_shown(f"a.py {shown}")
        if state == "failed":
            editor.command("Lacuna status")
            assert "model is not here" in editor.told()[-1]


def test_a_model_that_is_not_here_is_fetched_after_a_yes_and_then_used(
    start: Start, write: Write, tmp_path: Path
) -> None:
    models = [
        {"name": "small", "status": "here"},
        {"name": "large", "status": "not here", "size": 7_000_000},
        {"name": "huge", "status": "later", "loadable": False, "size": None},
    ]
    body = f"""
if arguments[:2] == ["models", "list"]:
    print({json.dumps(json.dumps({"models": models}))})
elif arguments[:2] == ["models", "pull"]:
    print(json.dumps({{"event": "progress", "done": 3, "total": 4}}), flush=True)
    while not (here / "go").exists():
        pass
    print(json.dumps({{"event": "done", "path": "/m"}}))
else:
    sys.exit(1)
"""
    folder = fake_command(tmp_path / "bin", body)
    editor = start(ADD, more=on_path(folder))
    editor.open(write("x = 1\n"))
    choosing(editor, 2)
    editor.command("Lacuna model")
    asked = editor.wait(lambda: editor.lua("return #_G.asked == 2 and _G.asked"))
    assert asked[0]["items"] == ["small, here", "large, not here, 7 MB", "huge, later"]
    assert [arguments[:2] for arguments, _ in calls(folder)] == [["models", "list"]]
    choosing(editor, 3, 1)
    editor.command("Lacuna model")
    editor.wait(lambda: any("huge is known" in text for text in editor.told()))
    choosing(editor, 2, 1)
    editor.command("Lacuna model")
    editor.wait(lambda: editor.lua("return require('lacuna').statusline()") == "Lacuna: fetching large 75 %")
    (folder / "go").touch()
    editor.wait(lambda: "Lacuna: the model is large" in editor.told())
    assert calls(folder)[-1][0] == ["models", "pull", "large", "--json"]
    editor.lua("vim.g.lacuna = {}")
    assert editor.lua("return require('lacuna.server').command()")[-3:] == ["lsp", "--model", "large"]


def test_a_failed_fetch_says_what_to_do(start: Start, write: Write, tmp_path: Path) -> None:
    body = """
print(json.dumps({"event": "error", "message": "the disk is full", "remedy": "Free 5 GB."}))
sys.exit(1)
"""
    editor = start(ADD, more=on_path(fake_command(tmp_path / "bin", body)))
    editor.open(write("x = 1\n"))
    editor.lua("require('lacuna.models').fetch('large')")
    editor.wait(lambda: "Lacuna: large was not fetched: the disk is full. Free 5 GB." in editor.told())
    assert editor.lua("return require('lacuna').statusline()").startswith("Lacuna")


def test_the_trace_is_of_the_text_as_it_is_now_and_opens(start: Start, write: Write, tmp_path: Path) -> None:
    folder = fake_command(tmp_path / "bin", "")
    editor = start(ADD, more=on_path(folder))
    editor.open(write("é = 1\n"))
    editor.lua("vim.ui.open = function(path) _G.opened = path end")
    editor.keys("Oy = 2<Esc>j$")
    editor.command("Lacuna trace")
    page = editor.wait(lambda: editor.lua("return _G.opened"))
    assert page.endswith("a.py.trace.html")
    ((arguments, text),) = calls(folder)
    assert arguments == ["trace", "-", "--at", "2:5", "--out", page, "--language", "python"]
    assert text == "y = 2\né = 1\n"


def test_an_unknown_subcommand_names_those_there_are_and_they_complete(start: Start) -> None:
    editor = start(ADD)
    editor.command("Lacuna fly")
    assert "rewrite" in editor.told()[-1]
    completed = editor.lua("return vim.fn.getcompletion('Lacuna re', 'cmdline')")
    assert completed == ["refine", "restart", "resume", "retry", "rewrite"]
    assert editor.lua("return vim.fn.getcompletion('Lacuna hunk a', 'cmdline')") == ["accept"]


def test_a_range_and_words_rewrite_without_a_question(start: Start, write: Write) -> None:
    editor = start({"replies": [{"kind": "rewrite", "about": "Use two", "text": "x = 2"}]})
    editor.open(write("x = 1\ny = 1\n"))
    editor.command("1Lacuna rewrite Use two")
    editor.wait_shown("1 change")
    editor.command("Lacuna accept")
    editor.wait_lines("x = 2", "y = 1")


def test_every_option_key_and_command_has_its_place_in_the_help(start: Start) -> None:
    editor = start(ADD)
    folder = PLUGIN / "doc"
    editor.lua("vim.opt.runtimepath:prepend(...)", str(PLUGIN))
    text = (folder / "lacuna.txt").read_text(encoding="utf-8")
    settings = (folder / "lacuna-settings.txt").read_text(encoding="utf-8")
    tags = set(re.findall(r"\*(\S+)\*", text + settings))
    names = editor.lua("return vim.tbl_keys(require('lacuna.commands').subcommands)")
    assert {f":Lacuna-{name}" for name in names} <= tags
    keys = editor.lua("return vim.tbl_keys(require('lacuna.options').defaults.keys)")
    defaults = editor.lua("return require('lacuna.options').defaults.keys")
    assert all(f"<Plug>(lacuna-{name.replace('_', '-')})" in tags or name == "accept_always" for name in keys)
    assert all(defaults[name] in text for name in keys)
    options = {*editor.lua("return vim.tbl_keys(require('lacuna.options').defaults)"), "python", "cmd", "model"}
    assert {f"lacuna-option-{name}" for name in options} <= tags
    groups = editor.lua("return vim.tbl_keys(require('lacuna.highlights').links)")
    assert {f"hl-{name}" for name in groups} <= tags
    # Every reference leads somewhere: in this plug-in's help, in Neovim's own, or in that of a newer one.
    complete = "local tag = ... return vim.tbl_contains(vim.fn.getcompletion(tag, 'help'), tag)"
    references = set(re.findall(r"\|(\S+?)\|", text)) - tags - {"vim.lsp.inline_completion"}
    assert [reference for reference in references if not editor.lua(complete, reference)] == []


def test_the_help_has_tags_and_none_twice(start: Start, tmp_path: Path) -> None:
    editor = start(ADD)
    folder = tmp_path / "doc"
    folder.mkdir()
    for file in (PLUGIN / "doc").glob("*.txt"):
        (folder / file.name).write_bytes(file.read_bytes())
    # It raises at a tag that stands twice.
    editor.command(f"helptags {folder}")
    tags = (folder / "tags").read_text(encoding="utf-8")
    assert "\nlacuna-options\t" in tags
    assert "\nlacuna-settings\t" in tags
