"""What torch's libraries read from the environment when they start, set for a process that shares its machine.

Must not import torch: its OpenMP reads these variables while it is being loaded.
"""

from __future__ import annotations

from collections.abc import MutableMapping

_DEFAULTS = {
    # Threads that wait for each other spin for a moment and then sleep. Without a limit they spin for milliseconds,
    # and where an editor's compiler keeps one of two cores busy, a forward pass of 60 ms takes two seconds.
    "GOMP_SPINCOUNT": "5000",
    # Sums in an order that does not depend on the size of a product: a row's result is its own (MKL's strict
    # conditional numerical reproducibility; effective until the first product is computed, on Intel's processors).
    "MKL_CBWR": "AUTO,STRICT",
}


def prepare_environment(environ: MutableMapping[str, str]) -> None:
    """Set what is not set yet. Call with `os.environ` before torch is first imported in the process."""
    for name, value in _DEFAULTS.items():
        environ.setdefault(name, value)
