"""Large blocks are mapped on their own, also after others of their size were freed. In a process of its own: it is
changed for good."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.runtime.heap import MAPPED_FROM_BYTES

ASKED = """
import sys
from engine.runtime.heap import MAPPED_FROM_BYTES, map_large_blocks
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
if sys.argv[1] == "set":
    assert map_large_blocks()
size = 2 * MAPPED_FROM_BYTES  # Less than the 32 MiB up to which glibc learns
libc.free(libc.malloc(size))  # glibc learns from it that blocks of this size had better lie in the heap
kept = libc.malloc(size)
heap = next(line.split()[0].split("-") for line in open("/proc/self/maps") if line.rstrip().endswith("[heap]"))
print(int(heap[0], 16) <= kept < int(heap[1], 16))
"""


def lies_in_heap(how: str) -> bool:
    done = subprocess.run([sys.executable, "-c", ASKED, how], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="about the C library of Linux")
def test_a_large_block_stays_out_of_the_heap() -> None:
    assert 2 * MAPPED_FROM_BYTES < 32 * 2**20, "glibc never learns about blocks larger than that"
    assert lies_in_heap("unset"), "this C library would not have needed it"
    assert not lies_in_heap("set")
