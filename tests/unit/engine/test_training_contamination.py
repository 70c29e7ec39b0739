"""A benchmark's problems are found wherever they hide, and ordinary code is not taken for them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from engine.training.contamination import Benchmark, benchmark_of, load

SOLUTION = """    total = 0
    for index, value in enumerate(numbers):
        if value % divisor == 0 and index % 2 == 1:
            total += value * weights[index]
    return total
"""
ROW = {
    "prompt": "def weighted_sum(numbers, weights, divisor):\n",
    "canonical_solution": SOLUTION[:40],
    "suffix": SOLUTION[40:],
    "entry_point": "weighted_sum",
}
ORDINARY = "class Stack:\n    def __init__(self) -> None:\n        self.items: list[int] = []\n" * 3


@pytest.fixture
def benchmark() -> Benchmark:
    named = [{**ROW, "entry_point": name} for name in ("weighted_sum", "has_close", "below_zero", "intersperse")]
    return benchmark_of(named)


def test_a_copied_solution_is_found_whatever_its_layout(benchmark: Benchmark) -> None:
    assert benchmark.found_in("import os\n\n\ndef other(numbers):\n" + SOLUTION) == "shares code with the benchmark"
    moved = SOLUTION.replace("    ", "\t").replace("\n", "\r\n").replace(" = ", "=")
    assert benchmark.found_in(moved) == "shares code with the benchmark"


def test_a_part_across_the_gap_is_found(benchmark: Benchmark) -> None:
    assert benchmark.found_in(SOLUTION[20:130]) == "shares code with the benchmark"


def test_ordinary_code_and_short_likeness_pass(benchmark: Benchmark) -> None:
    assert benchmark.found_in(ORDINARY) is None
    assert benchmark.found_in("    for index, value in enumerate(numbers):\n        print(value)\n") is None
    assert benchmark.found_in("") is None


def test_rows_of_numbers_are_no_likeness() -> None:
    data = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]"
    assert benchmark_of([{**ROW, "canonical_solution": data}]).found_in(f"x = {data}\n") is None


def test_many_functions_of_the_benchmark_are_found_by_name(benchmark: Benchmark) -> None:
    two = "def below_zero(a): pass\ndef has_close(a): pass\n"
    assert benchmark.found_in(two) is None
    assert benchmark.found_in(two + "def intersperse(a): pass\n") == "defines the benchmark's functions"


@pytest.mark.parametrize("name", ["HumanEval/3", "human_eval", "human-eval", "HUMAN EVAL"])
def test_naming_it_is_enough(benchmark: Benchmark, name: str) -> None:
    assert benchmark.found_in(f"# from {name}\n") == "names the benchmark"


def test_without_a_benchmark_everything_passes() -> None:
    assert benchmark_of([]).found_in("# from HumanEval\n" + SOLUTION) is None


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_rows_are_read_plain_and_packed(tmp_path: Path, name: str, benchmark: Benchmark) -> None:
    path = tmp_path / name
    lines = (json.dumps(ROW) + "\n\n").encode()
    path.write_bytes(gzip.compress(lines) if name.endswith("gz") else lines)
    assert load(path).runs == benchmark.runs


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("rows.jsonl", b'{"prompt": "x"}\n'),
        ("rows.jsonl", b"[]\n"),
        ("rows.jsonl", b"not json\n"),
        ("rows.jsonl", b"\xff\xfe"),
        ("rows.jsonl.gz", b"not packed"),
        ("rows.jsonl.gz", gzip.compress(json.dumps(ROW).encode(), mtime=0)[:40]),
    ],
)
def test_other_files_are_named(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"rows\.jsonl.* holds no benchmark rows"):
        load(path)
