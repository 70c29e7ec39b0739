"""A status as Prometheus text, read back by Prometheus' own parser, and the loopback port that tells it."""

from __future__ import annotations

import asyncio
import socket
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.config import EngineConfig
from engine.job import Monitored
from engine.metrics_server import LOOPBACK
from engine.prometheus import prometheus_text
from engine.protocol.errors import EngineError
from engine.protocol.messages import BreakerReport, Done, Histogram, RouteReport, Status, StatusReport
from tests.fakes.raw_client import short_home
from tests.fakes.running_service import SECRET, fill, greeted, running
from tests.fakes.scripted_core import ScriptedCore

MS = Histogram((100.0, 500.0), (2, 1, 1), 1450.0)
COUNTS = Histogram((1.0, 4.0), (1, 3, 0), 9.0)
ROUTE = RouteReport("diffusion", 4, 1, 0, (("parse", 2),), 2, 1, 3, 400, 300, MS, MS, COUNTS, COUNTS, COUNTS)
BREAKER = BreakerReport("open", 5, 1, 12.0)
REPORT = StatusReport("ready", None, 10.0, 1.0, 1800.0, 2, 1, 4, 1, 0, 2.5, (ROUTE,), BREAKER, 25.0)

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as folder:
        yield folder


def samples(text: str) -> Samples:
    families = text_string_to_metric_families(text)
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def test_every_number_of_a_report_can_be_read_back() -> None:
    found = samples(prometheus_text(REPORT))
    assert value(found, "lacuna_ready") == 1.0
    assert value(found, "lacuna_memory_bytes") == 2.5 * 2**20
    assert value(found, "lacuna_diffusion_share_ratio") == 0.25
    assert value(found, "lacuna_jobs_total", end="done") == 4.0
    assert value(found, "lacuna_route_jobs_total", route="diffusion", end="cancelled") == 1.0
    assert value(found, "lacuna_gate_failures_total", route="diffusion", gate="parse") == 2.0
    for name, count in (("fallbacks", 2), ("slow_first_drafts", 1), ("cache_hits", 3), ("cached_tokens", 300)):
        assert value(found, f"lacuna_{name}_total", route="diffusion") == count
    for state, is_it in (("closed", 0.0), ("half_open", 0.0), ("open", 1.0)):
        assert value(found, "lacuna_breaker_state", state=state) == is_it
    assert value(found, "lacuna_breaker_openings_total") == 1.0


def test_histograms_are_cumulative_and_in_seconds() -> None:
    found = samples(prometheus_text(REPORT))
    for name in ("lacuna_first_draft_seconds", "lacuna_job_seconds"):
        buckets = [value(found, f"{name}_bucket", route="diffusion", le=le) for le in ("0.1", "0.5", "+Inf")]
        assert buckets == [2.0, 3.0, 4.0]
        assert value(found, f"{name}_count", route="diffusion") == 4.0
        assert value(found, f"{name}_sum", route="diffusion") == pytest.approx(1.45)
    assert value(found, "lacuna_passes_bucket", route="diffusion", le="4.0") == 4.0


def test_before_any_job_there_are_no_routes_and_before_the_model_no_breaker() -> None:
    found = samples(prometheus_text(replace(REPORT, state="loading", routes=(), breaker=None)))
    assert value(found, "lacuna_ready") == 0.0
    assert not [name for name, _ in found if "route" in name or "breaker" in name]


def test_one_that_does_not_answer_is_down_and_has_no_other_number() -> None:
    assert value(samples(prometheus_text(REPORT)), "lacuna_up") == 1.0
    found = samples(prometheus_text(None))
    assert {name for name, _ in found} == {"lacuna_up", "lacuna_ready"}
    assert (value(found, "lacuna_up"), value(found, "lacuna_ready")) == (0.0, 0.0)


class _Monitored(ScriptedCore):
    """A core that counts; what it tells is scripted too."""

    @property
    def monitored(self) -> Monitored:
        return Monitored((replace(ROUTE, done=len(self.computed)),), BREAKER, 25.0)


def _load(progress: object) -> _Monitored:
    return _Monitored()


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as listener:
        return int(listener.getsockname()[1])


def _get(port: int) -> str:
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


@pytest.mark.asyncio
async def test_a_port_tells_how_the_engine_is_until_it_leaves(home: Path) -> None:
    port = _free_port()
    config = EngineConfig(model="scripted", metrics_port=port)
    async with running(home, _load, config) as engine, greeted(engine.address) as client:
        client.send(fill("a"))
        assert isinstance(await client.receive(), Done)
        text = await asyncio.to_thread(_get, port)
        found = samples(text)
        assert value(found, "lacuna_route_jobs_total", route="diffusion", end="done") == 1.0
        assert value(found, "lacuna_jobs_total", end="done") == 1.0
        assert SECRET not in text
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((LOOPBACK, port))


@pytest.mark.asyncio
async def test_a_port_that_is_taken_is_said_with_a_remedy(home: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        config = EngineConfig(model="scripted", metrics_port=taken.getsockname()[1])
        with pytest.raises(EngineError, match="cannot be had") as refused:
            async with running(home, config=config):
                pass
    assert "--metrics-port" in refused.value.remedy


@pytest.mark.asyncio
async def test_a_status_tells_of_the_jobs_before_it(home: Path) -> None:
    now = [0.0]
    async with running(home, _load, clock=lambda: now[0]) as engine, greeted(engine.address) as client:
        client.send(fill("a"), fill("b"))
        assert [type(await client.receive()) for _ in range(2)] == [Done, Done]
        now[0] += 5.0
        client.send(Status())
        report = await client.receive()
    assert isinstance(report, StatusReport)
    assert (report.routes[0].done, report.diffusion_share) == (2, 25.0)
    assert report.breaker == replace(BREAKER, retry_in_s=7.0)
