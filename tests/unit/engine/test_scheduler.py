"""Whose turn it is, case by case, and that nobody waits for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.scheduler import REWRITE_SHARE, Kind, Scheduler


def turns(scheduler: Scheduler[str], count: int, now: float = 0.0) -> str:
    return " ".join(scheduler.next(now) or "-" for _ in range(count))


def scheduler_of(*jobs: tuple[str, int, Kind]) -> Scheduler[str]:
    scheduler: Scheduler[str] = Scheduler()
    for key, client, kind in jobs:
        scheduler.add(key, client, kind)
    return scheduler


def test_nothing_to_do() -> None:
    assert scheduler_of().next(0.0) is None


def test_a_fill_goes_before_an_older_rewrite() -> None:
    assert turns(scheduler_of(("r", 1, "rewrite"), ("f", 1, "fill")), 1) == "f"


def test_the_newest_fill_of_a_client_goes_first_and_keeps_going() -> None:
    scheduler = scheduler_of(("old", 1, "fill"))
    assert turns(scheduler, 2) == "old old"
    scheduler.add("new", 1, "fill")
    assert turns(scheduler, 3) == "new new new"
    scheduler.remove("new")
    assert turns(scheduler, 1) == "old"


def test_clients_take_turns_step_by_step() -> None:
    assert turns(scheduler_of(("a", 1, "fill"), ("b", 2, "fill")), 6) in ("a b a b a b", "b a b a b a")


def test_a_rewrite_gets_its_share_while_a_fill_runs() -> None:
    scheduler = scheduler_of(("r", 1, "rewrite"), ("f", 2, "fill"))
    taken = turns(scheduler, 4 * REWRITE_SHARE).split()
    assert taken.count("r") == 4
    assert taken[:REWRITE_SHARE] == ["f"] * (REWRITE_SHARE - 1) + ["r"]


def test_a_fresh_fill_does_not_wait_for_a_rewrites_share() -> None:
    scheduler = scheduler_of(("r", 1, "rewrite"), ("f", 2, "fill"))
    turns(scheduler, REWRITE_SHARE - 1)
    scheduler.add("fresh", 3, "fill")
    assert turns(scheduler, 2) == "fresh r"


def test_rewrites_of_a_client_go_oldest_first() -> None:
    assert turns(scheduler_of(("one", 1, "rewrite"), ("two", 1, "rewrite")), 2) == "one one"


def test_an_overdue_job_hands_back_what_it_has_before_anything_else() -> None:
    scheduler = scheduler_of(("f", 1, "fill"))
    scheduler.add("late", 2, "rewrite", deadline=10.0)
    scheduler.add("later", 2, "rewrite", deadline=11.0)
    assert turns(scheduler, 1, now=9.9) == "f"
    assert turns(scheduler, 3, now=12.0) == "late later f"


def test_a_job_is_scheduled_once_and_forgotten_once() -> None:
    scheduler = scheduler_of(("a", 1, "fill"))
    with pytest.raises(ValueError, match="already"):
        scheduler.add("a", 1, "fill")
    scheduler.remove("a")
    scheduler.remove("a")
    assert len(scheduler) == 0
    assert "a" not in scheduler


def test_it_knows_a_clients_jobs_and_those_that_have_begun() -> None:
    scheduler = scheduler_of(("a", 1, "fill"), ("b", 2, "fill"), ("c", 1, "rewrite"))
    first = scheduler.next(0.0)
    assert scheduler.keys_of(1) == ["a", "c"]
    assert scheduler.started() == [first]


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(["fill", "rewrite"])), min_size=1, max_size=8))
def test_no_client_waits_for_ever_for_either_kind(jobs: list[tuple[int, Kind]]) -> None:
    """Jobs that never end: each client's newest fill and oldest rewrite still take steps within a bounded time."""
    scheduler = scheduler_of(*((str(n), client, kind) for n, (client, kind) in enumerate(jobs)))
    taken = turns(scheduler, 8 * REWRITE_SHARE * 5).split()
    for client, kind in set(jobs):
        own = [str(n) for n, job in enumerate(jobs) if job == (client, kind)]
        assert own[-1 if kind == "fill" else 0] in taken
