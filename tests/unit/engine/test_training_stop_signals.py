"""Signals as a question: the first one is noted, the next acts as before, and handlers are put back."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from engine.training.stop_signals import stop_requests

Handler = Callable[[int, FrameType | None], None] | signal.Handlers


@contextmanager
def handled(number: signal.Signals, handler: Handler) -> Iterator[None]:
    """The signal handled by `handler` meanwhile."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_acts_as_before(number: signal.Signals) -> None:
    acted: list[int] = []
    with handled(number, lambda received, _: acted.append(received)):
        with stop_requests() as stopped:
            assert not stopped()
            signal.raise_signal(number)
            assert stopped()
            assert acted == []
            signal.raise_signal(number)
            assert acted == [number]
        signal.raise_signal(number)
        assert acted == [number, number]


def test_handlers_are_put_back_without_a_signal_and_after_a_fault() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(KeyError), stop_requests():
        raise KeyError
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_an_ignored_signal_stays_ignored() -> None:
    with handled(signal.SIGINT, signal.SIG_IGN), stop_requests() as stopped:
        signal.raise_signal(signal.SIGINT)
        assert not stopped()
