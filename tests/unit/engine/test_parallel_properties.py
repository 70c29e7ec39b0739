"""What holds for every family, sampler and configuration: locked places, forbidden ids, repeatability."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.diffusion.parallel import CanvasResult
from engine.diffusion.sampling import SamplingConfig
from engine.diffusion.stopping import Limits
from engine.models.canvas_model import CanvasFacts, CanvasJob, Known, Part
from tests.fakes.scripted_canvas import (
    DELETE,
    END,
    EXPAND,
    MASK,
    VOCAB,
    ScriptedCanvasModel,
    denoised,
    random_script,
    scripted_facts,
    uniform_facts,
)

SILENT = {END, *range(MASK, VOCAB)}

configs = st.builds(
    SamplingConfig,
    steps=st.integers(0, 6),
    sampler=st.sampled_from(["entropy_bound", "confidence"]),
    schedule=st.sampled_from(["linear", "cosine", "adaptive"]),
    temperature_start=st.sampled_from([0.0, 0.5, 1.5]),
    temperature_end=st.sampled_from([0.0, 0.5]),
    deterministic=st.booleans(),
    top_p=st.sampled_from([0.5, 1.0]),
    entropy_bound=st.sampled_from([0.1, 3.0]),
    confidence_threshold=st.sampled_from([0.1, 0.9]),
    confidence_factor=st.sampled_from([0.0, 1.0]),
    top_n=st.sampled_from([0, 2]),
    remask=st.sampled_from(["none", "cap", "rescale", "confidence", "edit"]),
    remask_strength=st.sampled_from([0.0, 0.3, 1.0]),
    stable_steps=st.integers(0, 2),
    stop_entropy=st.sampled_from([0.0, 2.0]),
    refresh_every=st.sampled_from([1, 3]),
)
families = st.sampled_from(
    [
        scripted_facts(),
        scripted_facts(block=4),
        scripted_facts(exact_cache=False),
        scripted_facts(expand_id=EXPAND, delete_id=DELETE),
        scripted_facts(expand_id=EXPAND, delete_id=END),
        scripted_facts(islands=False),
        uniform_facts(),
        uniform_facts(canvas_length=24, right_context=False),
    ]
)
tokens = st.integers(0, 255)
warm = st.lists(tokens, min_size=1, max_size=5).map(tuple)
holes = st.one_of(
    st.builds(lambda n: Part(is_hole=True, length=n), st.integers(1, 5)),
    st.builds(lambda ids: Part(is_hole=True, warm=ids), warm),
    st.builds(lambda ids, n: Part(is_hole=True, warm=ids, reopen=frozenset({n % len(ids)})), warm, st.integers(0, 4)),
    st.builds(lambda: Part(is_hole=True, candidates=(2, 3, 5))),
)
islands = st.builds(lambda ids: Part(is_hole=False, ids=ids), warm)
jobs = st.builds(
    lambda first, rest, after: CanvasJob(
        Known((1, 2), (3, 4) if after else ()), (first, *(part for pair in rest for part in pair))
    ),
    holes,
    st.lists(st.tuples(islands, holes), max_size=2),
    st.booleans(),
)


def fitting(config: SamplingConfig, facts: CanvasFacts) -> SamplingConfig:
    return (
        config
        if facts.noise == "mask"
        else SamplingConfig.from_mapping(
            {name: getattr(config, name) for name in config.__slots__} | {"remask": "none"}
        )
    )


@settings(max_examples=150)
@given(configs, families, jobs, st.integers(0, 5))
def test_given_text_stays_and_only_real_ids_come_out(
    config: SamplingConfig, facts: CanvasFacts, job: CanvasJob, seed: int
) -> None:
    model = ScriptedCanvasModel(random_script(seed), facts)
    steps, result = denoised(model, job, fitting(config, facts), seed=seed, limits=Limits(40))
    given_ids = {part.ids for part in job.parts if not part.is_hole}
    for inputs in model.calls:
        for each in inputs:
            _islands_are(each.canvas.ids.tolist(), each.canvas.locked.tolist(), given_ids, job)
    for step in steps:
        _islands_are(step.canvas.ids.tolist(), step.canvas.locked.tolist(), given_ids, job)
        assert len(step.drafts()) == len(result.parts)
    assert all(not SILENT & set(part) for part in result.parts)
    assert sum(map(len, result.parts)) <= 40
    kept = [part for part in job.parts if part.is_hole]
    for part, ids in zip(kept, result.parts, strict=True):
        if part.reopen is not None and facts.expand_id < 0 and END not in ids and len(ids) == len(part.warm):
            assert all(ids[n] == token for n, token in enumerate(part.warm) if n not in part.reopen)


def _islands_are(ids: list[int], locked: list[bool], given_ids: set[tuple[int, ...]], job: CanvasJob) -> None:
    """Each run of locked places is a given island, or the beginning of the text behind, or of an island cut."""
    runs: list[tuple[int, ...]] = []
    for token, is_locked, before in zip(ids, locked, [False, *locked], strict=False):
        if is_locked:
            runs = [*runs[:-1], (*runs[-1], token)] if before else [*runs, (token,)]
    allowed = given_ids | {job.known.suffix}
    for run in runs:
        assert any(run == ids or run == ids[: len(run)] for ids in allowed)


@settings(max_examples=60)
@given(configs, families, jobs, st.integers(0, 5))
def test_the_same_seed_gives_the_same_text(
    config: SamplingConfig, facts: CanvasFacts, job: CanvasJob, seed: int
) -> None:
    results: list[CanvasResult] = []
    for _ in range(2):
        model = ScriptedCanvasModel(random_script(seed), facts)
        results.append(denoised(model, job, fitting(config, facts), seed=seed, limits=Limits(40))[1])
    assert results[0] == results[1]
