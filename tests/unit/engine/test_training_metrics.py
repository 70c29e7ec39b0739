"""Numbers of a run as lines, torn ones among them, and the picture made of them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from engine.training.metrics import append_line, plot, read_lines

REPORT = {"step": 4, "gap": 32, "seconds": 3600.0, "nll": 1.5, "top1": 0.5, "tokens_per_pass": 1.6}


def test_reports_are_lines_that_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "run" / "metrics.jsonl"
    append_line(path, "train", {"step": 1, "causal": 1 / 3})
    append_line(path, "held_out", REPORT)
    assert read_lines(path) == [{"kind": "train", "step": 1, "causal": 0.33333}, {"kind": "held_out", **REPORT}]


def test_a_torn_line_costs_nothing_but_itself(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    append_line(path, "held_out", REPORT)
    for torn in (b'{"kind": "train", "st', b"\xff\x00", b"17", b'{"step": 1}'):
        with path.open("ab") as file:
            file.write(torn)
        append_line(path, "held_out", REPORT)
    assert read_lines(path) == [{"kind": "held_out", **REPORT}] * 5


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_what_is_not_finite_is_no_report(tmp_path: Path, broken: float) -> None:
    path = tmp_path / "metrics.jsonl"
    with pytest.raises(ValueError, match="nll of a held_out report is not finite"):
        append_line(path, "held_out", REPORT | {"nll": broken})
    assert not path.exists()


@pytest.mark.parametrize(("name", "starts"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_the_curves_become_an_image(tmp_path: Path, name: str, starts: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    append_line(path, "train", {"step": 1, "seconds": 1.0})
    for hour in range(3):
        # A number that some reports lack leaves a gap in its curve.
        some = {} if hour else {"mask_1": 0.3}
        append_line(path, "held_out", REPORT | {"seconds": 3600.0 * hour, "nll": 2 - hour / 2} | some)
    plot(path, tmp_path / name)
    image = (tmp_path / name).read_bytes()
    assert image.startswith(starts)
    assert len(image) > 10_000


def test_a_picture_of_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps({"kind": "train", "step": 1}) + "\n", encoding="utf-8")
    with pytest.raises(ValueError, match="holds no held-out report yet"):
        plot(path, tmp_path / "a.png")
    append_line(path, "held_out", REPORT)
    with pytest.raises(ValueError, match="not supported"):
        plot(path, tmp_path / "a.docx")
