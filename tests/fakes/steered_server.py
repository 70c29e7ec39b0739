"""Stands for `lacuna`, steered by a folder while it runs: `python -m tests.fakes.steered_server FOLDER lsp`.

An editor starts its server itself, so its tests have no line to it; they write `FOLDER/script.json` instead:
`{"engine": "scripted" | "process" | "model", "environment": {...}, "replies": [{"kind", "when", ...}]}`.

* `scripted`: a scripted engine. The replies are read anew at every request, and the first that fits answers it: one
  whose `kind` (`fill` or `rewrite`, either when absent) is the request's and whose `when` (any when absent) ends a
  fill's prefix or stands in a rewrite's instruction. None that fits is an empty text. `further` are the texts of
  further holes; the other members are those of `scripted_server`.
* `process`: a real engine process around `tests.fakes.scripted_core`.
* `model`: nothing scripted, this process becomes `python -m lsp_server`.

`engine` and `environment` are read when the server starts. `FOLDER/seen.jsonl` gets a line for every request, every
cancellation and every start. Any other command than `lsp` does what `"commands": {"doctor --json": {"out", "err",
"code", "line_s", "page"}}` says of it, or of its first word: it prints `out`, a line every `line_s` seconds, then `err`
to the other stream; with `page` it writes the page of a trace where `--out` says. Where nothing is said of it, it is
the real one. What it is given on its standard input is noted when its arguments have a `-`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from engine.protocol.messages import Done, Draft, Fill, Found, Rewrite
from engine.trace.page import render
from lsp_server.__main__ import set_up_logging
from lsp_server.engine_client import EngineProcess, Patience
from lsp_server.server import LacunaServer, create_server
from lsp_server.transport import serve_stdio
from tests.fakes.fake_engine import FakeEngine, Reply
from tests.fakes.scripted_server import engine_from
from tests.fakes.traces import recording


@dataclass
class SteeredEngine(FakeEngine):
    """A `FakeEngine` whose replies stand in `folder/script.json`."""

    folder: Path = field(default_factory=Path)

    async def submit(
        self,
        request: Fill | Rewrite,
        on_draft: Callable[[Draft], None] | None = None,
        *,
        on_found: Callable[[Found], None] | None = None,
        wait: bool = False,
    ) -> Done:
        note(self.folder, {"event": "request", "type": type(request).__name__} | asdict(request))
        self.replies = replies_to(request, read_script(self.folder))
        self._taken = 0
        try:
            return await super().submit(request, on_draft, on_found=on_found, wait=wait)
        except asyncio.CancelledError:
            note(self.folder, {"event": "cancelled", "id": request.id})
            raise


def replies_to(request: Fill | Rewrite, script: Mapping[str, Any]) -> Sequence[Reply]:
    """What a script says to a request: one reply for each hole."""
    found: Mapping[str, Any] = next((raw for raw in script.get("replies", []) if _fits(raw, request)), {})
    reply = {name: value for name, value in found.items() if name not in ("kind", "when", "further")}
    further = [reply | {"text": text} for text in found.get("further", [])]
    return engine_from({"replies": [reply, *further]}).replies


def _fits(raw: Mapping[str, Any], request: Fill | Rewrite) -> bool:
    when, kind = str(raw.get("when", "")), raw.get("kind", "")
    if isinstance(request, Fill):
        return kind in ("", "fill") and request.prefix.endswith(when)
    return kind in ("", "rewrite") and when in request.instruction


def read_script(folder: Path) -> dict[str, Any]:
    """The script as it stands in the folder now."""
    script = json.loads((folder / "script.json").read_text(encoding="utf-8"))
    assert isinstance(script, dict)
    return script


def note(folder: Path, event: Mapping[str, Any]) -> None:
    """One more line in `folder/seen.jsonl`; of several servers each writes whole lines."""
    with (folder / "seen.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"pid": os.getpid()} | dict(event)) + "\n")


def steered_server(folder: Path, script: Mapping[str, Any]) -> LacunaServer:
    """The real server around the engine that `script` names."""
    if script.get("engine") == "process":
        command = [sys.executable, "-m", "tests.fakes.scripted_core", "--model", "scripted"]
        return create_server(EngineProcess("scripted", command=command, patience=Patience(0.05)))
    return create_server(SteeredEngine(folder=folder))


def main(arguments: list[str]) -> int:
    """Be `lacuna` with the arguments behind the folder, and return the exit code."""
    folder, command = Path(arguments[0]), arguments[1:]
    script = read_script(folder)
    os.environ.update(script.get("environment", {}))
    note(folder, {"event": "start", "engine": script.get("engine", "scripted"), "arguments": command})
    if command[:1] != ["lsp"]:
        return _other_command(folder, command, script.get("commands", {}))
    if script.get("engine") == "model":
        os.execv(sys.executable, [sys.executable, "-m", "lsp_server", *command[1:]])
    set_up_logging("WARNING")
    return serve_stdio(lambda: steered_server(folder, script))


def _other_command(folder: Path, command: list[str], scripted: Mapping[str, Any]) -> int:
    found = scripted.get(" ".join(command), scripted.get(command[0] if command else ""))
    if found is None:
        os.execv(sys.executable, [sys.executable, "-m", "engine.cli.main", *command])
    if "-" in command:
        note(folder, {"event": "input", "text": sys.stdin.read()})
    for line in found.get("out", "").splitlines(keepends=True):
        sys.stdout.write(line)
        sys.stdout.flush()
        time.sleep(found.get("line_s", 0))
    sys.stderr.write(found.get("err", ""))
    if found.get("page"):
        Path(command[command.index("--out") + 1]).write_text(render(recording()), encoding="utf-8")
    return int(found.get("code", 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
