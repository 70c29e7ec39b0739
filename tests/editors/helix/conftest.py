"""Terminals as Helix is driven in are those of Unix."""

from __future__ import annotations

import sys

collect_ignore = ["test_helix.py"] if sys.platform == "win32" else []
