"""A picture of curves: one panel for each, both axes logarithmic where the sizes span more than a decade."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.bench.growth.point import Point

COLUMNS = 3


def panels(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Points by curve, each in the order of sizes."""
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(point.curve, []).append(point)
    return {curve: sorted(same, key=lambda point: point.x) for curve, same in found.items()}


def draw(points: Sequence[Point], file: Path) -> None:
    """Write the picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves = {curve: same for curve, same in panels(points).items() if len(same) > 1}
    rows = -(-len(curves) // COLUMNS)
    figure, axes = pyplot.subplots(rows, COLUMNS, figsize=(4.5 * COLUMNS, 3.2 * rows), squeeze=False)
    for axis in axes.flat[len(curves) :]:
        axis.set_visible(False)
    for axis, (curve, same) in zip(axes.flat, curves.items(), strict=False):
        sizes = [point.x for point in same]
        axis.plot(sizes, [point.ms for point in same], marker="o", label="median")
        axis.plot(sizes, [point.most_ms for point in same], marker=".", linestyle=":", label="worst")
        if sizes[-1] > 10 * sizes[0]:
            axis.set_xscale("log")
        axis.set_ylim(bottom=0)
        axis.set_title(curve, fontsize=9)
        axis.set_ylabel("ms")
        axis.grid(visible=True, alpha=0.3)
    figure.tight_layout()
    figure.savefig(file, dpi=110)
    pyplot.close(figure)
