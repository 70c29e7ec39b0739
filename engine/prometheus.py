"""A `StatusReport` as Prometheus text.

Metrics have Prometheus' base units: seconds, bytes, ratios from 0 to 1. No metric holds a word of any document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from engine.protocol.messages import BreakerReport, Histogram, RouteReport, StatusReport

_STATES = ("closed", "half_open", "open")


def prometheus_text(report: StatusReport | None) -> str:
    """The text exposition format, version 0.0.4; None is an engine that runs and does not answer."""
    return generate_latest(registry_of(lambda: report)).decode()


def registry_of(report: Callable[[], StatusReport | None]) -> CollectorRegistry:
    """What prometheus_client serves; `report` is called anew for every answer."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Reported(report))
    return registry


class _Reported(Collector):
    def __init__(self, report: Callable[[], StatusReport | None]) -> None:
        self._report = report

    def describe(self) -> Iterable[Metric]:
        """Nothing: else registering would ask for a report."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Every metric of one report."""
        report = self._report()
        yield from _of_answering(report)
        if report is None:
            return
        yield from _of_engine(report)
        yield from _counters(report)
        yield from _histograms(report.routes)
        if report.breaker is not None:
            yield from _of_breaker(report.breaker)


def _of_answering(report: StatusReport | None) -> Iterator[Metric]:
    ready = 1.0 if report is not None and report.state == "ready" else 0.0
    up = 1.0 if report is not None else 0.0
    yield GaugeMetricFamily("lacuna_up", "Whether the engine answers: 0 is one that is suspended, or hangs.", up)
    yield GaugeMetricFamily("lacuna_ready", "Whether the engine takes jobs.", ready)


def _of_engine(report: StatusReport) -> Iterator[Metric]:
    share = report.diffusion_share / 100
    yield GaugeMetricFamily("lacuna_uptime_seconds", "Since the engine started.", report.uptime_s)
    yield GaugeMetricFamily("lacuna_idle_seconds", "Since the last job ended.", report.idle_s)
    yield GaugeMetricFamily("lacuna_clients", "Connected clients.", report.clients)
    yield GaugeMetricFamily("lacuna_jobs_running", "Jobs in progress or waiting.", report.jobs_running)
    yield GaugeMetricFamily("lacuna_memory_bytes", "Resident memory.", report.memory_mib * 2**20)
    yield GaugeMetricFamily("lacuna_diffusion_share_ratio", "Share of jobs that may take the diffusion route.", share)


def _counters(report: StatusReport) -> Iterator[Metric]:
    ends = CounterMetricFamily("lacuna_jobs", "Jobs that ended, by how, whatever their route.", labels=["end"])
    for end in ("done", "cancelled", "failed"):
        ends.add_metric([end], getattr(report, f"jobs_{end}"))
    yield ends
    by_end = CounterMetricFamily("lacuna_route_jobs", "Jobs that ended once they had a route.", labels=["route", "end"])
    gates = CounterMetricFamily("lacuna_gate_failures", "Texts that did not pass a gate.", labels=["route", "gate"])
    for route in report.routes:
        for end in ("done", "cancelled", "failed"):
            by_end.add_metric([route.route, end], getattr(route, end))
        for gate, count in route.gate_failures:
            gates.add_metric([route.route, gate], count)
    yield by_end
    yield gates
    rows: tuple[tuple[str, str, Callable[[RouteReport], int]], ...] = (
        ("fallbacks", "Texts made again by the causal route.", lambda route: route.fallbacks),
        ("slow_first_drafts", "First drafts that took longer than 500 ms.", lambda route: route.slow_first_drafts),
        ("cache_hits", "Jobs that found some of their prompt resident.", lambda route: route.cache_hits),
        ("prompt_tokens", "Tokens of prompts.", lambda route: route.prompt_tokens),
        ("cached_tokens", "Those that were resident.", lambda route: route.cached_tokens),
    )
    for name, says, count_of in rows:
        family = CounterMetricFamily(f"lacuna_{name}", says, labels=["route"])
        for route in report.routes:
            family.add_metric([route.route], count_of(route))
        yield family


def _histograms(routes: Iterable[RouteReport]) -> Iterator[Metric]:
    first = HistogramMetricFamily("lacuna_first_draft_seconds", "To the first draft of a job.", labels=["route"])
    total = HistogramMetricFamily("lacuna_job_seconds", "To the end of a job.", labels=["route"])
    passes = HistogramMetricFamily("lacuna_passes", "Forward passes of a job.", labels=["route"])
    pace = HistogramMetricFamily("lacuna_tokens_per_pass", "Tokens that a pass settled.", labels=["route"])
    kept = HistogramMetricFamily("lacuna_acceptance_ratio", "Share of a job's draft tokens kept.", labels=["route"])
    for route in routes:
        _add(first, route, route.first_draft_ms, 1000.0)
        _add(total, route, route.total_ms, 1000.0)
        _add(passes, route, route.passes)
        _add(pace, route, route.tokens_per_pass)
        _add(kept, route, route.acceptance)
    yield from (first, total, passes, pace, kept)


def _add(family: HistogramMetricFamily, route: RouteReport, histogram: Histogram, per_unit: float = 1.0) -> None:
    bounds = [*(str(bound / per_unit) for bound in histogram.bounds), "+Inf"]
    buckets = list(zip(bounds, map(float, accumulate(histogram.counts)), strict=True))
    family.add_metric([route.route], buckets, histogram.total / per_unit)


def _of_breaker(breaker: BreakerReport) -> Iterator[Metric]:
    state = GaugeMetricFamily("lacuna_breaker_state", "1 for the breaker's present state.", labels=["state"])
    for name in _STATES:
        state.add_metric([name], 1.0 if name == breaker.state else 0.0)
    yield state
    yield CounterMetricFamily("lacuna_breaker_openings", "Times the breaker opened.", breaker.openings)
