"""Engine tests run torch on one thread: tiny tensors gain nothing from two, and lose much on a busy machine."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)
