"""The real server, which starts a real engine process around a scripted core.

`python -m tests.fakes.daemon_server 2.5`: so many seconds without a job the engine stays; `LACUNA_HOME` says where both
live.
"""

from __future__ import annotations

import sys

from lsp_server.__main__ import set_up_logging
from lsp_server.engine_client import EngineProcess, Patience
from lsp_server.server import create_server
from lsp_server.transport import serve_stdio


def main() -> int:
    """Serve over stdio and return the exit code."""
    set_up_logging("WARNING")
    command = [sys.executable, "-m", "tests.fakes.scripted_core", "--model", "scripted", "--idle-limit-s", sys.argv[1]]
    return serve_stdio(create_server(EngineProcess("scripted", command=command, patience=Patience(0.05))))


if __name__ == "__main__":
    sys.exit(main())
