"""Every message that crosses the engine's socket, as frozen dataclasses.

Owns the vocabulary and its version; knows nothing of bytes (see `codec`) or sockets (see `service`).
Offsets and lengths of text are counted in code points. Durations are milliseconds.
A change of any field is a change of `PROTOCOL_VERSION`: two versions never talk past each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PROTOCOL_VERSION = 7

# More texts for one gap than a person would look through.
MOST_ALTERNATIVES = 8

# `Fill.best_of` of an act that somebody waits for: of 2 to 5 the one after which no more rows passed.
TEXTS_WEIGHED = 4

# More holes in one request than a person would mark in a file.
MOST_HOLES = 64

Route = Literal["causal", "diffusion"]
Stop = Literal["end", "lines", "budget", "deadline"]
Gate = Literal["confidence", "repetition", "parse", "length", "fault"]


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame of a connection. `token` is empty on a Unix socket, the shared secret on TCP."""

    protocol: int
    client: str
    token: str = ""


@dataclass(frozen=True, slots=True)
class FurtherHole:
    """One more hole of a `Fill`, and the known text between it and the hole in front of it: the `island`.

    `draft` and `max_lines` are those of `Fill`, for this hole.
    """

    island: str
    draft: str = ""
    max_lines: int = 0


@dataclass(frozen=True, slots=True)
class Constraints:
    """What the text of every hole of a `Fill` must obey. A field that is 0, false or empty asks for nothing.

    `max_lines` and `max_characters` make each hole's text fit (`Fill.max_lines` cuts it). `allowed` holds the
    characters that may be written. `must_parse`: the holes bring no syntax error into the text from prefix to suffix,
    by the grammar of its language. `json_schema`: a JSON Schema as JSON text; prefix to suffix with the holes filled
    must be one document that follows it. A text that cannot be made to obey is `Failed` with the kind `unsatisfied`;
    one that was cut off by budget or deadline has not been looked at as a whole.
    """

    max_lines: int = 0
    max_characters: int = 0
    allowed: str = ""
    must_parse: bool = False
    json_schema: str = ""


@dataclass(frozen=True, slots=True)
class Fill:
    """Denoise the gap between `prefix` and `suffix`.

    `draft` is the text now in the gap (warm start), empty when there is none. `max_lines` of 0 means any
    number of lines; 1 stops at the first line end. `deadline_ms` counts from receipt, 0 means none: at the
    deadline the best text so far is returned with `stop="deadline"`. `wants_drafts` asks for `Draft` replies.
    `alternatives` is how many different texts are wanted in all, 1 to `MOST_ALTERNATIVES`; fewer may come. Where more
    than one is wanted, each is told as soon as it is ready, by `Found`.

    `best_of` is among how many texts the answer is chosen, 1 to `MOST_ALTERNATIVES`: not the likeliest, but the one
    that reads best with `suffix` behind it. That takes longer, and nothing of a draft is settled before the answer.
    It counts where only one text is wanted and there are no `constraints`; families that denoise whole canvases see
    both sides as one text, and do without.

    `further` holds the holes behind the first one, in order, at most `MOST_HOLES` in all: the text is prefix, hole,
    island, hole, ... suffix. All are filled in this one job, each fitting the others; families that can denoise them
    on one canvas do, the others go from hole to hole. `max_tokens` is the budget of each hole, `deadline_ms` that of
    the job. With further holes or `constraints` there is one text only, whatever `alternatives` says.
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
    best_of: int = 1
    further: tuple[FurtherHole, ...] = ()
    constraints: Constraints | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Denoise `selection` again, following `instruction`; `before` and `after` are its fixed surroundings.

    A `seed` of 0 gives the likeliest text. Any other, from 1 on, gives a text that differs from it where the model was
    in doubt: the same one for the same seed and request.
    """

    id: str
    language: str
    before: str
    selection: str
    after: str
    instruction: str
    max_tokens: int = 512
    deadline_ms: int = 0
    wants_drafts: bool = False
    seed: int = 0


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
    """The canvas after a denoising step: `text[:settled]` is accepted, the rest may still change.

    `hole` is the number of the hole it is of, from 0: the one that is being made, and where all are made together the
    first that is not settled yet.
    """

    id: str
    text: str
    settled: int
    step: int
    steps: int
    hole: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """The texts that a `Fill` which asked for several has so far, as in its `Done`: they will not change."""

    id: str
    text: str
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stats:
    """How a result came to be. `passes` are forward passes over the canvas, `tokens` the tokens they yielded.

    Both, `stop` and `drafts` tell of the first text alone; only `ms_total` holds the work on alternatives too. Of
    several holes they are sums over all of them, and `stop` is the first hole's.

    `drafted` and `accepted` count draft tokens offered and kept, per source, as (source, offered, kept).
    `ms_first_draft` and `ms_total` count from receipt of the request; `ms_encode` is the share of the (first) prompt.

    `confidence` is the mean probability of the tokens, None where nobody computed it. `gates` are those that spoke
    against a text of the job, by name ("fault" for a route that broke down). `fallback`: the text was made again
    causally for that, and is the one that is given; `route` tells of it.
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
    confidence: float | None = None
    gates: tuple[Gate, ...] = ()
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class Filled:
    """The text of a further hole, and what ended it. One that ended by budget or deadline may be cut off anywhere."""

    text: str
    stop: Stop


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a `Fill` (the gap's text) or `Rewrite` (the selection's new text), raw as denoised.

    `alternatives` are other texts for the gap, the likeliest first, each different from `text` and the others.
    `further` holds the texts of `Fill.further`, one for each, in order.
    """

    id: str
    text: str
    stats: Stats
    alternatives: tuple[str, ...] = ()
    further: tuple[Filled, ...] = ()

    @property
    def holes(self) -> tuple[Filled, ...]:
        """The texts of all holes, in order."""
        return (Filled(self.text, self.stats.stop), *self.further)


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
class Histogram:
    """How many values fell at or below each of `bounds`, ascending, and above the one before it.

    `counts` has one more place than `bounds`, for values above the last. `total` is the sum of the values.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class RouteReport:
    """What came of the jobs of one route since the engine started. Durations in milliseconds.

    A job counts for the route its answer came by; `gate_failures` and `fallbacks` count for the route whose text was
    refused. `slow_first_drafts`: first drafts that took longer than `monitor.SLOW_FIRST_DRAFT_MS`. `cache_hits`: jobs
    that found some of their prompt resident; `prompt_tokens` and `cached_tokens` are sums. `acceptance` is of jobs that
    offered drafts, the share of draft tokens kept.
    """

    route: Route
    done: int
    cancelled: int
    failed: int
    gate_failures: tuple[tuple[Gate, int], ...]
    fallbacks: int
    slow_first_drafts: int
    cache_hits: int
    prompt_tokens: int
    cached_tokens: int
    first_draft_ms: Histogram
    total_ms: Histogram
    passes: Histogram
    tokens_per_pass: Histogram
    acceptance: Histogram


@dataclass(frozen=True, slots=True)
class BreakerReport:
    """The breaker of the diffusion route: `closed` lets jobs through, `open` none, `half_open` is trying one.

    `failures` in a row so far, `openings` since the start, `retry_in_s` until the next try, 0 unless `open`.
    """

    state: Literal["closed", "open", "half_open"]
    failures: int
    openings: int
    retry_in_s: float


@dataclass(frozen=True, slots=True)
class StatusReport:
    """A live engine's state. Memory in MiB (resident set), durations in seconds.

    `routes` tells of each route that a job took, at most one for each `Route`. `breaker` is None where there is no
    second route to go to, and before the model is loaded. `diffusion_share` is the percentage of jobs that may take
    the diffusion route.
    """

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
    routes: tuple[RouteReport, ...] = ()
    breaker: BreakerReport | None = None
    diffusion_share: float = 100.0


Request = Hello | Fill | Rewrite | Cancel | Status | Shutdown
Reply = Loading | Ready | Draft | Found | Done | Cancelled | Failed | StatusReport
Message = Request | Reply
