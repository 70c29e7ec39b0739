"""A `StatusReport` as tables for a terminal. Pure."""

from __future__ import annotations

from itertools import accumulate

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from engine.monitor import SLOW_FIRST_DRAFT_MS
from engine.protocol.messages import BreakerReport, Histogram, RouteReport, StatusReport


def status_view(model: str, report: StatusReport) -> RenderableType:
    """What the engine is, what its routes did, and whether anything keeps jobs from the diffusion route."""
    table = Table(title=f"Engine for {model}", show_header=False, title_justify="left")
    for name, value in engine_rows(report):
        table.add_row(name, value)
    parts: list[RenderableType] = [table]
    if report.routes:
        parts.append(_routes(report.routes))
    return Group(*parts)


def engine_rows(report: StatusReport) -> list[tuple[str, Text]]:
    """Names and values of what is told of the engine as a whole."""
    facts = report.facts
    limit = f"{report.idle_limit_s / 60:.0f} min" if report.idle_limit_s else "never"
    jobs = f"{report.jobs_running} running, {report.jobs_done} done, {report.jobs_cancelled} cancelled"
    rows: list[tuple[str, str | Text]] = [
        ("state", report.state),
        ("up for", f"{report.uptime_s / 60:.1f} min"),
        ("idle for", f"{report.idle_s / 60:.1f} min (leaves after {limit})"),
        ("clients", str(report.clients)),
        ("jobs", f"{jobs}, {report.jobs_failed} failed"),
        ("memory", f"{report.memory_mib:.0f} MiB"),
    ]
    if facts is not None:
        forward = ", ".join(f"{rows_}: {ms:.0f} ms" for rows_, ms in facts.forward_ms)
        rows += [
            ("model", f"{facts.family}, {facts.precision} on {facts.device}, {facts.threads} threads"),
            ("patch", facts.adapter or "none"),
            ("window", f"{facts.window_tokens} tokens"),
            ("forward pass by rows", forward or "not measured"),
            ("process", str(facts.pid)),
        ]
    if report.breaker is not None:
        rows.append(("diffusion route", _diffusion_route(report.breaker, report.diffusion_share)))
    return [(name, value if isinstance(value, Text) else Text(value)) for name, value in rows]


def quantile(histogram: Histogram, share: float) -> float | None:
    """The value that `share` of all values do not exceed, as near as buckets tell; None of no values.

    Within a bucket values are taken to lie evenly, and those above the last bound at it: as `histogram_quantile` of
    Prometheus.
    """
    total = sum(histogram.counts)
    if not total:
        return None
    wanted = share * total
    for bucket, reached in enumerate(accumulate(histogram.counts)):
        if reached >= wanted and histogram.counts[bucket]:
            if bucket == len(histogram.bounds):
                return histogram.bounds[-1]
            low = histogram.bounds[bucket - 1] if bucket else 0.0
            within = (wanted - (reached - histogram.counts[bucket])) / histogram.counts[bucket]
            return low + within * (histogram.bounds[bucket] - low)
    return histogram.bounds[-1]


def _diffusion_route(breaker: BreakerReport, share: float) -> Text:
    of = "" if share == 100 else f", for {share:g} % of the jobs"
    match breaker.state:
        case "closed":
            failures = f" ({breaker.failures} failures in a row)" if breaker.failures else ""
            return Text(f"in use{of}{failures}")
        case "half_open":
            return Text(f"being tried again after failures{of}", style="yellow")
        case "open":
            wait = f"tried again in {breaker.retry_in_s:.0f} s"
            return Text(f"closed after {breaker.failures} failures, {wait}{of}", style="red")


def _routes(routes: tuple[RouteReport, ...]) -> Table:
    table = Table(title="Routes since the start", title_justify="left")
    table.add_column("")
    for route in routes:
        table.add_column(route.route, justify="right")
    rows = [route_cells(route) for route in routes]
    for name in rows[0]:
        table.add_row(name, *(cells[name] for cells in rows))
    return table


def route_cells(route: RouteReport) -> dict[str, Text]:
    """Names and values of what is told of one route."""
    jobs = f"{route.done} done, {route.cancelled} cancelled, {route.failed} failed"
    slow = f", {route.slow_first_drafts} above {SLOW_FIRST_DRAFT_MS:.0f} ms" if route.slow_first_drafts else ""
    late = (quantile(route.first_draft_ms, 0.95) or 0.0) > SLOW_FIRST_DRAFT_MS
    hits = f"{route.cache_hits} jobs, {_percent(route.cached_tokens, route.prompt_tokens)} of the tokens"
    refused = ", ".join(f"{gate} {count}" for gate, count in route.gate_failures) or "none"
    return {
        "jobs": Text(jobs),
        "first draft": Text(_half_and_most(route.first_draft_ms, " ms") + slow, style="yellow" if late else ""),
        "result": Text(_half_and_most(route.total_ms, " ms")),
        "passes": Text(_half_and_most(route.passes)),
        "tokens a pass": Text(_mean(route.tokens_per_pass)),
        "draft tokens kept": Text(_mean(route.acceptance, percent=True)),
        "prompt resident": Text(hits),
        "refused by gates": Text(refused),
        "made again": Text(str(route.fallbacks)),
    }


def _half_and_most(histogram: Histogram, unit: str = "") -> str:
    half, most = quantile(histogram, 0.5), quantile(histogram, 0.95)
    return "-" if half is None or most is None else f"{half:.0f}{unit} (95 %: {most:.0f}{unit})"


def _mean(histogram: Histogram, *, percent: bool = False) -> str:
    count = sum(histogram.counts)
    if not count:
        return "-"
    return f"{histogram.total / count:.0%}" if percent else f"{histogram.total / count:.1f}"


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "none"
