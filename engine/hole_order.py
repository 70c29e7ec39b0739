"""Which of several holes that are filled one after the other comes first: `HoleOrder`."""

from __future__ import annotations

from typing import Literal

HoleOrder = Literal["least_doubt", "top_down"]
