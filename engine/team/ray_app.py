"""The application that Ray Serve runs: a gate in front of replicas, and how it is deployed and taken down.

Replicas, routing, restarts and autoscaling are Ray Serve's. A job that loses its replica is given to another one here:
it is a function of its request, so it gives the same text there.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import ray
from ray import serve
from ray.exceptions import ObjectLostError, RayActorError, WorkerCrashedError
from ray.serve.config import HTTPOptions
from ray.serve.exceptions import ReplicaUnavailableError
from ray.serve.handle import DeploymentHandle
from starlette.requests import Request as HttpRequest

from engine.protocol import codec
from engine.protocol.errors import EngineError
from engine.protocol.framing import HEADER
from engine.protocol.messages import Draft, Facts
from engine.team.access import TokenBook
from engine.team.gate import Gate
from engine.team.options import TeamOptions
from engine.team.quotas import Quota, QuotaBook
from engine.team.replica import Engines

log = logging.getLogger(__name__)

NAME = "lacuna"
TRIES = 4
"""Replicas a job may lose. More in a row are no accident."""
_LOST = (RayActorError, WorkerCrashedError, ObjectLostError, ReplicaUnavailableError)
_GATE_REQUESTS = 4096
"""Jobs the gate holds open; quotas keep them far below."""
_LEAVING_S = 60.0
_START_TRIES = 3
_SAID = "RuntimeError: "
_ADMIT_S = 10.0


class RayPool:
    """A `gate.Pool` over the replicas of a deployment."""

    def __init__(self, engines: DeploymentHandle[Any]) -> None:
        self._engines = engines

    async def run(self, model: str, user: str, payload: bytes) -> AsyncGenerator[bytes, None]:
        """See `gate.Pool`. As many drafts as a lost replica has told are not told again."""
        told = 0
        for _ in range(TRIES):
            handle = self._engines.options(stream=True, multiplexed_model_id=model)
            known = told
            try:
                async with contextlib.aclosing(_followed(handle.run.remote(user, payload))) as pairs:
                    async for frame in pairs:
                        if known and _is_draft(frame):
                            known -= 1
                            continue
                        told += 1
                        yield frame
            except _LOST as loss:
                log.warning("a replica was lost (%s); its job goes to another one", type(loss).__name__)
            except EngineError as error:
                if error.kind != "gone":
                    raise
                log.warning("a replica left; its job goes to another one")
            else:
                return
        raise EngineError("gone", f"{TRIES} replicas were lost under this job", "ask again, and see the engine's log")

    async def facts(self, model: str) -> Facts:
        """See `gate.Pool`."""
        for _ in range(TRIES):
            handle = self._engines.options(stream=True, multiplexed_model_id=model)
            with contextlib.suppress(*_LOST):
                async with contextlib.aclosing(_followed(handle.facts.remote())) as found:
                    async for facts in found:
                        assert isinstance(facts, Facts)
                        return facts
        raise EngineError("gone", "no replica answers", "wait until one has started, and see the engine's log")


async def _followed(response: Any) -> AsyncGenerator[Any, None]:
    """What a replica yields. Closed early, it cancels the call. Raises EngineError as the replica put it."""
    is_over = False
    try:
        async for kind, value in response:
            if kind == "failed":
                raise EngineError(*value)
            yield value
        is_over = True
    finally:
        if not is_over:
            response.cancel()


def _is_draft(frame: bytes) -> bool:
    return isinstance(codec.decode_reply(frame[HEADER.size :]), Draft)


class GateDeployment:
    """The ingress: one `Gate`, whose books hold for all replicas."""

    def __init__(self, engines: DeploymentHandle[Any], models: Sequence[str], quota: Quota) -> None:
        self._gate = Gate(RayPool(engines), None, QuotaBook(quota), models)

    def admit(self, entries: Sequence[tuple[str, str]]) -> None:
        """Who may come. Told by the command again and again, so that a gate that was started anew knows it too."""
        self._gate.admit(TokenBook(tuple(entries)))

    async def __call__(self, request: HttpRequest) -> Any:
        """Answer a request."""
        return await self._gate.answer(request)


class Application:
    """What was deployed, as the command that did it sees it."""

    def __init__(self, gate: DeploymentHandle[Any]) -> None:
        self._gate = gate

    def admit(self, entries: Sequence[tuple[str, str]]) -> None:
        """Let these users in, and nobody else. A gate that does not answer now is told the next time."""
        try:
            self._gate.admit.remote(list(entries)).result(timeout_s=_ADMIT_S)
        except (TimeoutError, *_LOST) as fault:
            log.warning("the gate does not answer (%s)", type(fault).__name__)


def start(options: TeamOptions, environment: Mapping[str, str]) -> Application:
    """Join or start a Ray cluster, and serve.

    Raises EngineError: bad_request for certificates that are no files, gone without a cluster, internal when no
    replica starts.
    """
    _require_certificates(options)
    _join(options, environment)
    http: dict[str, Any] = {"host": options.host, "port": options.port}
    if options.certificate is not None:
        http |= {"ssl_certfile": str(options.certificate), "ssl_keyfile": str(options.key)}
    serve.start(proxy_location="HeadOnly", http_options=HTTPOptions(**http))
    try:
        application = Application(serve.run(_application(options), name=NAME, route_prefix="/"))
    except RuntimeError as fault:
        why = _why_not_started() or str(fault)
        raise EngineError("internal", f"the replicas do not start: {why}", "mend that, then start again") from None
    application.admit(options.entries)
    return application


def _why_not_started() -> str:
    """What a replica said that could not load its model, as far as Serve kept it."""
    application = serve.status().applications.get(NAME)
    engines = application.deployments.get("engines") if application is not None else None
    said = [line.partition(_SAID)[2] for line in (engines.message if engines else "").splitlines() if _SAID in line]
    return said[-1].strip() if said else ""


def stop(options: TeamOptions) -> None:
    """Let running jobs end, and take the application down; a cluster of our own with it.

    Serve, which holds the port, stays only where a shared cluster has other applications.
    """
    with contextlib.suppress(Exception):
        serve.delete(NAME)
    if not options.cluster or not _applications():
        serve.shutdown()  # type: ignore[no-untyped-call]
    ray.shutdown()


def _applications() -> Sequence[str]:
    """Names of what Serve runs on the cluster; one is taken to be there where nobody says."""
    try:
        return list(serve.status().applications)
    except Exception:  # noqa: BLE001 - leaving goes on whatever it was
        return ["unknown"]


def _application(options: TeamOptions) -> Any:
    models = [config.model for config in options.engines]
    least, most = options.replicas
    scaling: dict[str, Any] = {"num_replicas": least}
    if most > least:
        # Half a batch in progress is when another replica begins to pay.
        target = max(1, options.limits.canvases // 2)
        load = {"min_replicas": least, "max_replicas": most, "target_ongoing_requests": target}
        scaling = {"autoscaling_config": load}
    engines = serve.deployment(
        name="engines",
        ray_actor_options={"num_cpus": options.cpus, "num_gpus": options.gpus},
        max_ongoing_requests=2 * options.limits.canvases,
        user_config={"preload": models[0]},
        max_constructor_retry_count=_START_TRIES,
        health_check_period_s=5,
        health_check_timeout_s=30,
        graceful_shutdown_timeout_s=_LEAVING_S,
        **scaling,
    )(Engines)
    gate = serve.deployment(
        name="gate",
        ray_actor_options={"num_cpus": 0},
        max_ongoing_requests=_GATE_REQUESTS,
        graceful_shutdown_timeout_s=_LEAVING_S,
    )(GateDeployment)
    configs = dict(zip(models, options.engines, strict=True))
    return gate.bind(engines.bind(configs, options.limits, options.models_at_once), models, options.quota)


def _join(options: TeamOptions, environment: Mapping[str, str]) -> None:
    # Ray reports how it is used unless it is told not to, and asks on a terminal.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    log_to_driver = environment.get("LACUNA_TEAM_LOG", "") == "all"
    try:
        if options.cluster:
            ray.init(address=options.cluster, log_to_driver=log_to_driver)
            return
        # Ray's own ports are open to other machines; since 2.60 who comes there without Ray's token is refused.
        ray.init(address="local", include_dashboard=False, log_to_driver=log_to_driver)
    except ConnectionError as fault:
        raise EngineError(
            "gone",
            f"no Ray cluster answers at {options.cluster}",
            "start one with `ray start --head` and say --cluster auto, or leave --cluster out",
        ) from fault


def _require_certificates(options: TeamOptions) -> None:
    for path in (options.certificate, options.key):
        if path is not None and not path.is_file():
            raise EngineError("bad_request", f"{path} is no file", "name the PEM files of the certificate and its key")
