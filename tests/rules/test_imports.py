"""Who may import whom: `lsp_server → engine.protocol ← engine`, and no torch on the server's side."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.fakes.lsp_messages import frame, note
from tests.rules.sources import ROOT, Source, imported_names, sources

HEAVY = ("torch", "transformers", "numpy", "safetensors", "gguf", "tokenizers", "huggingface_hub")
EDITOR_SIDE = ("lsp_server", "pygls", "lsprotocol")


def is_within(name: str, *packages: str) -> bool:
    """Whether a dotted name is one of the packages or inside one."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def offenders(found: list[Source], *, banned: tuple[str, ...], except_for: tuple[str, ...] = ()) -> list[str]:
    """`path:line imports name` for every banned import."""
    return sorted(
        {
            f"{source.path}:{line} imports {name}"
            for source in found
            for name, line in imported_names(source.tree)
            if is_within(name, *banned) and name != "engine" and not is_within(name, *except_for)
        }
    )


def test_the_server_imports_only_the_protocol_of_the_engine() -> None:
    assert offenders(list(sources("lsp_server")), banned=("engine",), except_for=("engine.protocol",)) == []


def test_the_server_never_imports_what_is_heavy() -> None:
    assert offenders(list(sources("lsp_server")), banned=HEAVY) == []


def test_the_engine_never_imports_the_server() -> None:
    found = [source for source in sources("engine") if not source.path.startswith("engine/cli/")]
    assert offenders(found, banned=EDITOR_SIDE) == []


def test_the_protocol_is_standard_library_and_msgpack() -> None:
    allowed = {"msgpack", "engine"} | set(sys.stdlib_module_names)
    strangers = [
        f"{source.path}:{line} imports {name}"
        for source in sources("engine/protocol")
        for name, line in imported_names(source.tree)
        if name.split(".")[0] not in allowed
    ]
    assert strangers == []
    found = list(sources("engine/protocol"))
    assert offenders(found, banned=("engine",), except_for=("engine.protocol",)) == []


@pytest.mark.parametrize(
    ("path", "banned"),
    [
        ("lsp_server/positions.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/document.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/outline.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/neighbours.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/tokens.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/notebook.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/workspace.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/grammars.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/context.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/edits.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/syntax.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/rewrite_text.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/actions.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/tickets.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/passage.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/holes.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/commented_code.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/instruction_comments.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/rebase.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/splice.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/settings.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/privacy.py", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
        ("lsp_server/ghost_text", ("pygls", "lsprotocol", "asyncio", "os", "time", "logging")),
    ],
)
def test_pure_modules_are_functions_of_values(path: str, banned: tuple[str, ...]) -> None:
    found = [source for source in sources("lsp_server") if source.path.startswith(path)]
    assert found, f"{path} is gone: update this rule"
    assert offenders(found, banned=banned) == []


def test_features_do_not_import_each_other() -> None:
    found = list(sources("lsp_server/features"))
    assert offenders(found, banned=("lsp_server.features",)) == []


def modules_after(code: str, *packages: str, stdin: bytes = b"") -> list[str]:
    """Which of the packages' modules a fresh interpreter has loaded after `code`."""
    report = f"\nimport sys, json\nnames = {packages!r}\n" + (
        "loaded = [n for n in sys.modules if n.split('.')[0] in names]\n"
        "sys.stderr.write('LOADED ' + json.dumps(loaded) + '\\n')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + report], cwd=ROOT, input=stdin, capture_output=True, timeout=60, check=True
    )
    line = next(line for line in done.stderr.decode().splitlines() if line.startswith("LOADED "))
    loaded: list[str] = json.loads(line.removeprefix("LOADED "))
    return loaded


def test_a_server_up_to_initialized_loads_nothing_heavy() -> None:
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"processId": None, "capabilities": {}}},
        note("initialized", {}),
        {"jsonrpc": "2.0", "id": 2, "method": "shutdown"},
        note("exit"),
    ]
    code = (
        "from lsp_server.server import create_server\n"
        "from lsp_server.transport import serve_stdio\n"
        "import lsp_server.__main__\n"
        "from lsp_server.engine_client import EngineProcess\n"
        # An engine that cannot start: what is looked at is this process.
        "engine = EngineProcess('none', command=['false'])\n"
        "assert serve_stdio(lambda: create_server(engine)) == 0\n"
    )
    stdin = b"".join(frame(message) for message in messages)
    assert modules_after(code, *HEAVY, stdin=stdin) == []


def test_initialize_is_answered_before_the_protocol_s_types_are_imported() -> None:
    code = "import lsp_server.__main__, lsp_server.reception"
    assert modules_after(code, "lsprotocol", "pygls", "attrs", "cattrs", "engine", "tree_sitter", "msgpack") == []


def test_the_protocol_loads_neither_side() -> None:
    code = "import engine.protocol.messages, engine.protocol.codec, engine.protocol.address, engine.protocol.errors"
    assert modules_after(code, *HEAVY, *EDITOR_SIDE) == []


def test_the_command_line_loads_both_sides_only_when_needed() -> None:
    assert modules_after("import engine.cli.main", *HEAVY, *EDITOR_SIDE) == []


def test_the_gate_of_a_team_s_engine_loads_no_model_s_libraries() -> None:
    code = "import engine.team.gate, engine.team.options, engine.team.replica, engine.team.resident, engine.cli.team"
    assert modules_after(code, "torch", "transformers", *EDITOR_SIDE) == []
