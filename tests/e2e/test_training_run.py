"""The recipe's commands one after the other on a tiny model, and a trainer that is told to end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from safetensors import safe_open

from engine.models.adapter import CONFIDENCE
from engine.models.digest import sha256_of_file
from engine.training.checkpoint import read_checkpoint
from engine.training.commands import main
from engine.training.metrics import read_lines
from tests.fakes.tiny_loading import load, logits
from tests.fakes.tiny_model import write_tiny_gguf
from tests.fakes.tiny_training import SETTING_WORDS, write_tiny_shards
from tests.rules.sources import ROOT


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A folder with model.gguf and shards."""
    write_tiny_gguf(tmp_path / "model.gguf")
    write_tiny_shards(tmp_path / "shards")
    return tmp_path


def said(*words: str | Path) -> str:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.output


def training_words(world: Path, hours: float) -> list[str]:
    options = [word for pair in SETTING_WORDS for word in ("--set", pair)]
    places = ["--model-file", world / "model.gguf", "--shards", world / "shards", "--run", world / "run"]
    numbers = ["--threads", "1", "--rank", "4", "--held-out", "3", "--report-s", "0.05", "--hours", f"{hours:f}"]
    return ["train", *map(str, places), *numbers, *options]


def test_a_whole_pass_from_shards_to_an_adapter_the_engine_loads(world: Path) -> None:
    run, adapter = world / "run", world / "patch.safetensors"
    computing = ("--model-file", world / "model.gguf", "--shards", world / "shards", "--threads", "1")
    assert "0.00 core hours and 0 steps done" in said(*training_words(world, 0.2 / 3600))
    # Going on needs no settings: the run has its own.
    again = said("train", *computing, "--run", run, "--held-out", "3", "--hours", "0.0001")
    assert "0 steps done" not in again
    reached = read_checkpoint(run / "checkpoint.safetensors", sha256_of_file(world / "model.gguf")).standing
    assert reached.seconds >= 0.36
    assert reached.gap == 2 * reached.step > 0

    reports = read_lines(run / "metrics.jsonl")
    assert {report["kind"] for report in reports} == {"train", "held_out"}
    scored = json.loads(said("evaluate", *computing, "--run", run, "--frequent", "200", "--limit", "3"))
    last = next(report for report in reversed(reports) if report["kind"] == "held_out")
    assert scored["nll"] == pytest.approx(last["nll"], abs=1e-4)

    assert "bytes sha256" in said("export", *computing, "--run", run, "--frequent", "200", "--out", adapter)
    exported = ("evaluate", *computing, "--adapter", adapter, "--frequent", "200", "--limit", "3")
    # The same terms in half precision.
    assert json.loads(said(*exported))["nll"] == pytest.approx(scored["nll"], abs=0.02)
    in_order = json.loads(said(*exported, "--order", "suffix_first"))
    assert "nll_suffix_first" in in_order
    assert "nll_prefix_first" not in in_order
    denoiser = load(world / "model.gguf", adapter=adapter, precision="fp32")
    assert logits(denoiser, adapted=True).isfinite().all()
    with safe_open(adapter, framework="pt") as stored:
        assert CONFIDENCE in stored.metadata()

    said("plot", "--run", run, "--out", world / "curves.png")
    assert (world / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("heard_interrupts")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_trainer_that_is_told_to_end_saves_first(world: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "engine.training", *training_words(world, hours=1)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as trainer:
        assert trainer.stdout
        assert "0 steps done" in trainer.stdout.readline()
        trainer.send_signal(number)
        try:
            out, errors = trainer.communicate(timeout=120)
        finally:
            trainer.kill()
    assert (trainer.returncode, errors) == (0, "")
    assert "steps saved" in out
    read_checkpoint(world / "run" / "checkpoint.safetensors", sha256_of_file(world / "model.gguf"))
    # And it is no longer held.
    said(*training_words(world, hours=0))
