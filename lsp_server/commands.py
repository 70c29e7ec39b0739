"""The commands of `workspace/executeCommand` by name: `initialize` announces them, `execute_command` runs them."""

from __future__ import annotations

from lsp_server import acceptance
from lsp_server.actions import APPLY

REWRITE = "lacuna.rewrite"
STATUS = "lacuna.status"
COMMANDS = (REWRITE, APPLY, STATUS, acceptance.COMMAND)
