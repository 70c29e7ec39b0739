"""Outcomes as rows, and the tables of `docs/fleet.md`: whose engine, how many of them, how a batch is gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tests.bench.fleet.costs import Hardware, h100, l4, laptop
from tests.bench.fleet.replica import Batching
from tests.bench.fleet.simulation import Outcome, Plan, percentile

# A month of work: hours in which somebody is at the keyboard.
HOURS = 160
_HEAD = (
    "engine",
    "people",
    "replicas",
    "window",
    "first draft after asking, p50 / p95",
    "text after the key, p50 / p95",
    "dropped / before a draft",
    "pauses with a text",
    "busy",
    "batch",
    "cold",
    "$ a person, hour / month",
)

Simulate = Callable[[Plan], Outcome]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a fleet must keep to. draft_p95_s: first draft after asking. offered: share of the pauses with a text.

    First drafts alone flatter a slow fleet: whoever types on before a draft comes is not among those who got one.
    """

    draft_p95_s: float = 0.25
    offered: float = 0.85

    def hold(self, outcome: Outcome) -> bool:
        """Whether an outcome keeps to them."""
        slowest = percentile(outcome.drafts, 0.95)
        return slowest is not None and slowest <= self.draft_p95_s and outcome.offered >= self.offered


@dataclass(frozen=True, slots=True)
class Section:
    """One table: what it is about, and the plans of its rows."""

    title: str
    plans: tuple[Plan, ...]


def cells(outcome: Outcome) -> tuple[str, ...]:
    """One row, under the names of `head`."""
    plan = outcome.plan
    window = plan.batching.window_s
    each = ", each step" if plan.batching.every_step else ""
    is_own = plan.routing == "own"
    requests = outcome.requests
    hourly = outcome.dollars_per_user_hour
    return (
        plan.hardware.name,
        str(plan.users),
        "own" if is_own else f"{plan.replicas} {plan.routing.replace('_', ' ')}" if plan.replicas > 1 else "1",
        f"{window * 1000:.0f} ms{each}" if window else "none",
        _times(outcome.drafts),
        _times(outcome.answers),
        f"{_percent(outcome.dropped, requests)} / {_percent(outcome.dropped_unseen, requests)}",
        f"{outcome.offered:.0%}",
        f"{outcome.busy:.0%}",
        f"{outcome.batch:.1f}",
        f"{outcome.cold:.0%}",
        "own machine" if is_own else f"{hourly:.3f} / {hourly * HOURS:.0f}",
    )


def head() -> tuple[str, ...]:
    """The names of a row's cells."""
    return _HEAD


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head(), ("---",) * len(head()), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def record(outcome: Outcome) -> dict[str, str | int | float | None]:
    """What `--json` prints of an outcome. Times in milliseconds."""
    plan = outcome.plan
    times = {
        f"{name}_p{round(share * 100)}_ms": _ms(percentile(values, share))
        for name, values in (("draft", outcome.drafts), ("text", outcome.answers))
        for share in (0.5, 0.95)
    }
    return {
        "hardware": plan.hardware.name,
        "users": plan.users,
        "replicas": plan.users if plan.routing == "own" else plan.replicas,
        "routing": plan.routing,
        "window_ms": plan.batching.window_s * 1000,
        "every_step": plan.batching.every_step,
        "most": min(plan.batching.most, plan.hardware.most),
        "seed": plan.seed,
        "minutes": plan.minutes,
        "keys": outcome.keys,
        "requests": outcome.requests,
        "answered": outcome.answered,
        "dropped": outcome.dropped,
        "dropped_before_draft": outcome.dropped_unseen,
        "pending": outcome.pending,
        **times,
        "pauses_with_text": round(outcome.offered, 4),
        "busy": round(outcome.busy, 4),
        "batch": round(outcome.batch, 3),
        "cold": round(outcome.cold, 4),
        "dollars_per_user_hour": round(outcome.dollars_per_user_hour, 5),
    }


def least_replicas(plan: Plan, simulate: Simulate, limits: Limits, at_most: int = 64) -> Outcome | None:
    """The outcome with the fewest replicas that keep to the limits; None where `at_most` do not either."""

    def tried(replicas: int) -> Outcome | None:
        outcome = simulate(replace(plan, replicas=replicas))
        return outcome if limits.hold(outcome) else None

    too_few, count = 0, 1
    while (best := tried(count)) is None:
        if count == at_most:
            return None
        too_few, count = count, min(2 * count, at_most)
    while count - too_few > 1:
        middle = (count + too_few) // 2
        if (better := tried(middle)) is None:
            too_few = middle
        else:
            best, count = better, middle
    return best


def sections(minutes: float, seed: int) -> Iterator[Section]:
    """The tables of the page."""

    def plan(hardware: Hardware, users: int, replicas: int = 1, window_ms: float = 0.0, **more: object) -> Plan:
        batching = Batching(window_ms / 1000, every_step=bool(more.pop("every_step", False)))
        return replace(Plan(hardware, users, replicas, batching, minutes=minutes, seed=seed), **more)  # type: ignore[arg-type]

    small, large = l4(), h100()
    wide = replace(large, name=f"{large.name}, 32 canvases", most=32)
    yield Section(
        "One engine each, or one for all",
        (
            plan(laptop(), 20, routing="own"),
            *(plan(small, users) for users in (10, 20, 50, 100, 200)),
            *(plan(large, users) for users in (2, 5, 10, 20)),
            *(plan(wide, users) for users in (10, 20, 50)),
        ),
    )
    yield Section(
        "Gathering a batch",
        (
            *(plan(small, 50, window_ms=window) for window in (0, 10, 50, 100)),
            plan(small, 50, window_ms=50, every_step=True),
            *(plan(wide, 20, window_ms=window) for window in (0, 10, 50, 100)),
            plan(wide, 20, window_ms=50, every_step=True),
        ),
    )
    yield Section(
        "Where a request goes",
        tuple(
            plan(hardware, users, replicas, routing=routing)
            for hardware, users, replicas in ((small, 200, 4), (large, 20, 4))
            for routing in ("two_choices", "sticky")
        ),
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


def _times(values: Sequence[float]) -> str:
    found = (percentile(values, share) for share in (0.5, 0.95))
    return " / ".join("–" if at is None else f"{at * 1000:.0f} ms" for at in found)


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "–"
