"""`python -m engine run|start|stop|status`: the same commands as `lacuna engine`, without the rest of the program."""

from __future__ import annotations

from engine.cli.engine import engine

if __name__ == "__main__":
    engine(prog_name="python -m engine")
