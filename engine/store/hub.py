"""The source that is the model hub, through huggingface_hub, and the probe that keeps an unreachable hub cheap.

The address of the hub is huggingface_hub's own (`HF_ENDPOINT` moves it); no address is written here.
"""

from __future__ import annotations

import http.client
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from engine.store import hub_download
from engine.store.child_process import Watched, run_watched
from engine.store.progress import SourceError
from engine.store.registry import HubSpec
from engine.store.sources import Fetch

PROBE_S = 3.0

Probe = Callable[[HubSpec, str], SourceError | None]
"""Given a repository and a file's name, why it cannot be had, or None when its first byte came."""

Ask = Callable[[HubSpec, str, float], SourceError | None]
"""The same with a time limit in seconds for each step of the connection; may hang all the same."""


class HubSource:
    """A file of a model repository on the hub."""

    label = "hub"
    copies = 1

    def __init__(self, spec: HubSpec, environ: Mapping[str, str], probe: Probe | None = None) -> None:
        self._spec = spec
        self._environ = environ
        self._probe = probe or first_byte_within(PROBE_S, endpoint=environ.get("HF_ENDPOINT"))

    def fetch(self, job: Fetch) -> None:
        """Take the file from huggingface_hub's own cache, or download it. Raises SourceError, PullInterruptedError."""
        job.work.mkdir(parents=True, exist_ok=True)
        if self._environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
            raise SourceError("no_network", "skipped, HF_HUB_OFFLINE is set")
        job.report("probing", 0)
        if fault := self._probe(self._spec, job.file.name):
            raise fault
        run_watched(self._child(job), lambda done: job.report("downloading", done), job.cancel)
        (job.work / job.file.name).replace(job.part)

    def _child(self, job: Fetch) -> Watched:
        spec = self._spec
        script = str(Path(hub_download.__file__).absolute())
        # -P keeps the working folder off the import path; the script is run by its path for the same reason.
        command = [sys.executable, "-P", script, spec.repository, job.file.name, spec.revision, str(job.work)]
        environ = {
            **self._environ,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_ETAG_TIMEOUT": "10",
            "HF_HUB_DOWNLOAD_TIMEOUT": "20",
        }
        return Watched(command, environ, job.work, [job.work], job.work.with_name(job.work.name + ".log"))


def first_byte_within(limit_s: float, ask: Ask | None = None, endpoint: str | None = None) -> Probe:
    """A probe that asks for the file's first byte and gives up after `limit_s` seconds, whatever hangs.

    It follows the redirect to where the bytes really lie. Name resolution cannot be given a time limit, so the
    whole question is asked in a daemon thread that is simply left behind. `endpoint` stands in for the hub's own
    address.
    """
    question = ask or _ask_at(endpoint)

    def probe(spec: HubSpec, name: str) -> SourceError | None:
        answer: list[SourceError | None] = []
        thread = threading.Thread(target=lambda: answer.append(question(spec, name, limit_s)), daemon=True)
        thread.start()
        thread.join(limit_s)
        return answer[0] if answer else SourceError("no_network", f"no answer within {limit_s:.0f} s")

    return probe


def _ask_at(endpoint: str | None) -> Ask:
    """Asks why the first byte of a file cannot be had there; None means it came."""

    def ask(spec: HubSpec, name: str, limit_s: float) -> SourceError | None:
        from huggingface_hub import hf_hub_url

        url = hf_hub_url(spec.repository, name, revision=spec.revision, endpoint=endpoint)
        request = urllib.request.Request(url, headers={"Range": "bytes=0-0"})  # noqa: S310  # huggingface_hub's address
        try:
            with urllib.request.urlopen(request, timeout=limit_s) as reply:  # noqa: S310
                return None if reply.read(1) else SourceError("not_found", "it sent an empty file")
        except urllib.error.HTTPError as error:
            with error:
                return SourceError("not_found", f"it answered {error.code} {error.reason}")
        except (OSError, ValueError, http.client.HTTPException) as error:
            return SourceError("no_network", f"no route ({getattr(error, 'reason', error)})")

    return ask
