"""`lacuna demo`: the main job on real input, through the real server and engine, on the sample project it ships."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from time import perf_counter
from typing import Any

import click
from rich.console import Console

from engine.cli.demo_view import CanvasView, print_diff, print_numbers
from engine.cli.editor import DraftSeen, Editor, OpenFile
from engine.config import DEFAULT_MODEL
from engine.protocol.errors import EngineError

LOAD_LIMIT_S = 600.0
FILL_KIND = "refactor.rewrite.lacuna.fill"


@dataclass(frozen=True, slots=True)
class Scene:
    """One thing to show: `select` is text in the sample `file`, `typed` is typed behind it before the request."""

    name: str
    title: str
    file: str
    select: str
    typed: str = ""
    instruction: str = ""


SCENES = (
    Scene(
        "completion",
        "Inline completion in the middle of a function",
        "words.py",
        "    counts = {}",
        typed="\n    for word in words:\n        ",
    ),
    Scene("fill", "Selection filled from its surroundings", "prices.py", "    return net\n"),
    Scene(
        "rewrite",
        "Selection rewritten by an instruction",
        "report.py",
        "def read_report(path):\n    f = open(path)\n    data = f.read()\n    f.close()\n    return data\n",
        instruction="Use a with statement to open the file.",
    ),
)


@dataclass(frozen=True, slots=True)
class Step:
    """What one scene did. `before` and `after` are whole texts; times in milliseconds as the editor saw them."""

    name: str
    ok: bool
    ms_first_draft: float
    ms_total: float
    passes: int
    tokens: int
    route: str
    before: str
    after: str


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the show.")
@click.option("--model", default=DEFAULT_MODEL, envvar="LACUNA_MODEL", show_default=True)
def demo(as_json: bool, model: str) -> None:
    """Show a completion, a fill and a rewrite on a sample project, with the default model on this machine."""
    console = Console(stderr=as_json)
    try:
        _fetch_model(model, console)
        report = asyncio.run(_perform(model, console, as_json=as_json))
    except EngineError as error:
        console.print(f"[red]{error.message}[/red]\n{error.remedy}")
        sys.exit(1)
    except (TimeoutError, RuntimeError) as error:
        console.print(f"[red]the demo could not go on: {error}[/red]\nRun `lacuna doctor` to see what is wrong.")
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
    sys.exit(0 if all(step["ok"] for step in report["steps"]) else 1)


def _fetch_model(model: str, console: Console) -> None:
    """Bring the model onto this machine if it is not here yet."""
    from engine.cli.pull_view import shown_pull
    from engine.store import Store

    with shown_pull(console) as view:
        Store.of_user(os.environ).pull(model, progress=view)


async def _perform(model: str, console: Console, *, as_json: bool) -> dict[str, Any]:
    """Play all scenes in a copy of the sample project; the report for `--json`."""
    view = CanvasView(console, live=console.is_terminal and not as_json)
    drafts: list[tuple[float, DraftSeen]] = []

    def on_draft(draft: DraftSeen) -> None:
        drafts.append((perf_counter(), draft))
        view.show(draft)

    with tempfile.TemporaryDirectory(prefix="lacuna-demo-") as folder:
        root = _copy_sample(Path(folder))
        editor = Editor(on_draft)
        await editor.start(root, ["--model", model])
        try:
            with console.status("starting the engine"):
                await editor.wait_ready(LOAD_LIMIT_S)
            steps = [await _play(scene, root, editor, drafts, view, console) for scene in SCENES]
            facts = (await editor.status()).get("facts") or {}
        finally:
            await editor.stop()
    return {
        "steps": [asdict(step) for step in steps],
        "model": facts.get("model", model),
        "device": facts.get("device"),
    }


def _copy_sample(folder: Path) -> Path:
    for item in (resources.files("engine.cli") / "sample").iterdir():
        if item.name.endswith(".py"):
            (folder / item.name).write_text(item.read_text(encoding="utf-8"), encoding="utf-8")
    return folder


async def _play(
    scene: Scene,
    root: Path,
    editor: Editor,
    drafts: list[tuple[float, DraftSeen]],
    view: CanvasView,
    console: Console,
) -> Step:
    """Play one scene and print what happened."""
    console.rule(f"[bold]{scene.title}[/bold]  {scene.file}")
    path = root / scene.file
    file = OpenFile(path, path.read_text(encoding="utf-8"), "python")
    editor.open(file)
    start = file.text.index(scene.select)
    end = start + len(scene.select)
    if scene.typed:
        editor.replace_all(file, file.text[:end] + scene.typed + file.text[end:])
        end += len(scene.typed)
    drafts.clear()
    began = perf_counter()
    with view.scene(scene.instruction):
        edits = await _request(scene, editor, file, start, end)
    ended = perf_counter()
    before, after = file.text, file.replaced(edits)
    stats = ((await editor.status()).get("last") or [{}])[-1].get("stats", {})
    step = Step(
        name=scene.name,
        ok=bool(edits) and after != before and _parses(after),
        ms_first_draft=round(((drafts[0][0] if drafts else ended) - began) * 1000, 1),
        ms_total=round((ended - began) * 1000, 1),
        passes=stats.get("passes", 0),
        tokens=stats.get("tokens", 0),
        route=stats.get("route", ""),
        before=before,
        after=after,
    )
    print_diff(console, scene.file, before, after)
    print_numbers(console, step.ok, asdict(step))
    for message in editor.messages:
        console.print(message)
    editor.messages.clear()
    return step


def _request(scene: Scene, editor: Editor, file: OpenFile, start: int, end: int) -> Awaitable[list[Any]]:
    ask: dict[str, Callable[[], Awaitable[list[Any]]]] = {
        "completion": lambda: editor.inline_completion(file, end),
        "fill": lambda: editor.code_action(file, start, end, FILL_KIND),
        "rewrite": lambda: editor.rewrite(file, start, end, scene.instruction),
    }
    return ask[scene.name]()


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
