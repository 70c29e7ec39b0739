"""A status as a person sees it: what is in order is plain, what is not stands out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from engine.cli.status_view import engine_rows, quantile, status_view
from engine.protocol.messages import BreakerReport, Histogram, RouteReport, StatusReport

MS = Histogram((100.0, 500.0, 1000.0), (10, 5, 5, 0), 7000.0)
FEW = Histogram((1.0, 4.0), (1, 3, 0), 9.0)
ROUTE = RouteReport("diffusion", 20, 1, 2, (("parse", 2), ("repetition", 1)), 3, 5, 3, 400, 300, MS, MS, FEW, FEW, FEW)
CLOSED = BreakerReport("closed", 0, 0, 0.0)
REPORT = StatusReport("ready", None, 60.0, 1.0, 1800.0, 2, 1, 20, 1, 2, 900.0, (ROUTE,), CLOSED, 100.0)


def shown(report: StatusReport) -> str:
    console = Console(width=140, record=True, file=None, force_terminal=False)
    with console.capture() as captured:
        console.print(status_view("tiny", report))
    return captured.get()


def test_everything_is_on_it() -> None:
    text = shown(REPORT)
    for said in (
        "Engine for tiny",
        "1 running, 20 done, 1 cancelled, 2 failed",
        "in use",
        "20 done, 1 cancelled, 2 failed",
        "100 ms (95 %: 900 ms), 5 above 500 ms",
        "3 jobs, 75% of the tokens",
        "parse 2, repetition 1",
    ):
        assert said in text
    assert "Routes since the start" not in shown(replace(REPORT, routes=()))


@pytest.mark.parametrize(
    ("breaker", "share", "says", "style"),
    [
        (CLOSED, 100.0, "in use", ""),
        (replace(CLOSED, failures=2), 100.0, "in use (2 failures in a row)", ""),
        (CLOSED, 12.5, "in use, for 12.5 % of the jobs", ""),
        (BreakerReport("half_open", 5, 1, 0.0), 100.0, "being tried again after failures", "yellow"),
        (BreakerReport("open", 5, 1, 29.6), 100.0, "closed after 5 failures, tried again in 30 s", "red"),
    ],
)
def test_the_breaker_in_words(breaker: BreakerReport, share: float, says: str, style: str) -> None:
    told = dict(engine_rows(replace(REPORT, breaker=breaker, diffusion_share=share)))["diffusion route"]
    assert (told.plain, told.style) == (says, style)


def test_a_family_without_another_route_has_no_breaker_to_show() -> None:
    assert "diffusion route" not in dict(engine_rows(replace(REPORT, breaker=None)))


@pytest.mark.parametrize(
    ("counts", "share", "value"),
    [
        ((0, 0, 0), 0.5, None),
        ((10, 0, 0), 0.5, 50.0),
        ((10, 10, 0), 0.5, 100.0),
        ((10, 10, 0), 0.75, 300.0),
        ((0, 10, 0), 0.5, 300.0),
        ((0, 0, 4), 0.5, 500.0),
    ],
)
def test_a_quantile_lies_within_its_bucket(counts: tuple[int, ...], share: float, value: float | None) -> None:
    assert quantile(Histogram((100.0, 500.0), counts, 0.0), share) == value
