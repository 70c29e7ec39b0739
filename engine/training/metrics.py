"""A run's numbers as JSON lines, and the plot made of them.

One line per report: {"kind": "train" | "held_out", "step", "gap", "seconds", ...numbers}. Lines are appended, so a
resumed run goes on in the same file; a torn last line is dropped on reading.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

_PANELS = (
    ("nats per token", ("nll", "nll_prefix_first", "nll_suffix_first")),
    ("share", ("top1", "ends", "mask_1", "mask_2", "mask_3")),
    ("tokens per pass, masks alone", ("tokens_per_pass",)),
)


def append_line(path: Path, kind: str, numbers: Mapping[str, float]) -> None:
    """Append one report, on a line of its own even behind a torn one.

    Raises ValueError for a number that is not finite, OSError from the disk.
    """
    if broken := [name for name, value in numbers.items() if not math.isfinite(value)]:
        raise ValueError(f"{broken[0]} of a {kind} report is not finite")
    path.parent.mkdir(parents=True, exist_ok=True)
    rounded = {name: round(value, 5) for name, value in numbers.items()}
    line = json.dumps({"kind": kind, **rounded}) + "\n"
    with path.open("a+b") as file:
        if file.tell() and not _ends_line(file):
            line = "\n" + line
        file.write(line.encode())


def _ends_line(file: BinaryIO) -> bool:
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole lines of a metrics file; what a crash has torn is left out. Raises OSError."""
    lines = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            report = json.loads(line)
        except json.JSONDecodeError:
            continue
        if isinstance(report, dict) and "kind" in report:
            lines.append(report)
    return lines


def plot(metrics: Path, image: Path) -> None:
    """Draw the held-out curves over hours trained into `image` (PNG or SVG by its ending).

    Raises ValueError when the file holds no held-out report yet, for another ending, and where matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as fault:
        raise ValueError("a plot needs matplotlib: `pip install 'lacuna[training]'`") from fault
    reports = [line for line in read_lines(metrics) if line["kind"] == "held_out"]
    if not reports:
        raise ValueError(f"{metrics} holds no held-out report yet: let the run reach its first evaluation")
    hours = [report["seconds"] / 3600 for report in reports]
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for axes, (label, names) in zip(figure.subplots(1, len(_PANELS)), _PANELS, strict=True):
        for name in names:
            axes.plot(hours, [report.get(name) for report in reports], marker=".", label=name)
        axes.set_xlabel("core hours trained")
        axes.set_ylabel(label)
        axes.legend(fontsize=8)
        axes.grid(alpha=0.3)
    figure.savefig(image)
