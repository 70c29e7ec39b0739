"""Asking the system to read a model's converted files while nothing needs them yet. Imports no torch.

Importing torch takes longer than anything else at a start, and reads other files; meanwhile the disk can fetch these.
"""

from __future__ import annotations

import os
from pathlib import Path


def read_ahead(folder: Path) -> int:
    """Have all files below `folder` read into the system's cache, without waiting; how many were asked for.

    0 where the system takes no such hints. Files that cannot be opened are left to whoever loads them.
    """
    if not hasattr(os, "posix_fadvise"):
        return 0
    return sum(_asked_for(path) for path in folder.rglob("*") if path.is_file())


def _asked_for(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_WILLNEED)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
