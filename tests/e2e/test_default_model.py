"""The whole path with the default model: real server, engine and weights, as an editor and as a shell sees it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcRequestCancelled

from engine.cli.editor import DraftSeen, Editor, OpenFile
from engine.protocol.messages import TEXTS_WEIGHED
from engine.trace.recording import from_data

pytestmark = pytest.mark.model

LOAD_LIMIT_S = 240.0
WHOLE_FILE = {"start": {"line": 0, "character": 0}, "end": {"line": 119, "character": 0}}
CODE = '''def area(width, height):
    """Return the area of a rectangle."""
    return width * height


def perimeter(width, height):
    """Return the perimeter of a rectangle."""
    return 0
'''


@pytest.fixture
def environment(model_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An engine of this test's own on the shared models; stopped afterwards."""
    monkeypatch.setenv("LACUNA_HOME", str(model_home))
    yield model_home
    lacuna("engine", "stop")


def lacuna(*arguments: str, text: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "engine.cli.main", *arguments]
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        command,
        input=text,
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": paths},
        timeout=LOAD_LIMIT_S,
        check=False,
    )


def test_the_demo_applies_every_edit_also_where_git_ignores_its_files(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*\n", encoding="utf-8")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = lacuna("demo", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["model"] == "qwen2.5-coder-0.5b"
    assert report["device"] == "cpu"
    assert [step["name"] for step in report["steps"]] == ["completion", "fill", "rewrite"]
    for step in report["steps"]:
        assert step["ok"], step
        assert step["after"] != step["before"]
        assert 0 < step["ms_first_draft"] <= step["ms_total"]
        # A fill is the best of several texts, and the passes are those of all of them.
        assert 0 < step["passes"] <= step["tokens"] * (TEXTS_WEIGHED * 2 if step["name"] == "fill" else 1)
        assert step["route"] in ("causal", "diffusion")


def test_files_from_the_shell(environment: Path, tmp_path: Path) -> None:
    holes = tmp_path / "shapes.py"
    holes.write_bytes(CODE.replace("return 0", "return <fill>").replace("\n", "\r\n").encode())
    done = lacuna("fill", str(holes), "--write")
    assert done.returncode == 0, done.stderr
    filled = holes.read_bytes().decode()
    assert "<fill>" not in filled
    assert filled.count("\n") == filled.count("\r\n")
    head, _, _ = CODE.replace("\n", "\r\n").rpartition("0\r\n")
    assert filled.startswith(head)

    printed = lacuna(
        "rewrite", "-", "--lines", "1:3", "--instruction", "Rename width to w.", "--language", "python", text=CODE
    )
    assert printed.returncode == 0, printed.stderr
    assert "+def area(w, height):" in printed.stdout

    untouched = tmp_path / "none.py"
    untouched.write_text("x = 1\n")
    refused = lacuna("fill", str(untouched))
    assert refused.returncode == 2
    assert "no hole" in refused.stderr


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ('def fib(n):\n    """Return the n-th Fibonacci number, iteratively."""\n    ', "\n\n\nprint(fib(10))\n"),
        ("class A:\n    def first(self, items):\n        ", "\n\n    def other(self):\n        return 1\n"),
    ],
)
def test_what_is_filled_behind_an_indentation_keeps_it(environment: Path, tmp_path: Path, start: str, end: str) -> None:
    file = tmp_path / "indented.py"
    file.write_text(f"{start}<fill>{end}")
    done = lacuna("fill", str(file), "--json")
    assert done.returncode == 0, done.stderr
    text = json.loads(done.stdout)["text"]
    assert text.startswith(start)
    assert text.endswith(end)
    compile(text, "indented.py", "exec")


SEVERAL = CODE.replace("return 0", "return <fill>").replace("return width * height", "return <fill>")


def test_several_marks_are_one_job_and_their_texts_obey(environment: Path, tmp_path: Path) -> None:
    holes = tmp_path / "shapes.py"
    holes.write_text(SEVERAL)
    done = lacuna("fill", str(holes), "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert len(answer["stats"]) == 1
    assert "<fill>" not in answer["text"]
    assert "return width * height" in answer["text"]
    compile(answer["text"], "shapes.py", "exec")

    limited = lacuna("fill", str(holes), "--must-parse", "--max-lines", "1", "--max-chars", "40", "--json")
    assert limited.returncode == 0, limited.stderr
    text = json.loads(limited.stdout)["text"]
    compile(text, "shapes.py", "exec")
    first, second = re.findall(r"return (.*)", text)
    assert 0 < len(first) <= 40
    assert 0 < len(second) <= 40

    numbers = lacuna("fill", str(holes), "--allow", "0123456789", "--max-chars", "3", "--json")
    assert numbers.returncode == 0, numbers.stderr
    texts = re.findall(r"return(.*)", json.loads(numbers.stdout)["text"])
    assert len(texts) == 2
    assert all(set(text) <= set(" 0123456789") and len(text) <= 4 for text in texts)


def test_a_value_follows_the_schema_or_nothing_is_changed(environment: Path, tmp_path: Path) -> None:
    file, schema = tmp_path / "conf.json", tmp_path / "schema.json"
    file.write_text('{"name": "lacuna", "port": <fill>}\n')
    schema.write_text('{"properties": {"port": {"type": "integer", "minimum": 1024}}}')
    done = lacuna("fill", str(file), "--json-schema", str(schema), "--max-chars", "8", "--write")
    assert done.returncode == 0, done.stderr
    assert json.loads(file.read_text())["port"] >= 1024
    before = file.write_text('{"name": "lacuna", "port": <fill>}\n') and file.read_text()
    schema.write_text('{"required": ["nothing"]}')
    refused = lacuna("fill", str(file), "--json-schema", str(schema), "--max-chars", "8", "--write")
    assert refused.returncode == 1
    assert "no text was found that is JSON of the schema" in refused.stderr
    assert file.read_text() == before


def test_a_trace_shows_what_a_fill_puts_in(environment: Path, tmp_path: Path) -> None:
    """The engine inside `lacuna trace` makes the resident one's text, and the page plays it."""
    holes = tmp_path / "shapes.py"
    holes.write_text(CODE.replace("return 0", "return <fill>"))
    done = lacuna("trace", str(holes), "--out", str(tmp_path / "page.html"))
    assert done.returncode == 0, done.stderr
    data = re.search(r'<script id="recording"[^>]*>(.*?)</script>', (tmp_path / "page.html").read_text(), re.DOTALL)
    assert data
    (gap,) = from_data(json.loads(data[1])).gaps
    shown = "".join(token.text for token in gap.steps[-1].tokens if token.state in ("settled", "new"))
    assert gap.result
    assert gap.result in shown
    assert all(step.entropy is not None for step in gap.steps)
    filled = lacuna("fill", str(holes), "--write")
    assert filled.returncode == 0, filled.stderr
    assert holes.read_text() == f"{gap.before}{gap.result}{gap.after}"


@asynccontextmanager
async def editor(root: Path, drafts: list[DraftSeen]) -> AsyncIterator[Editor]:
    running = Editor(drafts.append)
    await running.start(root, [])
    try:
        await running.wait_ready(LOAD_LIMIT_S)
        yield running
    finally:
        await running.stop()


async def engine_pid(running: Editor) -> int:
    facts: dict[str, Any] = (await running.status())["facts"]
    return int(facts["pid"])


@pytest.mark.asyncio
async def test_two_editors_share_one_engine_and_outlive_its_death(environment: Path, tmp_path: Path) -> None:
    drafts: list[DraftSeen] = []
    file = OpenFile(tmp_path / "shapes.py", CODE, "python")
    start = CODE.index("    return 0")
    async with editor(tmp_path, drafts) as first, editor(tmp_path, []) as second:
        pid = await engine_pid(first)
        assert await engine_pid(second) == pid
        first.open(file)
        edits = await first.code_action(file, start, len(CODE), "refactor.rewrite.lacuna.fill")
        after = file.replaced(edits)
        assert after.startswith(CODE[:start])
        assert after.endswith("\n")
        assert "return 0" not in after
        assert drafts
        assert all(0 <= draft.settled <= len(draft.text) for draft in drafts)

        os.kill(pid, signal.SIGKILL)
        assert await first.inline_completion(file, start) == []
        await first.wait_ready(LOAD_LIMIT_S)
        assert await engine_pid(first) != pid
        assert await first.code_action(file, start, len(CODE), "refactor.rewrite.lacuna.fill") == edits


@pytest.mark.asyncio
async def test_holes_are_filled_by_one_request(environment: Path, tmp_path: Path) -> None:
    file = OpenFile(tmp_path / "shapes.py", SEVERAL, "python")
    async with editor(tmp_path, []) as running:
        running.open(file)
        edits = await running.code_action(file, 0, len(SEVERAL), "refactor.rewrite.lacuna.fill_holes")
        after = file.replaced(edits)
        assert "<fill>" not in after
        assert "return width * height" in after
        compile(after, "shapes.py", "exec")
        status = await running.status()
        assert status["report"]["jobs_done"] == 1


@pytest.mark.asyncio
async def test_a_cancelled_rewrite_stops_the_engine_s_work(environment: Path, tmp_path: Path) -> None:
    drafts: list[DraftSeen] = []
    text = "".join(f"def f{i}(x):\n    return x + {i}\n\n\n" for i in range(30))
    file = OpenFile(tmp_path / "many.py", text, "python")
    async with editor(tmp_path, drafts) as running:
        running.open(file)
        argument = {"uri": file.uri, "range": WHOLE_FILE, "instruction": "Add type hints."}
        params = types.ExecuteCommandParams(command="lacuna.rewrite", arguments=[argument])
        protocol = running.client.protocol
        work = asyncio.ensure_future(protocol.send_request_async(types.WORKSPACE_EXECUTE_COMMAND, params, msg_id="r1"))
        while not drafts:
            await asyncio.sleep(0.02)
        running.client.cancel_request(types.CancelParams(id="r1"))
        with pytest.raises(JsonRpcRequestCancelled):
            await asyncio.wait_for(work, 10)
        # The answer goes out at once; the engine hears of it before its next step.
        seen = len(drafts)
        async with asyncio.timeout(20):
            while (report := (await running.status())["report"])["jobs_cancelled"] == 0:
                await asyncio.sleep(0.05)
        assert report["jobs_running"] == 0
        assert report["jobs_done"] == 0
        assert len(drafts) <= seen + 1
