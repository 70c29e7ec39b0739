"""Several gaps at once: the same gradients and results as one after another."""

from __future__ import annotations

import threading

import pytest
import torch

from engine.training.workers import Workers


def parameters() -> dict[str, torch.Tensor]:
    return {
        "used": torch.tensor([1.0, 2.0], requires_grad=True),
        "sometimes": torch.tensor([3.0], requires_grad=True),
        "never": torch.tensor([4.0], requires_grad=True),
    }


def gradients_of(count: int, items: list[int]) -> tuple[dict[str, torch.Tensor | None], list[str]]:
    known = parameters()

    def loss_of(item: int) -> tuple[torch.Tensor, str]:
        loss = (known["used"] * item).sum()
        return (loss + known["sometimes"].sum() if item == 3 else loss), f"gap {item}"

    said = Workers(count).sum_gradients(items, known, loss_of)
    return {name: parameter.grad for name, parameter in known.items()}, said


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_gradients_are_the_sum_over_all_items_and_results_keep_their_order(count: int) -> None:
    gradients, said = gradients_of(count, [1, 2, 3, 4, 5])
    assert torch.equal(gradients["used"], torch.tensor([15.0, 15.0]))  # type: ignore[arg-type]
    assert torch.equal(gradients["sometimes"], torch.tensor([1.0]))  # type: ignore[arg-type]
    assert gradients["never"] is None
    assert said == ["gap 1", "gap 2", "gap 3", "gap 4", "gap 5"]


def test_an_earlier_steps_gradient_is_not_added_to() -> None:
    known = parameters()
    workers = Workers(2)
    for _ in range(2):
        workers.sum_gradients([1], known, lambda _: (known["used"].sum(), None))
    assert known["used"].grad is not None
    assert known["used"].grad.tolist() == [1.0, 1.0]


def test_workers_compute_at_the_same_time_each_on_one_thread() -> None:
    together = threading.Barrier(2, timeout=20)
    known = parameters()

    def loss_of(_: int) -> tuple[torch.Tensor, int]:
        together.wait()
        return known["used"].sum(), torch.get_num_threads()

    assert Workers(2).sum_gradients([1, 2], known, loss_of) == [1, 1]


@pytest.mark.parametrize("count", [1, 2])
def test_what_goes_wrong_in_a_worker_is_raised(count: int) -> None:
    def loss_of(item: int) -> tuple[torch.Tensor, int]:
        raise ValueError(f"gap {item}")

    with pytest.raises(ValueError, match="gap 1"):
        Workers(count).sum_gradients([1, 2], parameters(), loss_of)


def test_no_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        Workers(0)
