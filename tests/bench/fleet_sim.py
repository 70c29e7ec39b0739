"""Engines for a team, simulated before they are paid for: `python -m tests.bench.fleet_sim [--users 50] [--json]`.

People type, pause, and drop what comes too late; requests go over a network to replicas that gather them into steps.
What a step costs was measured here or is published (`tests/bench/fleet/costs.py`). Without options it prints the tables
of docs/fleet.md, which `--write-page` puts there; with `--users` it answers for one fleet, and with `--size` for the
fewest replicas whose first drafts come in time. Seeded: the same command prints the same. No engine runs.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.bench.fleet.costs import Hardware, h100, l4, laptop
from tests.bench.fleet.people import Habits
from tests.bench.fleet.replica import Batching
from tests.bench.fleet.simulation import Outcome, Plan, simulate
from tests.bench.fleet.tables import Limits, cells, least_replicas, markdown, record, sections

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
_HARDWARE = {"laptop": laptop, "l4": l4, "h100": h100}
_TABLES = re.compile(r"(?<=<!-- tables -->\n).*?(?=<!-- end of tables -->)", re.DOTALL)
# Sizes for which the page says how many replicas they take.
_TEAMS = (10, 25, 50, 100, 200)


def hardware_of(options: argparse.Namespace) -> Hardware:
    """The hardware asked for, with the price and the most canvases that were named."""
    chosen = _HARDWARE[options.hardware]()
    price = chosen.dollars_per_hour if options.price is None else options.price
    return replace(chosen, dollars_per_hour=price, most=options.most or chosen.most)


def plan_of(options: argparse.Namespace) -> Plan:
    """The fleet asked for. A laptop is its user's own, whatever the routing."""
    hardware = hardware_of(options)
    return Plan(
        hardware,
        options.users or 1,
        options.replicas,
        Batching(options.window_ms / 1000, hardware.most, options.every_step),
        "own" if options.hardware == "laptop" else options.routing,
        options.network_ms / 1000,
        options.minutes,
        options.seed,
        Habits(along=options.along, rewrites_per_hour=options.rewrites, pause_s=options.pause_s, jump=options.jump),
    )


def sized(plan: Plan, limits: Limits) -> Outcome:
    """The smallest fleet that keeps to the limits. Raises SystemExit with what to change where there is none."""
    found = least_replicas(plan, simulate, limits)
    if found is None:
        raise SystemExit(
            f"No number of replicas brings first drafts within {limits.draft_p95_s * 1000:.0f} ms (p95) and a text "
            f"into {limits.offered:.0%} of the pauses. Ask for less (--size, --pauses), shorten the way (--network-ms) "
            "or take faster hardware (--hardware)."
        )
    return found


def page_tables(minutes: float, seed: int) -> str:
    """All tables of the page, in Markdown."""
    parts = []
    for section in sections(minutes, seed):
        rows = [cells(simulate(plan)) for plan in section.plans]
        parts.append(f"### {section.title}\n\n{markdown(rows)}\n")
    limits = Limits()
    rows = []
    for hardware in (l4(), h100()):
        plan = Plan(hardware, 1, minutes=minutes, seed=seed)
        rows += [cells(sized(replace(plan, users=users), limits)) for users in _TEAMS]
    goal = (
        f"a first draft within {limits.draft_p95_s * 1000:.0f} ms (p95), a text in {limits.offered:.0%} of the pauses"
    )
    parts.append(f"### Fewest replicas: {goal}\n\n{markdown(rows)}\n")
    return "\n".join(parts)


def with_tables(page: str, tables: str) -> str:
    """The page with these tables where its own were."""
    return _TABLES.sub(lambda _: f"\n{tables}\n", page)


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.fleet_sim", description=__doc__)
    usual = Habits()
    parser.add_argument("--users", type=int, help="people who type at the same time; without it all tables of the page")
    parser.add_argument("--hardware", choices=tuple(_HARDWARE), default="l4")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--routing", choices=("two_choices", "sticky"), default="two_choices")
    parser.add_argument("--window-ms", type=float, default=0.0, help="how long a batch is gathered")
    parser.add_argument("--every-step", action="store_true", help="gather before every step, not only after a rest")
    parser.add_argument("--most", type=int, help="canvases in a step")
    parser.add_argument("--network-ms", type=float, default=20.0, help="there and back")
    parser.add_argument("--price", type=float, help="dollars for an hour of one replica")
    parser.add_argument("--along", type=float, default=usual.along, help="share of keys that type what is offered")
    parser.add_argument("--jump", type=float, default=usual.jump, help="share of bursts begun at another place")
    parser.add_argument("--pause-s", type=float, default=usual.pause_s, help="median pause between bursts")
    parser.add_argument("--rewrites", type=float, default=usual.rewrites_per_hour, help="rewrites a person and hour")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", type=float, metavar="MS", help="fewest replicas for this p95 of first drafts")
    parser.add_argument(
        "--pauses", type=float, default=Limits().offered, help="with --size: share of pauses with a text"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of a table")
    parser.add_argument("--write-page", action="store_true", help=f"put the tables into {PAGE.name}")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, simulate, print."""
    options = options_of(arguments)
    if options.users is None:
        tables = page_tables(options.minutes, options.seed)
        if options.write_page:
            PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), tables), encoding="utf-8")
        print(tables)
        return
    plan = plan_of(options)
    outcome = sized(plan, Limits(options.size / 1000, options.pauses)) if options.size else simulate(plan)
    print(json.dumps(record(outcome)) if options.json else markdown([cells(outcome)]))


if __name__ == "__main__":
    main()
