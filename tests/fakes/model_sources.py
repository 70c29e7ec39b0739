"""Model sources that behave and misbehave, and registries of models small enough for a test."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine.paths import Paths
from engine.store import Entry, Registry, Store
from engine.store.progress import Cause, PullInterruptedError, SourceError
from engine.store.registry import ModelFile
from engine.store.sources import Fetch, Source

CONTENT = b"GGUF" + bytes(range(256)) * 64
NAME = "small-model"
FILE = "small.gguf"


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def small_entry(content: bytes = CONTENT, *, size: int | None = None, loadable: bool = True) -> Entry:
    """A model of one file that should hold `content`; `size` states another size than it has."""
    file = ModelFile(FILE, size or len(content), digest_of(content))
    return Entry(NAME, "hybrid", "a small model", "none", loadable, files=(file,))


def small_store(
    home: Path, sources: Sequence[Source] = (), *, entry: Entry | None = None, free: int = 1 << 40
) -> Store:
    """A store below `home` that knows one small model and the given sources."""
    registry = Registry((entry or small_entry(),), NAME)
    return Store(Paths.below(home), registry, open_sources=lambda _: list(sources), free_bytes=lambda _: free)


@dataclass
class GoodSource:
    """Brings `content`, and counts how often it was asked."""

    content: bytes = CONTENT
    label: str = "good"
    copies: int = 1
    fetches: int = 0

    def fetch(self, job: Fetch) -> None:
        self.fetches += 1
        job.report("downloading", len(self.content))
        job.part.write_bytes(self.content)


@dataclass
class FailingSource:
    """Never brings anything."""

    cause: Cause = "no_network"
    reason: str = "no route"
    label: str = "failing"
    copies: int = 1

    def fetch(self, job: Fetch) -> None:
        raise SourceError(self.cause, self.reason)


@dataclass
class SlowSource:
    """Writes half of the content, says so, and goes on only when let go or cancelled."""

    label: str = "slow"
    copies: int = 1
    halfway: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def fetch(self, job: Fetch) -> None:
        half = len(CONTENT) // 2
        job.part.write_bytes(CONTENT[:half])
        job.report("downloading", half)
        self.halfway.set()
        while not self.go_on.wait(0.01):
            if job.cancel.is_set():
                raise PullInterruptedError
        job.part.write_bytes(CONTENT)


@dataclass
class BrokenDiskSource:
    """Writes half of the content, then the operating system refuses with `error`."""

    error: OSError
    label: str = "broken disk"
    copies: int = 1

    def fetch(self, job: Fetch) -> None:
        job.part.write_bytes(CONTENT[:100])
        raise self.error


@dataclass
class ResumingSource:
    """Keeps one byte per call in its work folder and is interrupted until it has all of a three-byte file."""

    label: str = "resuming"
    copies: int = 1

    def fetch(self, job: Fetch) -> None:
        job.work.mkdir(parents=True, exist_ok=True)
        kept = job.work / "kept"
        had = kept.read_bytes() if kept.exists() else b""
        kept.write_bytes(had + b"abc"[len(had) : len(had) + 1])
        if len(had) < 2:
            raise PullInterruptedError
        kept.replace(job.part)
