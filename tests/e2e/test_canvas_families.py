"""Every published layout behind the product's own door: loaded by its path, filled and rewritten, by tiny checkpoints.

The weights are random, so what is written is not looked at; that it is text, repeatable, within its limits and inside
the gap is. All layouts are served by a core in this process, one of each kind by an engine process and the command.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.config import EngineConfig
from engine.protocol.errors import EngineError
from engine.protocol.messages import Constraints, Fill, FurtherHole, Rewrite
from engine.startup import load_core
from tests.fakes.checkpoints import write_checkpoint, writers
from tests.fakes.driving import drive
from tests.fakes.raw_client import short_home

LAYOUTS = sorted(writers())
BEFORE, AFTER = "def add(a, b):\n    return ", "\n\n\nprint(add(1, 2))\n"
FILL = Fill("1", "python", BEFORE, AFTER, max_tokens=16, wants_drafts=True)
OPEN = Fill("2", "python", BEFORE, "", max_tokens=12, max_lines=1)
HOLES = Fill("4", "python", BEFORE, AFTER, max_tokens=12, further=(FurtherHole("\n\ndef sub(a, b):\n    return "),))
RULES = Constraints(allowed="abcdef +-()", max_characters=9)
OBEYING = Fill("5", "python", BEFORE, AFTER, max_tokens=12, further=HOLES.further, constraints=RULES)
EDIT = Rewrite("3", "python", "", "x = 1\n", "", "Add one.", max_tokens=32, wants_drafts=True)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A LACUNA_HOME of this test."""
    with short_home() as folder:
        monkeypatch.setenv("LACUNA_HOME", str(folder))
        yield folder


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_served(home: Path, layout: str) -> None:
    folder = writers()[layout](home / layout, 0)
    core = load_core(EngineConfig(model=str(folder), device="cpu", threads=1), lambda stage, done: None)
    assert core.facts.family == ("diffusion_gemma" if layout == "diffusion-gemma" else "masked")
    for request in (FILL, OPEN, EDIT):
        done, drafts, _ = drive(core, request)
        assert (done.id, done.stats.route) == (request.id, "diffusion")
        assert done.stats.passes > 0
        assert done.stats.tokens <= request.max_tokens
        assert done.stats.stop in {"end", "budget", "lines"}
        assert bool(drafts) == request.wants_drafts
        assert all(0 <= draft.settled <= len(draft.text) for draft in drafts)
        assert request is not OPEN or "\n" not in done.text.strip()
        assert drive(core, request)[0].text == done.text


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_fills_several_holes_and_keeps_to_rules(home: Path, layout: str) -> None:
    folder = writers()[layout](home / layout, 0)
    core = load_core(EngineConfig(model=str(folder), device="cpu", threads=1), lambda stage, done: None)
    done, _, _ = drive(core, HOLES)
    assert (len(done.holes), done.stats.route) == (2, "diffusion")
    assert drive(core, HOLES)[0].holes == done.holes
    try:
        obeying, _, _ = drive(core, OBEYING)
    except EngineError as failure:
        refusal = failure
    else:
        for hole in obeying.holes:
            assert set(hole.text) <= set(RULES.allowed)
            assert len(hole.text) <= RULES.max_characters
        return
    # Random weights may give lengths that no text of so few characters has.
    assert refusal.kind == "unsatisfied"


def lacuna(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "engine.cli.main", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=240)


def filled(model: str, file: Path) -> dict[str, Any]:
    """What `lacuna fill` answers; exit status 1 only says that there was nothing to show."""
    done = lacuna("fill", "--model", model, "--max-tokens", "16", "--json", str(file))
    assert done.returncode in {0, 1}, done.stderr
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode == 1) == bool(answer["notes"])
    return answer


@pytest.fixture
def source(home: Path) -> Path:
    file = home / "add.py"
    file.write_text(f"{BEFORE}<fill>{AFTER}")
    return file


@pytest.mark.parametrize("layout", ["dreamon", "sdar", "diffusion-gemma"])
def test_the_command_fills_by_the_path_of_a_checkpoint(home: Path, source: Path, layout: str) -> None:
    folder = writers()[layout](home / layout, 0)
    try:
        answer = filled(os.path.relpath(folder), source)
        (stats,) = answer["stats"]
        assert (stats["route"], stats["passes"] > 0) == ("diffusion", True)
        assert answer["text"].startswith(BEFORE)
        assert answer["text"].endswith(AFTER)
        report = json.loads(lacuna("engine", "status", "--model", str(folder), "--json").stdout)
        assert report["facts"]["model"].startswith(f"{layout}-")
        assert filled(str(folder), source)["text"] == answer["text"]
    finally:
        lacuna("engine", "stop", "--model", str(folder))


@pytest.mark.parametrize("layout", ["open-dcoder", "diffusion-gemma"])
def test_the_command_fills_several_marks_in_one_job_and_keeps_to_rules(home: Path, layout: str) -> None:
    folder = writers()[layout](home / layout, 0)
    file = home / "two.py"
    file.write_text(f"{BEFORE}<fill>\n\ndef sub(a, b):\n    return <fill>{AFTER}")
    try:
        answer = filled(str(folder), file)
        (stats,) = answer["stats"]
        assert stats["route"] == "diffusion"
        head, middle, tail = file.read_text().split("<fill>")
        assert answer["text"].startswith(head)
        assert middle in answer["text"]
        assert answer["text"].endswith(tail)
        done = lacuna("fill", "--model", str(folder), "--max-tokens", "16", "--allow", "ab", "--json", str(file))
        if done.stdout:
            first, second = re.split(r"return (?=[ab]*\n)", json.loads(done.stdout)["text"])[1:]
            assert set(first.partition("\n")[0] + second.partition("\n")[0]) <= set("ab")
        else:
            assert "no text was found" in done.stderr or "obeys" in done.stderr
    finally:
        lacuna("engine", "stop", "--model", str(folder))


def test_an_added_checkpoint_is_filled_by_its_name(home: Path, source: Path) -> None:
    folder = write_checkpoint(home / "sdar", "sdar")
    added = lacuna("models", "add", str(folder), "--name", "mine")
    assert added.stdout == "mine: added, family masked\n"
    listed = json.loads(lacuna("models", "list", "--json").stdout)["models"]
    (row,) = [row for row in listed if row["name"] == "mine"]
    assert (row["loadable"], row["status"]) == (True, "unchecked")
    try:
        assert filled("mine", source)["stats"][0]["route"] == "diffusion"
    finally:
        lacuna("engine", "stop", "--model", "mine")


def test_a_checkpoint_of_an_unknown_family_is_refused_with_a_way_out(home: Path, source: Path) -> None:
    folder = write_checkpoint(home / "model", "sdar")
    (folder / "config.json").write_text('{"model_type": "bert"}')
    done = lacuna("fill", "--model", str(folder), str(source))
    assert done.returncode == 1
    assert "'bert', which no family of this version loads" in done.stderr
    assert "lacuna models list" in done.stderr
    assert "Traceback" not in done.stderr
    assert source.read_text() == f"{BEFORE}<fill>{AFTER}"
