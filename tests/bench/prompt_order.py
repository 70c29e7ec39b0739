"""What the order of a gap's prompt is worth and costs: `python -m tests.bench.prompt_order --data PATH [--limit N]`.

Three orders of the same text: prefix first and suffix first, both with the cursor's line in the prefix, and the one
that is served, where that line opens the middle (`engine.lead`). Worth: nats of the true middle, how many middles
greedy decoding would get exactly, how many ends it would find; at the row's own gap and with up to half of the middle
typed already. Cost: rows that are not resident, for every key of a row's middle. Nothing is timed, so it needs no quiet
machine.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from engine.config import DEFAULT_MODEL
from engine.runtime.environment import prepare_environment

if TYPE_CHECKING:
    from engine.models.base import Denoiser

ORDERS = ("prefix first", "suffix first", "served")


@dataclass(frozen=True, slots=True)
class Parts:
    """prompt, known: ids encoded, and ids that run as the middle's before what is predicted. head: its first bytes."""

    prompt: tuple[int, ...]
    known: tuple[int, ...]
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class Score:
    """Nats of the true middle and its end, and whether greedy decoding takes all of it, and the end."""

    nats: float
    tokens: int
    exact: bool
    ends: bool


def parts_of(order: str, prefix: str, suffix: str, model: Denoiser) -> Parts:
    """A gap's prompt in one of `ORDERS`."""
    from engine.prompts import PREFIX_TOKENS, SUFFIX_TOKENS, cut_left, fill_prompt
    from engine.protocol.messages import Fill

    special, tokenizer = model.facts.special, model.tokenizer
    if order == "served":
        prompt = fill_prompt(Fill("", "", prefix, suffix), tokenizer, special)
        if not prompt.lead:
            return Parts(prompt.ids, (prompt.gap.pending,))
        return Parts(prompt.ids, prompt.lead, tokenizer.decode_bytes([prompt.gap.pending]))
    left = (special.fim_prefix, *cut_left(tokenizer.encode(prefix), PREFIX_TOKENS))
    right = (special.fim_suffix, *tokenizer.encode(suffix)[:SUFFIX_TOKENS])
    return Parts((*left, *right) if order == "prefix first" else (*right, *left), (special.fim_middle,))


def score(parts: Parts, middle: str, model: Denoiser) -> Score:
    """One pass over the true middle."""
    import torch

    from engine.diffusion.denoise import allowed_ids
    from engine.models.base import CanvasRows

    end = min(model.facts.special.end)
    truth = [*model.tokenizer.encode(parts.head.decode() + middle), end]
    context = model.context_for(parts.prompt)
    try:
        model.encode(context, parts.prompt[context.length :])
        ids = torch.tensor([*parts.known, *truth[:-1]])
        positions = torch.arange(len(parts.prompt), len(parts.prompt) + len(ids))
        logits = model.step(context, CanvasRows(ids, positions, None, adapted=True))[:, : allowed_ids(model)]
    finally:
        model.release(context)
    rows = logits[len(parts.known) - 1 :].clone()
    if parts.head:
        rows[0, [not begins(model, token, parts.head) for token in range(rows.shape[1])]] = -torch.inf
    chances = rows.log_softmax(-1)
    right = [int(row.argmax()) == token for row, token in zip(chances, truth, strict=True)]
    nats = -sum(float(row[token]) for row, token in zip(chances, truth, strict=True))
    return Score(nats, len(truth), all(right), right[-1])


def begins(model: Denoiser, token: int, head: bytes) -> bool:
    """Whether a token's bytes begin with those that are known."""
    return token not in model.facts.special.special and model.tokenizer.decode_bytes([token]).startswith(head)


def rows_per_key(rows: Sequence[dict[str, Any]], order: str, model: Denoiser) -> float:
    """Rows that are not resident when every key of the middles is a request, on average; the first key left out.

    Whatever the text before had in common from the left is resident, but for rows that run as the middle's.
    """
    from engine.runtime.cache import common_prefix

    lost = keys = 0
    for row in rows:
        before: tuple[int, ...] = ()
        for typed in range(len(row["canonical_solution"])):
            prefix = row["prompt"] + row["canonical_solution"][:typed]
            parts = parts_of(order, prefix, row["suffix"], model)
            if typed:
                lost += len(parts.prompt) - common_prefix(before, parts.prompt) + len(parts.known)
                keys += 1
            before = parts.prompt
    return lost / max(1, keys)


def typed_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same gaps with 1 character to half of the middle typed, drawn from a fixed seed."""
    dice, typed = Random(1), []
    for row in rows:
        middle = row["canonical_solution"]
        if len(middle) > 3:
            cut = dice.randrange(1, len(middle) // 2 + 1)
            typed.append(row | {"prompt": row["prompt"] + middle[:cut], "canonical_solution": middle[cut:]})
    return typed


def line_of(rows: Sequence[dict[str, Any]], gaps: str, order: str, score_of: Callable[..., Score]) -> dict[str, Any]:
    """One line of the table."""
    scores = [score_of(row, order) for row in rows]
    count = max(1, len(scores))
    return {
        "gaps": gaps,
        "order": order,
        "n": len(scores),
        "nats_per_token": round(sum(each.nats for each in scores) / max(1, sum(each.tokens for each in scores)), 4),
        "nats": round(sum(each.nats for each in scores), 1),
        "exact": round(sum(each.exact for each in scores) / count, 3),
        "ends": round(sum(each.ends for each in scores) / count, 3),
    }


def main() -> None:
    """Read the command line and run; one JSON line per order and kind of gap."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.prompt_order", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="rows as .jsonl (or .jsonl.gz)")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--limit", type=int, default=0, help="measure only N rows, spread over the file")
    parser.add_argument("--keys", type=int, default=20, help="count keys in N of the rows")
    options = parser.parse_args()
    from tests.bench.drafted_gap import load
    from tests.bench.infilling import read_rows

    model, _ = load(options.model, None)
    rows = read_rows(options.data, options.limit)

    def score_of(row: dict[str, Any], order: str) -> Score:
        return score(parts_of(order, row["prompt"], row["suffix"], model), row["canonical_solution"], model)

    for order in ORDERS:
        cost = rows_per_key(rows[:: max(1, len(rows) // options.keys)], order, model)
        print(json.dumps({"order": order, "rows_per_key": round(cost, 1)}), flush=True)
    for gaps, chosen in (("typed into", typed_rows(rows)), ("as they are", rows)):
        for order in ORDERS:
            print(json.dumps(line_of(chosen, gaps, order, score_of)), flush=True)


if __name__ == "__main__":
    prepare_environment(os.environ)  # before torch is imported: its threads read it once
    main()
