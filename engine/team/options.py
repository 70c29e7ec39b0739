"""`TeamOptions`: everything a team's engine is told at its start, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from engine.config import DEFAULT_MODEL, EngineConfig
from engine.protocol.address import is_loopback
from engine.protocol.errors import EngineError
from engine.team.batch_limits import BatchLimits
from engine.team.quotas import Quota

PORT = 9258


@dataclass(frozen=True, slots=True)
class TeamOptions:
    """How many engines serve what to whom.

    engines: one configuration for each model; the first is who names none gets. entries: users and the digests of
    their tokens. replicas: least and most of them; more than one number lets Ray Serve follow the load. models_at_once:
    how many models a replica keeps loaded. cpus, gpus: what a replica takes of its machine. cluster: address of a
    running Ray cluster, `auto` to find the one of this machine, empty for one of our own that ends with us.
    """

    engines: tuple[EngineConfig, ...] = (EngineConfig(),)
    entries: tuple[tuple[str, str], ...] = ()
    host: str = "127.0.0.1"
    port: int = PORT
    certificate: Path | None = None
    key: Path | None = None
    replicas: tuple[int, int] = (1, 1)
    models_at_once: int = 1
    cpus: float = 1.0
    gpus: float = 0.0
    cluster: str = ""
    limits: BatchLimits = field(default_factory=BatchLimits)
    quota: Quota = field(default_factory=Quota)

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and (self.certificate is None or self.key is None):
            raise _bad(
                f"{self.host} can be reached from other machines, which could then read along",
                "give --tls-certificate and --tls-key, or use 127.0.0.1",
            )
        if (self.certificate is None) != (self.key is None):
            raise _bad("a certificate needs its key, and a key its certificate", "give both of them")
        least, most = self.replicas
        if not 1 <= least <= most:
            raise _bad(f"there cannot be {least} to {most} replicas", "use 1 or more, and the larger number last")
        if self.limits.canvases < 1 or not self.limits.window_s >= 0:
            raise _bad("a pass needs room for a canvas, and a window of 0 ms or more", "use for example 32 and 50")
        names = [engine.model for engine in self.engines]
        if not names or len(set(names)) != len(names):
            raise _bad("each model can be served once, and at least one", f"name it once: --model {DEFAULT_MODEL}")

    @property
    def url(self) -> str:
        """Where clients find it, from this machine."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"


def _bad(message: str, remedy: str) -> EngineError:
    return EngineError("bad_request", message, remedy)
