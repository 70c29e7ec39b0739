"""What drafts from the present text save in an edit: `python -m tests.bench.warm_edits --tokenizer FILE`.

FILE is the `tokenizer.json` of a converted model. Functions of 20 to 60 lines of Python's own library are edited by
rule, the edited text is taken for what the model will say, and an edit's drafts are checked against it without a
model. So it tells how many passes and rows an edit takes and, by a curve of costs, its share of single-token
decoding; it depends on no machine's mood. Edits that change 15 % of the tokens or more are left out.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.diffusion.competition import Competition
from engine.diffusion.cost_curve import CostCurve
from engine.diffusion.drafts import Leftover
from engine.diffusion.verify_config import VerifyConfig
from engine.prompts import dedent
from engine.runtime.cache import common_prefix
from engine.tokenizer import BpeTokenizer

COSTS = "1:55,4:62,8:78,16:100,32:165,64:300,96:430"
"""Of the default model on fbgemm and two cores with AVX2, rounded."""
MOST_CHANGED = 0.15


@dataclass(frozen=True, slots=True)
class Drafted:
    """An edit that was drafted. cost: of all passes, in single-token passes."""

    kind: str
    tokens: int
    passes: int
    rows: int
    cost: float


def functions(count: int, seed: int) -> Iterator[str]:
    """Functions of the standard library, at most four of a file, in an order that the seed decides."""
    chance = random.Random(seed)
    files = sorted(Path(os.__file__).parent.glob("*.py"))
    chance.shuffle(files)
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        lines = text.split("\n")
        found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
        sizes = [(node, (node.end_lineno or node.lineno) - node.lineno + 1) for node in found]
        for node, size in [pair for pair in sizes if 20 <= pair[1] <= 60][:4]:
            yield dedent("\n".join(lines[node.lineno - 1 : node.lineno - 1 + size]))
            count -= 1
            if count == 0:
                return


def _behind_head(code: str, added: str) -> str:
    """`added`, a line of the body, in front of the body; the code as it is when its head ends nowhere."""
    head = re.search(r":\n([ \t]+)", code)
    return code if head is None else f"{code[: head.end()]}{added}\n{head[1]}{code[head.end() :]}"


def _rename(code: str, name: str | None, new: str) -> str:
    return code if name is None else re.sub(rf"(?<![\w.]){name}\b", new, code)


def _commonest_name(code: str) -> str | None:
    names = re.findall(r"(?m)^[ \t]+([a-z_]+) = ", code)
    return max(set(names), key=code.count, default=None)


EDITS: dict[str, Callable[[str], str]] = {
    "nothing": lambda code: code,
    "rename": lambda code: _rename(code, _commonest_name(code), "current"),
    "suffix a name": lambda code: _rename(code, _commonest_name(code), f"{_commonest_name(code)}_value"),
    "docstring": lambda code: _behind_head(code, '"""Return what the caller asked for, or raise an error."""'),
    "guard": lambda code: _behind_head(code, "if not self: raise ValueError('no value was given')"),
    "print": lambda code: re.sub(r"(?m)^([ \t]+)return\b", r"\1print('done')\n\1return", code),
    "parameter": lambda code: code.replace("):", ", verbose=False):", 1),
    "number": lambda code: re.sub(r"\b[1-9]\b", "10", code, count=2),
    "quotes": lambda code: re.sub(r"'([^'\"\n]*)'", r'"\1"', code),
    "comments": lambda code: re.sub(r"(?m)^[ \t]*#.*\n", "", code),
}


def drafted(kind: str, present: tuple[int, ...], edited: tuple[int, ...], costs: CostCurve) -> Drafted:
    """Draft and check `edited`, starting from `present`, until all of it is settled."""
    config = VerifyConfig(costs=costs)
    sources = Competition.over(config, None, present, (present, present), frozenset())
    settled: tuple[int, ...] = ()
    passes, rows, cost = 0, 0, 0.0
    while len(settled) < len(edited):
        draft = sources.draft(settled, Leftover(), len(edited))
        rest = edited[len(settled) :]
        accepted = common_prefix([candidate.token for candidate in draft], rest)
        sources.record(draft, accepted)
        sources.settle(rest[: accepted + 1])
        settled += rest[: accepted + 1]
        passes, rows, cost = passes + 1, rows + 1 + len(draft), cost + costs.of(1 + len(draft))
    return Drafted(kind, len(edited), passes, rows, cost)


def changed(present: tuple[int, ...], edited: tuple[int, ...]) -> float:
    """The share of the present text's tokens that an edit replaces, adds or takes away."""
    blocks = difflib.SequenceMatcher(None, present, edited, autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for tag, a, b, c, d in blocks if tag != "equal") / len(present)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.warm_edits", description=__doc__)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--costs", default=COSTS, help="rows:milliseconds, with commas between them")
    parser.add_argument("--count", type=int, default=60, help="how many functions are edited in each way")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    pairs = [part.split(":") for part in options.costs.split(",")]
    costs = CostCurve.measured([(int(rows), float(ms)) for rows, ms in pairs])
    if costs is None:
        parser.error("the costs must begin with one row and name another width")
    tokenizer = BpeTokenizer.load(options.tokenizer)
    results = []
    for code in functions(options.count, options.seed):
        present = tuple(tokenizer.encode(f"{code}\n```"))
        for kind, edit in EDITS.items():
            edited = tuple(tokenizer.encode(f"{edit(code)}\n```"))
            if (edited == present) == (kind == "nothing") and changed(present, edited) < MOST_CHANGED:
                results.append(drafted(kind, present, edited, costs))
    show(results, as_json=options.json)


def show(results: list[Drafted], *, as_json: bool) -> None:
    """Print a line for each kind of edit and one for all, or one object."""
    kinds = {kind: [one for one in results if one.kind == kind] for kind in EDITS} | {"all": results}
    rows = [
        {
            "scenario": kind,
            "edits": len(ones),
            "tokens_per_pass": round(sum(one.tokens for one in ones) / sum(one.passes for one in ones), 2),
            "rows_per_token": round(sum(one.rows for one in ones) / sum(one.tokens for one in ones), 2),
            "ratio": round(sum(one.cost for one in ones) / sum(one.tokens for one in ones), 3),
        }
        for kind, ones in kinds.items()
        if ones
    ]
    if as_json:
        print(json.dumps({"rows": rows}))
        return
    for row in rows:
        print(
            f"{row['scenario']:<14} {row['edits']:>4} edits  {row['tokens_per_pass']:>6} tokens a pass  "
            f"{row['rows_per_token']:>5} rows a token  {row['ratio']:>6} of single-token decoding"
        )


if __name__ == "__main__":
    main()
