"""The likeliest id of each row of logits: what every pass of the verifying sampler reads. Pure."""

from __future__ import annotations

import torch


def likeliest(logits: torch.Tensor) -> list[int]:
    """The id of each row's greatest logit, the lowest of equal ones. logits: [rows, vocab] of any float.

    On the host numpy looks for it: it reads a row with vector instructions, where torch compares one by one.
    """
    if logits.device.type == "cpu" and logits.dtype == torch.float32:
        found: list[int] = logits.numpy().argmax(-1).tolist()
    else:
        found = logits.argmax(-1).tolist()
    return found
