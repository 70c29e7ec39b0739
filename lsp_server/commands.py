"""The commands of `workspace/executeCommand` by name: `initialize` announces them, `execute_command` runs them."""

from __future__ import annotations

from lsp_server.actions import APPLY

REWRITE = "lacuna.rewrite"
STATUS = "lacuna.status"
ACCEPTED = "lacuna.accepted"
COMMANDS = (REWRITE, APPLY, STATUS, ACCEPTED)
