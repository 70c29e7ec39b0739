"""`lacuna trace`: what it refuses before a model is loaded, and the page it writes with a tiny one."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import engine.startup
from engine.cli.main import cli
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.models.tiny import tiny_denoiser
from engine.protocol.errors import EngineError
from engine.quality import Gates
from engine.trace.recording import Recording, from_data

CODE = "def f(x):\n    return <fill>\n\n\ndef g(y):\n    return <fill>\n"


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["trace", *map(str, arguments)])


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with two holes in a folder that is the current one; no model can be loaded."""

    def refuse(*_: object) -> EngineCore:
        raise EngineError("model_missing", "nothing should be loaded here", "")

    monkeypatch.setattr(engine.startup, "load_core", refuse)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.py"
    path.write_text(CODE)
    return path


@pytest.fixture
def tiny_core(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_config: EngineConfig, progress: Callable[[str, float], None]) -> EngineCore:
        progress("weights", 0.5)
        return EngineCore(tiny_denoiser(seed=4), threads=1, gates=Gates.open())

    monkeypatch.setattr(engine.startup, "load_core", load)


def recorded(page: Path) -> Recording:
    found = re.search(r'<script id="recording"[^>]*>(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    return from_data(json.loads(found[1]))


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["none.py", "--at", "1:1"], 1, "cannot read none.py"),
        (["plain.py"], 2, "no hole"),
        (["a.py", "--at", "9:9"], 2, "lines 1 to"),
        (["a.py", "--at", "x"], 2, "LINE:COL"),
        (["a.py", "--out", "none/page.html"], 2, "folder none does not exist"),
        (["a.py", "--out", "."], 2, "is a folder"),
        (["a.py", "--out", "a.py"], 2, "names the file itself"),
        (["a.py", "--out", "./a.py"], 2, "names the file itself"),
        (["a.py", "--out", "/proc/none.html"], 2, "cannot be written"),
        ([".env", "--at", "1:1"], 1, "--secret"),
        (["a.py"], 1, "nothing should be loaded here"),
    ],
)
def test_what_cannot_be_is_refused_before_a_model_is_loaded(
    file: Path, arguments: list[str], status: int, words: str
) -> None:
    (file.parent / "plain.py").write_text("x = 1\n")
    (file.parent / ".env").write_text("KEY=1\n")
    before = {path.name: path.read_bytes() for path in file.parent.iterdir()}
    if arguments[-1].startswith("/proc") and not sys.platform.startswith("linux"):
        pytest.skip("only Linux has a folder nobody can write to")
    result = invoke(*arguments)
    assert (result.exit_code, words in result.output) == (status, True), result.output
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == before


@pytest.mark.usefixtures("tiny_core")
def test_the_page_holds_every_gap_and_the_file_stays_as_it_is(file: Path) -> None:
    result = invoke(file, "--max-tokens", "12")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == "a.py.trace.html"
    assert file.read_text() == CODE
    made = recorded(file.parent / "a.py.trace.html")
    assert made.file == "a.py"
    assert dict(made.facts)["model"] == "tiny"
    assert [gap.line for gap in made.gaps] == [2, 6]
    first, second = made.gaps
    assert first.before == "def f(x):\n    return "
    assert first.after.startswith("\n\n\ndef g(y)")
    assert second.before.endswith("def g(y):\n    return ")
    for gap in made.gaps:
        facts = dict(gap.facts)
        assert facts["Passes"].startswith(f"{len(gap.steps)} for ")
        assert gap.steps
        assert (gap.result is None) == bool(gap.note)


@pytest.mark.usefixtures("tiny_core")
def test_a_place_and_another_page_can_be_named(file: Path) -> None:
    (file.parent / "pages").mkdir()
    target = file.parent / "pages" / "p.html"
    target.write_text("an older page")
    result = invoke(file, "--at", "1:5", "--out", target, "--max-tokens", "3")
    assert result.exit_code == 0, result.output
    (gap,) = recorded(target).gaps
    assert (gap.line, gap.before) == (1, "def ")


@pytest.mark.usefixtures("tiny_core")
def test_the_browser_is_asked_to_show_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def no_browser(address: str) -> bool:
        shown.append(address)
        return False

    monkeypatch.setattr("webbrowser.open", no_browser)
    result = invoke(file, "--open", "--max-tokens", "2")
    assert result.exit_code == 0
    assert shown == [(file.parent / "a.py.trace.html").as_uri()]
    assert "no browser was found" in result.stderr


def test_a_core_that_cannot_be_watched_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.startup, "load_core", lambda *_: object())
    result = invoke(file)
    assert result.exit_code == 1
    assert "cannot be looked at" in result.output
    assert not list(file.parent.glob("*.html"))


@pytest.mark.usefixtures("tiny_core")
def test_text_that_no_file_holds_yet_is_read_from_standard_input(file: Path) -> None:
    unsaved = "def h(z):\r\n    return <fill>\r\n"
    arguments = ["trace", "-", "--language", "python", "--at", "2:12", "--out", "unsaved.html", "--max-tokens", "4"]
    result = CliRunner().invoke(cli, arguments, input=unsaved)
    assert result.exit_code == 0, result.output
    (gap,) = recorded(file.parent / "unsaved.html").gaps
    assert gap.line == 2
    assert gap.before.endswith("    return ")
    assert file.read_text() == CODE
