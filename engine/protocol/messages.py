"""Every message that crosses the engine's socket, as frozen dataclasses.

Owns the vocabulary and its version; knows nothing of bytes (see `codec`) or sockets (see `service`).
Offsets and lengths of text are counted in code points. Durations are milliseconds.
A change of any field is a change of `PROTOCOL_VERSION`: two versions never talk past each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PROTOCOL_VERSION = 3

# More texts for one gap than a person would look through.
MOST_ALTERNATIVES = 8

Route = Literal["causal", "diffusion"]
Stop = Literal["end", "lines", "budget", "deadline"]


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame of a connection. `token` is empty on a Unix socket, the shared secret on TCP."""

    protocol: int
    client: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class Fill:
    """Denoise the gap between `prefix` and `suffix`.

    `draft` is the text now in the gap (warm start), empty when there is none. `max_lines` of 0 means any
    number of lines; 1 stops at the first line end. `deadline_ms` counts from receipt, 0 means none: at the
    deadline the best text so far is returned with `stop="deadline"`. `wants_drafts` asks for `Draft` replies.
    `alternatives` is how many different texts are wanted in all, 1 to `MOST_ALTERNATIVES`; fewer may come. Where more
    than one is wanted, each is told as soon as it is ready, by `Found`.
    """

    id: str
    language: str
    prefix: str
    suffix: str
    draft: str = ""
    max_tokens: int = 128
    max_lines: int = 0
    deadline_ms: int = 0
    wants_drafts: bool = False
    alternatives: int = 1


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Denoise `selection` again, following `instruction`; `before` and `after` are its fixed surroundings."""

    id: str
    language: str
    before: str
    selection: str
    after: str
    instruction: str
    max_tokens: int = 512
    deadline_ms: int = 0
    wants_drafts: bool = False


@dataclass(frozen=True, slots=True)
class Cancel:
    """Stop the job `id`. Unknown or finished ids are ignored; a live job is answered with `Cancelled`."""

    id: str


@dataclass(frozen=True, slots=True)
class Status:
    """Ask for a `StatusReport`."""


@dataclass(frozen=True, slots=True)
class Shutdown:
    """Ask the engine to leave: running jobs are cancelled, waiting ones refused, the socket removed."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the engine is: sent once per connection inside `Ready`, and again in `StatusReport`.

    `window_tokens` bounds prompt and gap together. `forward_ms` pairs (rows in one pass, measured milliseconds).
    """

    model: str
    family: str
    device: str
    precision: str
    adapter: str
    window_tokens: int
    threads: int
    forward_ms: tuple[tuple[int, float], ...]
    engine_version: str
    pid: int


@dataclass(frozen=True, slots=True)
class Loading:
    """The model is not ready yet. `fraction` runs from 0 to 1; requests sent now fail with kind `loading`."""

    stage: str
    fraction: float


@dataclass(frozen=True, slots=True)
class Ready:
    """The engine serves. Requests are accepted from here on."""

    facts: Facts


@dataclass(frozen=True, slots=True)
class Draft:
    """The canvas after a denoising step: `text[:settled]` is accepted, the rest may still change."""

    id: str
    text: str
    settled: int
    step: int
    steps: int


@dataclass(frozen=True, slots=True)
class Found:
    """The texts that a `Fill` which asked for several has so far, as in its `Done`: they will not change."""

    id: str
    text: str
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stats:
    """How a result came to be. `passes` are forward passes over the canvas, `tokens` the tokens they yielded.

    Both, `stop` and `drafts` tell of the first text alone; only `ms_total` holds the work on alternatives too.

    `drafted` and `accepted` count draft tokens offered and kept, per source, as (source, offered, kept).
    `ms_first_draft` and `ms_total` count from receipt of the request; `ms_encode` is the prompt's share.
    """

    route: Route
    reason: str
    stop: Stop
    passes: int
    tokens: int
    prompt_tokens: int
    cached_tokens: int
    ms_encode: float
    ms_first_draft: float
    ms_total: float
    drafts: tuple[tuple[str, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a `Fill` (the gap's text) or `Rewrite` (the selection's new text), raw as denoised.

    `alternatives` are other texts for the gap, the likeliest first, each different from `text` and the others.
    """

    id: str
    text: str
    stats: Stats
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The job was cancelled; nothing further is computed or sent for it."""

    id: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The request could not be served. `id` is empty when the fault belongs to the connection, not to a job.

    `kind` is one of `errors.FAILURE_KINDS`; `message` says what happened, `remedy` what to do about it.
    """

    id: str
    kind: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class StatusReport:
    """A live engine's state. Memory in MiB (resident set), durations in seconds."""

    state: Literal["loading", "ready", "draining"]
    facts: Facts | None
    uptime_s: float
    idle_s: float
    idle_limit_s: float
    clients: int
    jobs_running: int
    jobs_done: int
    jobs_cancelled: int
    jobs_failed: int
    memory_mib: float


Request = Hello | Fill | Rewrite | Cancel | Status | Shutdown
Reply = Loading | Ready | Draft | Found | Done | Cancelled | Failed | StatusReport
Message = Request | Reply
