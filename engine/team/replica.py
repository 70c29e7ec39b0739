"""What runs in a replica of Ray Serve: `Engines`, the models of one process, loaded when they are first asked for.

The class is deployed by `ray_app`; nothing here reads documents into a log or keeps them beyond their job.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from ray import serve

from engine.config import EngineConfig
from engine.job import Core
from engine.loop import CoreFactory, Progress
from engine.protocol import codec
from engine.protocol.errors import EngineError
from engine.protocol.messages import Fill, Rewrite
from engine.runtime.environment import prepare_environment
from engine.team.batch_limits import BatchLimits
from engine.team.resident import ResidentEngine

log = logging.getLogger(__name__)

Frames = AsyncGenerator[tuple[str, Any], None]


class Engines:
    """Serves jobs of several models, `serve.multiplexed`: as many stay loaded as the deployment says.

    Streams of pairs: ("frame", bytes), or ("failed", (kind, message, remedy)) where the engine could not serve at all:
    exceptions lose their class between processes.
    """

    def __init__(self, configs: Mapping[str, EngineConfig], limits: BatchLimits, models_at_once: int) -> None:
        self._configs = dict(configs)
        self._limits = limits
        self._resident: list[ResidentEngine] = []
        self._watches: list[asyncio.Task[None]] = []

        # A function, not a method: how many models stay is only known here.
        async def load(model: str) -> _Loaded:
            return await self._load(model)

        self._engine_of = serve.multiplexed(max_num_models_per_replica=models_at_once)(load)

    async def reconfigure(self, config: Mapping[str, str]) -> None:
        """Called by Serve before a replica counts as ready: loads that model. Raises RuntimeError for it to show."""
        try:
            await self._engine_of(config["preload"])
        except EngineError as error:
            raise RuntimeError(f"{error.message}; {error.remedy}") from None

    async def run(self, user: str, payload: bytes) -> Frames:
        """A job's frames."""
        request = codec.decode_request(payload)
        assert isinstance(request, Fill | Rewrite)
        try:
            engine = await self._asked_for()
            async with contextlib.aclosing(engine.jobs(user, request)) as replies:
                async for reply in replies:
                    yield "frame", codec.encode(reply)
        except EngineError as error:
            yield "failed", (error.kind, error.message, error.remedy)

    async def facts(self) -> Frames:
        """One pair: ("facts", the Facts), or a failure."""
        try:
            engine = await self._asked_for()
            yield "facts", await engine.load()
        except EngineError as error:
            yield "failed", (error.kind, error.message, error.remedy)

    def check_health(self) -> None:
        """Raises RuntimeError when a loop has ended: Serve then puts another replica in this one's place."""
        self._resident = [engine for engine in self._resident if not engine.is_retired]
        if any(not engine.is_alive for engine in self._resident):
            raise RuntimeError("the loop of an engine has ended")

    async def _asked_for(self) -> ResidentEngine:
        loaded: _Loaded = await self._engine_of(serve.get_multiplexed_model_id())
        return loaded.engine

    async def _load(self, model: str) -> _Loaded:
        config = self._configs[model]
        engine = ResidentEngine(_factory(config, self._limits))
        await engine.load()
        self._resident.append(engine)
        self._watches.append(asyncio.create_task(_end_when_stuck(engine, config.step_limit_s)))
        return _Loaded(engine)


class _Loaded:
    """What `serve.multiplexed` keeps of a model. It calls `__del__` to let one go, perhaps while its jobs run."""

    def __init__(self, engine: ResidentEngine) -> None:
        self.engine = engine

    def __del__(self) -> None:
        self.engine.retire()


async def _end_when_stuck(engine: ResidentEngine, wanted_s: float) -> None:
    """End the process when a step hangs, as nothing else ends that: its jobs go to other replicas."""
    log.error("%s; this replica ends", await engine.until_stuck(wanted_s))
    logging.shutdown()
    os._exit(1)


def _factory(config: EngineConfig, limits: BatchLimits) -> CoreFactory:
    def load(progress: Progress) -> Core:
        prepare_environment(os.environ)
        # torch is imported here, on the loop's thread.
        from engine.startup import load_core
        from engine.team.batching import batched

        return batched(load_core(config, progress), limits)

    return load
