"""Finding the server from a real Neovim, starting it, installing it: never without a yes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fakes.fake_command import choosing, fake_command, on_path
from tests.fakes.neovim import PLUGIN, ROOT, Neovim

Write = Callable[..., Path]
Start = Callable[..., Neovim]

FIND = "local found, problem = require('lacuna.server').find(...) return { found or false, problem or false }"


def environment(folder: Path) -> Path:
    """A virtual environment, as far as the plug-in looks: one with a command `lacuna`."""
    folder.mkdir(parents=True)
    fake_command(folder / "bin", "")
    return folder


def found(editor: Neovim, root: Path) -> tuple[Any, Any]:
    """What the plug-in finds for a project: the command's first word, and the problem."""
    result, problem = editor.lua(FIND, str(root))
    return (result["cli"][0] if result else None), problem


def test_the_order_in_which_a_server_is_found(start: Start, tmp_path: Path) -> None:
    project = tmp_path / "project"
    own, active = environment(project / ".venv"), environment(tmp_path / "active")
    path = fake_command(tmp_path / "path", "")
    editor = start(more=on_path(path), options={"enable": False})
    # The project's own comes before the path, but only when it has been trusted.
    assert found(editor, project)[0] == "lacuna"
    editor.lua("require('lacuna.trust').add(...)", str(own))
    assert found(editor, project) == (str(own / "bin" / "lacuna"), False)
    (own / "bin" / "lacuna").write_text("#!/bin/sh\necho another\n", encoding="utf-8")
    assert found(editor, project)[0] == "lacuna"
    editor.lua("vim.env.VIRTUAL_ENV = ...", str(active))
    assert found(editor, project)[0] == str(active / "bin" / "lacuna")
    editor.lua("vim.g.lacuna = { python = ... }", sys.executable)
    command = editor.lua("return require('lacuna.server').command()")
    assert command[0].startswith(str(Path(sys.executable).parent))
    assert command[-1] == "lsp"
    editor.lua("vim.g.lacuna = { python = '/nowhere/python' }")
    assert "/nowhere/python" in found(editor, project)[1]


def test_without_a_server_it_is_said_once_and_nothing_is_run(start: Start, write: Write, tmp_path: Path) -> None:
    editor = start(env={"PATH": "/usr/bin:/bin"})
    editor.open(write("x = 1\n"), waits=False)
    editor.open(write("y = 1\n", "b.py"), waits=False)
    editor.wait(editor.told)
    assert len(editor.told()) == 1
    assert ":Lacuna install" in editor.told()[0]
    assert not (editor.home / "data" / "nvim" / "lacuna").exists()


def test_the_projects_own_server_runs_after_a_yes(start: Start, write: Write) -> None:
    file = write("x = 1\n")
    project = file.parent
    (project / ".git").mkdir()
    script = json.dumps({"replies": [{"text": "(a, b):"}]})
    (project / ".venv" / "bin").mkdir(parents=True)
    lacuna = project / ".venv" / "bin" / "lacuna"
    lacuna.write_text(f"#!/bin/sh\nexec {sys.executable} -m tests.fakes.scripted_server '{script}' \"$@\"\n")
    lacuna.chmod(0o755)
    editor = start(env={"PATH": "/usr/bin:/bin"})
    editor.open(file, waits=False)
    editor.wait(lambda: any(":Lacuna trust" in text for text in editor.told()))
    choosing(editor, 2)
    editor.command("Lacuna trust")
    assert editor.lua("return #vim.lsp.get_clients()") == 0
    choosing(editor, 1)
    editor.command("Lacuna trust")
    editor.wait_ready()
    editor.keys("odef add")
    editor.wait_shown("def add(a, b):")


def test_the_exact_commands_are_shown_and_run_only_when_asked(start: Start, tmp_path: Path) -> None:
    editor = start(env={"PATH": "/usr/bin:/bin"}, options={"enable": False})
    own = editor.home / "data" / "nvim" / "lacuna" / "venv"
    choosing(editor, 2)
    editor.command("Lacuna install")
    (question,) = editor.lua("return _G.asked")
    assert f"-m' 'venv' '{own}'" in question["prompt"]
    assert f"'{own}/bin/pip' 'install' '{ROOT}'" in question["prompt"]
    assert not own.exists()
    # A Python of the test's own notes what it would have done, and makes what the second command needs.
    fake = tmp_path / "python"
    fake.mkdir()
    for name in ("python3", "python"):
        script = fake / name
        pip = f"{own}/bin/pip"
        script.write_text(
            f'#!/bin/sh\necho "python $@" >> {fake}/calls\nmkdir -p {own}/bin\n'
            f"printf '#!/bin/sh\\necho \"pip $@\" >> {fake}/calls\\n' > {pip}\nchmod +x {pip}\n",
            encoding="utf-8",
        )
        script.chmod(0o755)
    editor.lua("vim.env.PATH = ... .. ':' .. vim.env.PATH", str(fake))
    choosing(editor, 1)
    editor.command("Lacuna install")
    editor.wait(lambda: any("the server is installed" in text for text in editor.told()))
    calls = (fake / "calls").read_text(encoding="utf-8").splitlines()
    assert calls == [f"python -m venv {own}", f"pip install {ROOT}"]


def test_only_the_plug_in_without_its_checkout_says_how_to_go_on(start: Start, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    for file in PLUGIN.rglob("*.lua"):
        target = copied / file.relative_to(PLUGIN)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    editor = start(options={"enable": False})
    editor.lua("vim.opt.runtimepath:prepend(...) package.loaded['lacuna.install'] = nil", str(copied))
    editor.command("Lacuna install")
    assert "vim.g.lacuna.python" in editor.told()[-1]


def test_options_that_make_no_sense_are_named_and_left_out(start: Start) -> None:
    editor = start(options={"enable": False, "pyhton": "x", "ghost_text": "yes", "keys": {"acept": "<Tab>"}})
    told = editor.told()
    assert [text.split(":")[1].strip() for text in told] == [
        "vim.g.lacuna.ghost_text",
        "vim.g.lacuna.keys.acept",
        "vim.g.lacuna.pyhton",
    ]
    assert editor.lua("return require('lacuna.options').get().ghost_text") is True


def test_a_server_that_is_restarted_takes_the_new_command(start: Start, write: Write) -> None:
    editor = start({"replies": [{"text": "(a):"}]})
    editor.open(write("x = 1\n"))
    first = editor.lua("return vim.lsp.get_clients()[1].id")
    editor.command("Lacuna restart")
    editor.wait(lambda: editor.lua("local c = vim.lsp.get_clients({bufnr = 0})[1] return c and c.id ~= ...", first))
    editor.wait_ready()
    editor.keys("odef add")
    editor.wait_shown("def add(a):")


def test_the_health_check_tells_what_it_found(start: Start, write: Write, tmp_path: Path) -> None:
    body = """
if "--version" in arguments:
    print("lacuna 0.1.0")
else:
    print(json.dumps({"ok": False, "checks": [
        {"subject": "python", "verdict": "ok", "finding": "3.11", "remedy": ""},
        {"subject": "memory", "verdict": "fault", "finding": "1 MB", "remedy": "buy some"},
        {"subject": "kernel", "verdict": "warning", "finding": "none", "remedy": "install g++"},
    ]}))
    sys.exit(1)
"""
    folder = fake_command(tmp_path / "bin", body)
    editor = start({"replies": [{"text": "("}]}, more=on_path(folder))
    editor.open(write("x = 1\n"))
    editor.command("Lacuna doctor")
    text = "\n".join(editor.lines())
    assert "OK lacuna 0.1.0, from the path" in text
    assert "OK a server runs for 1 buffer" in text
    assert "OK <Tab> accepts ghost text" in text
    assert "OK python: 3.11" in text
    assert "ERROR memory: 1 MB" in text
    assert "buy some" in text
    assert "WARNING kernel: none" in text
