"""The live status fits the terminal: nothing is wrapped, and what does not fit is what matters least."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from engine.cli.watch_view import watch_view
from engine.protocol.messages import BreakerReport, Facts, Histogram, RouteReport, StatusReport

MS = Histogram((100.0, 500.0, 1000.0), (10, 5, 5, 0), 7000.0)
FEW = Histogram((1.0, 4.0), (1, 3, 0), 9.0)
ROUTE = RouteReport(
    "diffusion", 2000, 150, 21, (("parse", 2), ("repetition", 1)), 3, 5, 900, 400_000, 300_000, MS, MS, FEW, FEW, FEW
)
ROUTES = (ROUTE, replace(ROUTE, route="causal"))
FORWARD = tuple((rows, 40.0 + rows) for rows in (1, 2, 4, 8, 16, 32, 64, 128))
FACTS = Facts("m", "hybrid", "cpu", "int8", "qwen-gaps-3", 4096, 2, FORWARD, "0.1.0", 123456)
REPORT = StatusReport("ready", FACTS, 60.0, 1.0, 1800.0, 2, 1, 20, 1, 2, 900.0, ROUTES, BreakerReport("open", 5, 1, 9))
# Rows of every kind at once, as the screen of 80 by 24 has to hold them.
EVERYTHING = {
    *("state", "ready", "process", "123456", "diffusion route", "closed after 5 failures, tried again in 9 s", "jobs"),
    *("1 running, 20 done, 1 cancelled, 2 failed", "clients", "memory", "900 MiB", "idle for", "leaves after 30 min"),
    *(
        "model",
        "hybrid, int8 on cpu, 2 threads",
        "patch",
        "qwen-gaps-3",
        "window",
        "4096 tokens",
        "causal",
        "diffusion",
    ),
    *("2000 / 150 / 21", "100 ms (95 %: 900 ms)", "slow first drafts", "900 jobs, 75% of the tokens", "made again"),
    *("parse 2, repetition 1", "draft tokens kept", "tokens a pass", "passes", "forward pass by rows"),
}


def shown(report: StatusReport, height: int, width: int = 80) -> list[str]:
    console = Console(width=width, height=height, force_terminal=False)
    with console.capture() as captured:
        console.print(watch_view("tiny", report, height))
    return captured.get().splitlines()


def test_two_routes_fit_the_smallest_usual_terminal_whole() -> None:
    lines = shown(REPORT, 24)
    assert len(lines) <= 24
    text = "\n".join(lines)
    assert [said for said in EVERYTHING if said not in text] == []
    assert [line for line in lines if "…" in line and "forward pass" not in line] == []


@pytest.mark.parametrize("height", range(1, 30))
@pytest.mark.parametrize("width", [20, 80, 200])
def test_it_never_is_higher_than_there_is_room(height: int, width: int) -> None:
    for report in (REPORT, replace(REPORT, routes=()), replace(REPORT, facts=None, routes=(), breaker=None)):
        assert len(shown(report, height, width)) <= max(2, height)


def test_what_matters_least_is_left_out_first() -> None:
    text = "\n".join(shown(REPORT, 9))
    for said in ("ready", "closed after 5 failures", "1 running", "2000 / 150 / 21", "slow first drafts", "parse 2"):
        assert said in text
    for said in ("forward pass", "patch", "prompt resident"):
        assert said not in text
