"""Finding the extension module `engine.runtime._int8`, which is there only where it was built.

Must not import torch: `lacuna doctor` looks too, and should answer at once.
"""

from __future__ import annotations

import importlib
from types import ModuleType

MODULE = "engine.runtime._int8"
INTERFACE = 3


def kernel_module() -> ModuleType | None:
    """The module, None where there is none or one that is left from other sources."""
    try:
        module = importlib.import_module(MODULE)
    except ImportError:
        return None
    return module if module.INTERFACE == INTERFACE else None


def kernel_names() -> tuple[str, ...]:
    """The sets of instructions it has code for that this processor has too, the fastest first."""
    module = kernel_module()
    return tuple(module.kernels()) if module is not None else ()
