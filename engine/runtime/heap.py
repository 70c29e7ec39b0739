"""Giving memory that the process has freed back to the system."""

from __future__ import annotations

import ctypes


def trim_heap() -> bool:
    """Return what loading left free in the C heap; whether anything was returned. False where the C library cannot.

    Reading a vocabulary allocates many small pieces and frees most of them: 40 MB of the default model's, which glibc
    keeps for later although the engine never needs them again.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return False
    return bool(trim(0))
