"""`python -m lsp_server`: the server over stdio, or `--tcp HOST:PORT`. Owns the command line and the logging setup."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from lsp_server import __version__
from lsp_server.transport import serve_stdio, serve_tcp

if TYPE_CHECKING:
    from lsp_server.server import LacunaServer

DEFAULT_MODEL = "qwen2.5-coder-0.5b"


def main(argv: Sequence[str] | None = None) -> int:
    """Serve one editor and return the process's exit code: 0 after a proper shutdown, 1 without, 2 for bad usage."""
    options = _parser().parse_args(argv)
    set_up_logging(options.log_level)
    make_server = partial(_server, options.model)
    if options.tcp is None:
        return serve_stdio(make_server, options.editor_pid)
    from engine.protocol.address import is_loopback  # not before the first answer over stdio

    host, port = options.tcp
    if not is_loopback(host):
        print(  # noqa: T201
            f"{host} can be reached from other machines, which could then read your documents on their way; "
            "use 127.0.0.1, and an encrypted tunnel to it (`ssh -L`) from elsewhere",
            file=sys.stderr,
        )
        return 2
    try:
        return serve_tcp(make_server, host, port)
    except OSError as error:
        print(f"cannot listen on {host}:{port}: {error.strerror}; try another port", file=sys.stderr)  # noqa: T201
        return 2


def _server(model: str) -> LacunaServer:
    """The server, which is imported here: `initialize` is answered before (see `transport`)."""
    from engine.protocol.model_name import as_written
    from lsp_server.remote.factory import engine_of
    from lsp_server.remote.selected import SelectedEngine
    from lsp_server.server import create_server

    local = as_written(model)
    return create_server(SelectedEngine(lambda choice: engine_of(choice, local)))


def set_up_logging(level: str) -> None:
    """Log to stderr. pygls writes whole documents to its log below WARNING, so it never gets a lower level."""
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("lsp_server").setLevel(level)
    logging.getLogger("pygls").setLevel(logging.WARNING)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lacuna lsp", description="Lacuna's language server. Editors start it; by default it speaks over stdio."
    )
    parser.add_argument("--version", action="version", version=f"lacuna {__version__}")
    # Many editors pass this by habit; it is what happens anyway.
    parser.add_argument("--stdio", action="store_true", help="serve over stdin and stdout (the default)")
    parser.add_argument(
        "--tcp", type=_host_and_port, metavar="HOST:PORT", help="serve one TCP connection from this machine"
    )
    parser.add_argument(
        "--model", default=DEFAULT_MODEL, help="the engine's model, a name or a path (default: %(default)s)"
    )
    parser.add_argument("--clientProcessId", type=int, dest="editor_pid", metavar="PID", help="end with this process")
    parser.add_argument(
        "--log-level", default="WARNING", choices=("DEBUG", "INFO", "WARNING", "ERROR"), help="for stderr"
    )
    return parser


def _host_and_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError("give HOST:PORT, as in 127.0.0.1:9257")
    return host.strip("[]") or "127.0.0.1", int(port)


if __name__ == "__main__":
    sys.exit(main())
