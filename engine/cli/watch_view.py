"""A `StatusReport` for a terminal that is looked at all the time: it fits the height, whatever that is. Pure.

What matters most is kept: where there is less room than rows, the least important ones are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.cli.status_view import engine_rows, route_cells
from engine.protocol.messages import RouteReport, StatusReport

# Rows of the engine, of one value or of two short ones beside each other, as they stand below each other.
_ENGINE: tuple[tuple[str, ...], ...] = (
    ("state", "process"),
    ("diffusion route",),
    ("jobs",),
    ("clients", "memory"),
    ("up for", "idle for"),
    ("model",),
    ("window", "patch"),
    ("forward pass by rows",),
)
# The most important first: the others are left out before it.
_IMPORTANCE = (
    *("state", "routes", "diffusion route", "jobs", "first draft", "slow first drafts", "refused by gates", "ended"),
    *("made again", "clients", "result", "passes", "tokens a pass", "draft tokens kept", "prompt resident", "up for"),
    *("model", "forward pass by rows", "window"),
)
_LABEL = 22
_LONGER: Mapping[str, str] = {"ended": "done/cancelled/failed"}


def watch_view(model: str, report: StatusReport, height: int) -> RenderableType:
    """At most `height` lines, none of them wrapped."""
    told = dict(engine_rows(report))
    routes = [_cells(route) for route in report.routes]
    rows = [row for row in _ENGINE if row[0] in told]
    # The routes' names take a line, and the title another.
    names = [*(row[0] for row in rows), *(("routes", *routes[0]) if routes else ())]
    kept = set(sorted(names, key=_IMPORTANCE.index)[: max(1, height - 1)])
    parts: list[RenderableType] = [Text(f"Engine for {model}", style="bold", no_wrap=True, overflow="ellipsis")]
    parts += [_pairs(row, told) for row in rows if row[0] in kept]
    if "routes" in kept:
        parts.append(_routes(report.routes, routes, kept))
    return Group(*parts)


def _cells(route: RouteReport) -> dict[str, Text]:
    """As in the long view, but no value longer than half a narrow terminal where numbers are of usual size."""
    cells = route_cells(route)
    return {
        "ended": Text(f"{route.done} / {route.cancelled} / {route.failed}"),
        "slow first drafts": Text(str(route.slow_first_drafts), style=cells["first draft"].style),
        **{name: value for name, value in cells.items() if name != "jobs"},
        "first draft": Text(cells["first draft"].plain.partition(", ")[0], style=cells["first draft"].style),
    }


def _pairs(names: Sequence[str], told: Mapping[str, Text]) -> Table:
    grid = Table.grid(expand=True)
    for name in names:
        grid.add_column(width=_LABEL if name == names[0] else len(name) + 2, no_wrap=True)
        # The second of two is the longer one.
        grid.add_column(ratio=3 if name == names[0] else 5, no_wrap=True, overflow="ellipsis")
    cells: list[Text] = []
    for name in names:
        cells += [Text(name, style="dim"), told.get(name, Text("-"))]
    grid.add_row(*cells)
    return grid


def _routes(reports: Sequence[RouteReport], cells: Sequence[Mapping[str, Text]], kept: set[str]) -> Table:
    grid = Table.grid(expand=True)
    grid.add_column(width=_LABEL, no_wrap=True)
    for _ in cells:
        grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_row(Text("since the start", style="dim"), *(Text(report.route, style="bold") for report in reports))
    for name in cells[0]:
        if name in kept:
            grid.add_row(Text(_LONGER.get(name, name), style="dim"), *(of[name] for of in cells))
    return grid
