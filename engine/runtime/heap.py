"""Giving memory that the process has freed back to the system, also later on."""

from __future__ import annotations

import ctypes

# <malloc.h>
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3

# Below the size of most contexts, above the logits of 16 rows: what every pass needs for a moment would cost to map.
MAPPED_FROM_BYTES = 12 * 2**20
KEPT_FREE_BYTES = 64 * 2**20


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


def map_large_blocks() -> bool:
    """Have blocks from `MAPPED_FROM_BYTES` on mapped on their own, so that a freed one leaves the process at once.

    For the whole process; whether it was done. glibc raises the size from which it does so with every such block that
    is freed, up to 32 MiB. Resident contexts, 10 to 20 MiB each and of any age, then lie in the heap with holes between
    them: an engine whose contexts were bounded by 256 MiB grew by 440 (mallopt(3), "dynamic mmap threshold").
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    # A fixed threshold ends the guessing of the other one as well, whose standard value would return the end of the
    # heap to the system after every pass.
    return bool(mallopt(_M_MMAP_THRESHOLD, MAPPED_FROM_BYTES) and mallopt(_M_TRIM_THRESHOLD, KEPT_FREE_BYTES))
