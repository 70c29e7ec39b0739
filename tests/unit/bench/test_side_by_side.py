"""What the comparison with llama.cpp makes of its measurements: ratios, goals, what was kept, what counts as equal."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from engine.diffusion.denoise import greedy
from engine.diffusion.stopping import decode_prefix
from engine.models.shape import Qwen2Shape
from engine.models.tiny import tiny_denoiser
from engine.prompts import fill_prompt
from engine.protocol.messages import Fill, Rewrite
from tests.bench.beside.neighbours import Moment, Watch
from tests.bench.beside.own_worker import partings_of, request_of, text_of
from tests.bench.beside.pipe import Worker
from tests.bench.beside.store import Measurements
from tests.bench.beside.table import (
    details,
    equality_row,
    is_greedy,
    layer_weights,
    ratios,
    row_of,
    table,
)
from tests.bench.beside.texts import Case
from tests.bench.side_by_side import line_of, options_of, told

SHAPE = Qwen2Shape(2, 8, 2, 1, 4, 16, 100, 64, 1e6, 1e-6)
EQUAL = {"partings": [], "same_text": True}


def measurement(scenario: str = "cold", ms: float = 100, **more: Any) -> dict[str, Any]:
    ours = {"ms": ms, "ms_encode": 60.0, "tokens": 4, "passes": 4, "prompt_tokens": 30, "cached_tokens": 10}
    plain = {"ms": 200.0, "tokens": 4, "timings": {"predicted_per_token_ms": 20.0}}
    return {"key": f"{scenario}/a/0", "scenario": scenario, "ours": ours, "plain": plain} | more


def test_a_row_has_the_keys_that_are_promised() -> None:
    assert set(asdict(row_of("cold", [0.4], 0.5))) == {"scenario", "ratio", "spread", "goal", "ok"}


@pytest.mark.parametrize(
    ("values", "least", "ok"),
    [([0.5], False, True), ([0.51], False, False), ([0.5], True, True), ([0.49], True, False), ([], False, False)],
)
def test_a_goal_is_the_most_or_the_least_allowed_and_nothing_measured_meets_none(
    values: list[float], least: bool, ok: bool
) -> None:
    assert row_of("any", values, 0.5, least=least).ok is ok


def test_a_row_tells_median_and_quartiles() -> None:
    row = row_of("any", [5.0, 1.0, 2.0, 4.0, 3.0], 3.0)
    assert (row.ratio, row.spread, row.ok) == (3.0, (2.0, 4.0), True)


def test_ratios_are_ours_over_the_rivals_and_only_where_the_rival_was_asked() -> None:
    rewriting = measurement("rewrite", ms=50, ngram={"ms": 100.0})
    measured = [measurement(), rewriting]
    assert ratios(measured, "cold", "plain") == [0.5]
    assert ratios(measured, "cold", "ngram") == []
    assert ratios(measured, "rewrite", "ngram") == [0.5]


def test_decode_and_prefill_leave_out_what_is_not_theirs() -> None:
    rows = {
        row.scenario: row
        for row in table(
            [measurement(), measurement("decode")], [900.0], {"bandwidth_gb_s": 1.0, "gemm_gop_s": 1.0}, SHAPE
        )
    }
    # 40 ms behind the prompt's 60, for four tokens, against 20 ms for one.
    assert rows["single-token decode"].ratio == 0.5
    assert layer_weights(SHAPE) == 16 * 8 + 8 * 8 + 32 * 8 + 8 * 16
    per_token_s = 0.010
    assert rows["decode, share of memory bandwidth"].ratio == round((2 * 576 + 800) / per_token_s / 1e9, 3)
    assert rows["prefill, share of int8 rate"].ratio == round(2 * (576 + 128) * 20 / 0.060 / 1e9, 3)
    assert rows["peak memory, GB"].ratio == 0.9


def test_without_limits_no_share_of_them_is_told() -> None:
    shares = [row for row in table([measurement("decode")], [], {}, SHAPE) if "share of" in row.scenario]
    assert shares
    assert all(row.ratio is None and not row.ok for row in shares)


@pytest.mark.parametrize(
    ("check", "equal"),
    [
        (EQUAL, True),
        ({"partings": [[3, 0.001]], "same_text": True}, True),
        ({"partings": [[3, 0.5]], "same_text": True}, False),
        ({"partings": [], "same_text": False}, False),
    ],
)
def test_a_text_is_greedy_when_it_parts_on_ties_only(check: dict[str, Any], equal: bool) -> None:
    assert is_greedy(measurement(check=check)) is equal


def test_a_text_that_was_not_checked_is_not_called_equal() -> None:
    row = equality_row([measurement(check=EQUAL), measurement()])
    assert (row.ratio, row.ok) == (0.5, False)
    assert equality_row([]).ok is False


def test_details_are_of_each_engine_that_was_asked() -> None:
    found = details([measurement(), measurement(ms=300)])
    assert found["cold"]["ours_ms"] == 200
    assert found["cold"]["plain_ms"] == 200
    assert "ngram_ms" not in found["cold"]


def test_what_was_kept_is_there_in_the_next_run(tmp_path: Path) -> None:
    file = tmp_path / "out" / "rows.jsonl"
    kept = Measurements(file)
    case = Case("cold", "a", (Fill("1", "python", "", ""), Fill("2", "python", "", "")))
    assert kept.missing_of(case) == [0, 1]
    kept.keep(measurement() | {"key": "cold/a/1"})
    assert kept.missing_of(case) == [0]
    kept.keep(measurement())
    kept.keep_limits({"bandwidth_gb_s": 2.0})
    kept.keep_facts({"ours": {"peak_mb": 1.0}})
    kept.keep_check(kept.rows[0], EQUAL)
    with file.open("a") as out:
        out.write('{"measured": {"key": "cut sho')
    again = Measurements(file)
    assert again.missing_of(case) == []
    assert [one.get("check") for one in again.rows] == [EQUAL, None]
    assert (again.limits, again.facts) == ({"bandwidth_gb_s": 2.0}, {"ours": [{"peak_mb": 1.0}]})


def test_what_others_used_is_all_that_the_engine_did_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    watch = Watch()
    assert watch.foreign == 0
    watch.add(Moment(0.0, 10.0, 1.0), Moment(10.0, 30.0, 16.0))
    assert watch.foreign == pytest.approx(5 / 20)
    watch.add(Moment(10.0, 30.0, 16.0), Moment(20.0, 30.0, 16.1))
    assert watch.foreign == pytest.approx(4.9 / 40)


def test_a_request_arrives_at_the_worker_as_it_was() -> None:
    for request in (Fill("1", "python", "a", "b", max_tokens=3), Rewrite("2", "python", "", "x", "", "do")):
        assert request_of(json.loads(json.dumps(told(request)))) == request


def test_a_worker_answers_though_its_libraries_print_and_tells_when_it_ended() -> None:
    with Worker("tests.fakes.echo_worker") as worker:
        watch = Watch()
        assert worker.ask(watch, op="say", text="Grüße\n") == {"asked": {"op": "say", "text": "Grüße\n"}}
        assert watch.wall > 0
        with pytest.raises(RuntimeError, match="ended with status 3"):
            worker.ask(op="end")


def test_greedy_ids_part_nowhere_and_others_where_they_differ() -> None:
    model = tiny_denoiser()
    prompt = fill_prompt(Fill("1", "python", "def f(x):\n", "\n", max_tokens=8), model.tokenizer, model.facts.special)
    context = model.context_for(prompt.ids)
    model.encode(context, prompt.ids[context.length :])
    ids = [token for token, _ in greedy(model, context, prompt.gap.pending, 6, adapted=prompt.gap.adapted)]
    model.release(context)
    assert partings_of(model, prompt, ids)[0] == []
    wrong = [*ids[:3], (ids[3] + 1) % 200, *ids[4:]]
    place, lead = partings_of(model, prompt, wrong)[0][0]
    assert place == 3
    assert lead > 0
    special = model.facts.special.special
    plain = model.tokenizer.decode_bytes([token for token in ids if token not in special])
    assert text_of(model, prompt, ids) == decode_prefix(plain)


def test_the_command_line_chooses_scenarios_and_refuses_unknown_ones() -> None:
    assert options_of(["--only", "cold", "--quick"]).only == ["cold"]
    with pytest.raises(SystemExit):
        options_of(["--only", "warm"])


def test_a_line_says_whether_the_goal_holds() -> None:
    assert line_of(row_of("cold", [0.4, 0.4], 0.5)).endswith("ok")
    assert line_of(row_of("cold", [0.6], 0.5)).endswith("short")
    assert line_of(row_of("cold", [], 0.5)).endswith("not measured")
