"""The stages' command lines: help, options that exclude each other, and faults that become one message."""

from __future__ import annotations

import subprocess
import sys
from operator import itemgetter
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from engine.training import frozen_precision
from engine.training.commands import main
from engine.training.frozen_precision import CANDIDATES
from engine.training.laboratory import Laboratory
from engine.training.run_folder import claimed
from engine.training.shards import TokenHole, write_shard
from tests.fakes.tiny_training import SETTING_WORDS, write_tiny_shards


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    write_tiny_shards(tmp_path / "shards")
    return tmp_path / "shards"


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


def train(gguf: Path, shards: Path, folder: Path, *words: str | Path, sets: tuple[str, ...] = SETTING_WORDS) -> Result:
    """A run whose hours are up at once; `words` come last and so win."""
    options = [word for pair in sets for word in ("--set", pair)]
    computing = ("--threads", "1", "--precision", "fp32", "--rank", "2", "--held-out", "2", "--hours", "0")
    return call("train", "--model-file", gguf, "--shards", shards, "--run", folder, *computing, *options, *words)


def test_every_stage_is_listed_and_explains_itself() -> None:
    overview = call("--help")
    assert overview.exit_code == 0
    assert isinstance(main, click.Group)
    stages = main.list_commands(click.Context(main))
    assert stages == ["corpus", "evaluate", "export", "plot", "shards", "train"]
    for stage in stages:
        assert f"  {stage} " in overview.output
        shown = call(stage, "--help")
        assert shown.exit_code == 0
        assert shown.output.startswith(f"Usage: main {stage} [OPTIONS]")
        assert shown.output.count("--") > 2


def test_help_does_not_wait_for_torch() -> None:
    code = "import sys, engine.training.commands as c; c.main(['train', '--help'], standalone_mode=False)\n"
    asked = "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code + asked], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "seed"), "write NAME=VALUE"),
        (("--precision", "fp8"), "'fp8' is not one of"),
        (("--set", "weights.end=-1"), r"Error: weights.end: end is a weight"),
        (("--set", "frequent=5000"), "Error: 5000 frequent ids are asked for, the vocabulary holds 276"),
        (("--device", "cuda:99"), "Error: torch sees no cuda:99 on this machine"),
        (("--device", "gpu"), "Error: 'gpu' is no device: use cpu, cuda or cuda:N"),
        (("--device", "meta"), "Error: training runs on cpu and cuda, not on meta"),
        (("--settings", "missing.json"), "Error: [Errno 2] No such file or directory: 'missing.json'"),
        (("--initial", "missing.safetensors"), "the adapter's file missing.safetensors does not exist: reinstall"),
        (("--model-file", "missing.gguf"), "missing.gguf"),
    ],
)
def test_what_is_wrong_with_the_words_is_said(
    tiny: Path, shards: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    result = train(tiny, shards, tmp_path / "run", *words)
    assert result.exit_code in (1, 2)
    assert said in result.output
    assert not (tmp_path / "run" / "settings.json").exists()


def test_a_folder_without_shards_is_refused(tiny: Path, shards: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    assert "holds no train-*.safetensors: build them with" in train(tiny, empty, tmp_path / "run").output
    (shards / "held_out.safetensors").unlink()
    assert "held_out.safetensors: build it again" in train(tiny, shards, tmp_path / "run").output
    (shards / "train-000.safetensors").write_bytes(b"no shard")
    assert "train-000.safetensors is no shard" in train(tiny, shards, tmp_path / "run").output


@pytest.mark.parametrize("name", ["train-002.safetensors", "held_out.safetensors"])
def test_shards_of_another_tokenizer_are_refused(tiny: Path, shards: Path, tmp_path: Path, name: str) -> None:
    write_shard(shards / name, [TokenHole((400,), (70,), (), "span", "python")], {})
    result = train(tiny, shards, tmp_path / "run")
    assert result.exit_code == 1
    assert "the shards hold the id 400 and the model has 276 ids" in result.output


def test_a_run_somebody_else_holds_is_refused(tiny: Path, shards: Path, tmp_path: Path) -> None:
    with claimed(tmp_path / "run"):
        result = train(tiny, shards, tmp_path / "run")
    assert result.exit_code == 1
    assert "another trainer is writing" in result.output


def test_a_run_of_another_model_or_other_settings_is_refused(
    tiny: Path, adapter: Path, shards: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    # Any terms are terms to save: the hours are up before the first step.
    first = train(tiny, shards, folder, "--initial", adapter)
    assert first.exit_code == 0, first.output
    assert "other settings" in train(tiny, shards, folder, "--set", "seed=5").output
    other = tmp_path / "other.gguf"
    other.write_bytes(tiny.read_bytes() + bytes(32))
    for result in (
        train(other, shards, folder),
        call("evaluate", "--model-file", other, "--shards", shards, "--run", folder, "--frequent", "200"),
        call(
            "export", "--model-file", other, "--shards", shards, "--run", folder, "--out", tmp_path / "out.safetensors"
        ),
    ):
        assert result.exit_code == 1
        assert "belongs to another model file" in result.output
    (folder / "checkpoint.safetensors").write_bytes(b"torn")
    assert "is damaged" in train(tiny, shards, folder).output


def test_what_is_scored_is_either_a_run_or_an_adapter(tiny: Path, shards: Path, tmp_path: Path, adapter: Path) -> None:
    words = ("evaluate", "--model-file", tiny, "--shards", shards)
    for more in ((), ("--run", tmp_path, "--adapter", adapter)):
        result = call(*words, *more)
        assert result.exit_code == 2
        assert "give either --run or --adapter" in result.output
    assert "holds no checkpoint" in call(*words, "--run", tmp_path).output


def test_nothing_is_plotted_or_exported_of_no_run(tiny: Path, shards: Path, tmp_path: Path) -> None:
    plotted = call("plot", "--run", tmp_path, "--out", tmp_path / "a.png")
    assert (plotted.exit_code, "metrics.jsonl" in plotted.output) == (1, True)
    words = ("--model-file", tiny, "--shards", shards, "--run", tmp_path)
    exported = call("export", *words, "--out", tmp_path / "a.safetensors")
    assert (exported.exit_code, "holds no checkpoint" in exported.output) == (1, True)


@pytest.mark.parametrize(
    ("times", "fastest"), [((0.5, 1.0, 2.0), "packed"), ((3.0, 1.0, 2.0), "int8"), ((3.0, 24.0, 1.0), "fp32")]
)
def test_a_cpu_takes_what_is_fastest_there_where_nothing_is_said(
    tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch, times: tuple[float, float, float], fastest: str
) -> None:
    monkeypatch.setattr(frozen_precision, "seconds_of", dict(zip(CANDIDATES, times, strict=True)).__getitem__)
    monkeypatch.setattr(frozen_precision, "find_kernel", lambda: "a kernel")
    assert Laboratory(tiny, tmp_path).chosen_precision == fastest
    assert Laboratory(tiny, tmp_path, "fp32").chosen_precision == "fp32"
    monkeypatch.setattr(frozen_precision, "find_kernel", lambda: None)
    assert (
        Laboratory(tiny, tmp_path).chosen_precision == min(("int8", times[1]), ("fp32", times[2]), key=itemgetter(1))[0]
    )
