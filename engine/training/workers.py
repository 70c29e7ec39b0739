"""Gradients of several gaps at once: one thread a worker, each computing with one core.

On a CPU a gap's rows are too few to keep two cores busy within one product, and threads that wait for each other lose
most when something else runs. The sums are taken in the order of the gaps' shares, so a run repeats itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
Gradients = dict[str, torch.Tensor]


class Workers:
    """`count` threads. Gradients are computed apart and summed; parameters are only read meanwhile."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ValueError(f"at least one worker is needed, not {count}")
        self._count = count
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="gap", initializer=_alone) if count > 1 else None

    def sum_gradients(
        self,
        items: Sequence[_Item],
        parameters: Mapping[str, torch.Tensor],
        loss_of: Callable[[_Item], tuple[torch.Tensor, _Result]],
    ) -> list[_Result]:
        """Set every parameter's gradient to the sum over `items`; what `loss_of` said of each, in their order.

        loss_of: (graph scalar, result) for an item; called on a worker's thread. Its errors are raised here.
        """

        def share(start: int) -> tuple[Gradients, list[_Result]]:
            total: Gradients = {}
            results = []
            for item in items[start :: self._count]:
                loss, result = loss_of(item)
                _add(total, _gradients(loss, parameters))
                results.append(result)
            return total, results

        starts = range(min(self._count, len(items)))
        shares = list(self._pool.map(share, starts) if self._pool else map(share, starts))
        total: Gradients = {}
        for gradients, _ in shares:
            _add(total, gradients)
        for name, parameter in parameters.items():
            parameter.grad = total.get(name)
        return [shares[place % self._count][1][place // self._count] for place in range(len(items))]


def _gradients(loss: torch.Tensor, parameters: Mapping[str, torch.Tensor]) -> Gradients:
    # A gap without masks has no gradient for the mask embedding.
    found: tuple[torch.Tensor | None, ...] = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    return {name: gradient for name, gradient in zip(parameters, found, strict=True) if gradient is not None}


def _add(total: Gradients, gradients: Gradients) -> None:
    for name, gradient in gradients.items():
        if name in total:
            # Not in place: a gradient may share its memory with something else.
            total[name] = total[name] + gradient
        else:
            total[name] = gradient


def _alone() -> None:
    """A worker's products run on its own core; both settings belong to the thread."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
