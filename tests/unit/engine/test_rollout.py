"""Which jobs may take the diffusion route: the same ones each time, as many as the share says, none while closed."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.breaker import BreakerRules
from engine.rollout import Permit, Rollout, is_within_share
from tests.fakes.clock import Clock

IDS = [UUID(int=number).hex for number in range(4000)]


@pytest.mark.parametrize("share", [0.0, 1.0, 25.0, 50.0, 90.0, 100.0])
def test_as_many_jobs_as_the_share_says(share: float) -> None:
    taken = sum(is_within_share(job, share) for job in IDS) / len(IDS) * 100
    # Three standard deviations of a fair draw at one half are 2.4 %.
    assert taken == pytest.approx(share, abs=2.4)
    assert share not in {0.0, 100.0} or taken == share


@given(st.text(max_size=40), st.floats(0, 100), st.floats(0, 100))
def test_a_job_of_a_smaller_share_belongs_to_every_larger_one(job: str, one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert is_within_share(job, more) or not is_within_share(job, less)
    assert is_within_share(job, less) == is_within_share(job, less)


def test_what_is_held_back_is_said() -> None:
    permit = Rollout(Clock(), share=0.0).admit("a")
    assert not permit.is_granted
    assert "0 %" in permit.reason


def test_failures_close_the_route_until_a_trial_goes_well() -> None:
    now = [0.0]
    rollout = Rollout(lambda: now[0], rules=BreakerRules(failures=2, first_wait_s=10.0))
    for job in "ab":
        rollout.learn(rollout.admit(job), went_well=False)
    refused = rollout.admit("c")
    assert not refused.is_granted
    assert "closed after failures" in refused.reason
    rollout.learn(refused, went_well=True)
    assert rollout.report().state == "open"
    now[0] = 10.0
    trial = rollout.admit("d")
    assert trial == Permit(is_trial=True)
    assert not rollout.admit("e").is_granted
    rollout.learn(trial, went_well=None)
    trial = rollout.admit("f")
    assert trial.is_trial
    rollout.learn(trial, went_well=True)
    assert (rollout.report().state, rollout.admit("g")) == ("closed", Permit())
