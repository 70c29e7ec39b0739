"""Bringing a model's files onto this machine: one source after the other, under a lock, judged by digest.

Owns the order of events of a pull. Where bytes come from is `sources`, where they lie is `shelf`.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from engine.store.child_process import bytes_below
from engine.store.integrity import Stamp, sha256_of
from engine.store.progress import Cause, PullError, PullInterruptedError, PullProgress, SourceError, SpeedMeter, Stage
from engine.store.registry import ModelFile
from engine.store.shelf import Shelf
from engine.store.sources import Fetch, PathSource, Source, os_failure

SPARE_BYTES = 64 << 20
LOCK_POLL_S = 0.5

_BEGIN: dict[Stage, str] = {
    "probing": "asking {source} for {file}",
    "downloading": "downloading {file} from {source}",
    "assembling": "joining the parts of {file}",
    "verifying": "checking the digest of {file}",
}


class Reporter:
    """Turns counts of bytes into `PullProgress`, with a sentence whenever another stage or source begins."""

    def __init__(self, progress: Callable[[PullProgress], None], clock: Callable[[], float]) -> None:
        self._progress = progress
        self._meter = SpeedMeter(clock)
        self._now: tuple[Stage, str, str] | None = None

    def say(self, stage: Stage, source: str, message: str) -> None:
        """Report something that is not counted."""
        self._now = None
        self._progress(PullProgress(stage, source, message))

    def count(self, stage: Stage, source: str, file: ModelFile, done: int) -> None:
        """Report that `done` bytes of `file` are through this stage."""
        message = "" if self._now == (stage, source, file.name) else self._begin(stage, source, file)
        speed = self._meter.speed(done)
        total = file.size or 0
        shown = min(done, total) if total else done
        left = (total - shown) / speed if total and speed > 0 else None
        self._progress(PullProgress(stage, source, message, shown, total, speed, left))

    def _begin(self, stage: Stage, source: str, file: ModelFile) -> str:
        self._now = (stage, source, file.name)
        self._meter.restart()
        return _BEGIN.get(stage, stage).format(source=source, file=file.name)


@dataclass(frozen=True, slots=True)
class Pull:
    """One pull of the model on `shelf` from `sources`, in their order."""

    shelf: Shelf
    sources: Sequence[Source]
    progress: Callable[[PullProgress], None]
    cancel: threading.Event
    free_bytes: Callable[[Path], int]
    clock: Callable[[], float] = time.monotonic

    def run(self) -> Path:
        """Bring what is missing. Raises PullError; whatever happens, no unfinished file has a finished one's name."""
        reporter = Reporter(self.progress, self.clock)
        try:
            self._prepare()
            with self._alone(reporter):
                for file in self.shelf.entry.files:
                    self._ensure(file, reporter)
        except PullInterruptedError as stop:
            raise self._interrupted() from stop
        reporter.say("done", "", f"{self.shelf.entry.name} is ready")
        return self.shelf.path

    def _prepare(self) -> None:
        try:
            self.shelf.work.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"The folder {self.shelf.folder} cannot be written: {error.strerror}."
            cause = os_failure(error).cause
            if cause == "no_space":
                raise PullError(cause, message, _REMEDIES[cause]) from error
            raise PullError("failed", message, "Give LACUNA_HOME a folder you may write to.") from error

    @contextmanager
    def _alone(self, reporter: Reporter) -> Iterator[None]:
        """Hold the model's lock; while another process holds it, say so and show how far that one is."""
        lock = FileLock(str(self.shelf.lock))
        first = True
        while True:
            try:
                lock.acquire(timeout=0 if first else LOCK_POLL_S, poll_interval=LOCK_POLL_S / 5)
                break
            except Timeout:
                self._wait_turn(reporter, first)
                first = False
        try:
            yield
        finally:
            lock.release()

    def _wait_turn(self, reporter: Reporter, first: bool) -> None:
        if self.cancel.is_set():
            raise PullInterruptedError
        if first:
            reporter.say("waiting", "", "another process is fetching this model; waiting for it")
        # The other process's unfinished bytes; while it joins parts they are more than the file will have.
        total = self.shelf.entry.size or 0
        self.progress(PullProgress("waiting", "", "", min(bytes_below(self.shelf.work), total), total))

    def _ensure(self, file: ModelFile, reporter: Reporter) -> None:
        """Have `file` in place: it may be there already, from before or from the process that held the lock."""
        if file.sha256 is None:
            message = f"The digest of {file.name} is not known, so it could not be checked."
            raise PullError("failed", message, "Fetch it yourself and use `lacuna models add PATH --name NAME`.")
        state = self.shelf.state(file, report=self._checking(file, reporter), cancel=self.cancel)
        if state == "good":
            return
        if state == "wrong":
            self.shelf.file(file).unlink()
            reporter.say("verifying", "", f"{file.name} was damaged and has been removed; fetching it again")
        self._fetch(file, reporter)
        shutil.rmtree(self.shelf.work, ignore_errors=True)

    def _checking(self, file: ModelFile, reporter: Reporter) -> Callable[[int], None]:
        return lambda done: reporter.count("verifying", "", file, done)

    def _fetch(self, file: ModelFile, reporter: Reporter) -> None:
        failures: list[tuple[str, SourceError]] = []
        for source in self.sources:
            try:
                self._fetch_from(source, file, reporter)
                return
            except SourceError as failure:
                failures.append((source.label, failure))
                reporter.say("skipped", source.label, f"{source.label}: {failure.reason}")
        raise self._failed(failures)

    def _fetch_from(self, source: Source, file: ModelFile, reporter: Reporter) -> None:
        """Bring `file` from one source, check it, and only then give it its name. Raises SourceError."""
        if self.cancel.is_set():
            raise PullInterruptedError
        work = self.shelf.work / source.label.lower().replace(" ", "-")
        part = self.shelf.folder / f"{file.name}.part"
        self._check_space(source, file, work)
        job = Fetch(file, part, work, lambda stage, done: reporter.count(stage, source.label, file, done), self.cancel)
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            source.fetch(job)
            self._accept(job, source, self._checking(file, reporter))
        except OSError as error:
            raise os_failure(error) from error
        except SourceError as failure:
            if failure.cause == "wrong_digest":
                shutil.rmtree(work, ignore_errors=True)
            raise
        finally:
            part.unlink(missing_ok=True)

    def _check_space(self, source: Source, file: ModelFile, work: Path) -> None:
        needed = source.copies * (file.size or 0) + SPARE_BYTES - bytes_below(work)
        free = self.free_bytes(self.shelf.models)
        if free < needed:
            times = "" if source.copies == 1 else f", {source.copies} times the file while its parts are joined"
            reason = f"needs {megabytes(needed)} free in {self.shelf.models}{times}; {megabytes(free)} are free"
            raise SourceError("no_space", reason)

    def _accept(self, job: Fetch, source: Source, report: Callable[[int], None]) -> None:
        """Give the part its final name if it is the right file. Raises SourceError(wrong_digest)."""
        found = Stamp.of(job.part, sha256_of(job.part, report, self.cancel))
        if found.sha256 != job.file.sha256:
            size = "" if found.size == job.file.size else f", {found.size} bytes instead of {job.file.size}"
            gone = "your file is untouched" if isinstance(source, PathSource) else "the file was removed"
            reason = f"the bytes are not those of the model (sha256 {found.sha256[:12]}…{size}); {gone}"
            raise SourceError("wrong_digest", reason)
        target = self.shelf.file(job.file)
        job.part.replace(target)
        Stamp.of(target, found.sha256).write(self.shelf.stamp(job.file))

    def _failed(self, failures: Sequence[tuple[str, SourceError]]) -> PullError:
        name = self.shelf.entry.name
        causes = {failure.cause for _, failure in failures}
        cause = next((known for known in _REMEDIES if known in causes), _FAILED)
        tried = "; ".join(f"{label}: {failure.reason}" for label, failure in failures) or "it has no source"
        remedy = _WRONG_PATH if cause == "wrong_digest" and self._only_copies else _REMEDIES[cause]
        return PullError(cause, f"{name} could not be fetched. {tried}.", remedy.format(name=name))

    def _interrupted(self) -> PullError:
        name = self.shelf.entry.name
        remedy = f"`lacuna models pull {name}` goes on from what has arrived."
        if self._only_copies:
            remedy = "The same command copies the file from its start."
        return PullError("interrupted", f"Fetching {name} was interrupted; nothing unfinished is used.", remedy)

    @property
    def _only_copies(self) -> bool:
        """Whether every source is a path on this machine: a copy keeps nothing to go on from."""
        return bool(self.sources) and all(isinstance(source, PathSource) for source in self.sources)


def listing_failure(name: str, fault: SourceError) -> PullError:
    """The failure of a pull whose files, and so their digests, could not be learned."""
    message = f"{name} could not be fetched. Its files and their digests are learned from the hub: {fault.reason}."
    remedy = "Run the same command again, or use files you have in place: `lacuna models add FOLDER --name NAME`."
    return PullError(
        fault.cause, message, f"Connect to the network. {remedy}" if fault.cause == "no_network" else remedy
    )


_FAILED: Cause = "failed"
_WRONG_PATH = "Name the right file, or leave the path out: `lacuna models pull {name}` fetches it."

# In the order of what a person should put right first.
_REMEDIES: dict[Cause, str] = {
    "no_space": "Free the space, or give LACUNA_HOME a folder on a larger disk, and run the same command again.",
    "no_network": (
        "Connect to the network, or bring the file by hand and run `lacuna models pull {name} --from PATH`; "
        "what has arrived so far is kept."
    ),
    "wrong_digest": "Run the same command again; if it happens again, that source does not serve this model.",
    "not_found": "Name the file or its folder with `lacuna models pull {name} --from PATH`.",
    "failed": "Run the same command again, or bring the file by hand: `lacuna models pull {name} --from PATH`.",
}


def megabytes(count: int) -> str:
    """A number of bytes as a person reads it."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
