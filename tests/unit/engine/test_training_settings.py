"""Settings from files and words: what is taken, what is refused and how that is worded; whose folder a run's is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from engine.training.optimiser import OptimiserChoice
from engine.training.run_folder import SETTINGS, claimed, keep_settings, require_same_settings, settings_of
from engine.training.run_settings import RunSettings, read_settings
from tests.fakes.tiny_training import SETTING_WORDS
from tests.fakes.tiny_training import SETTINGS as TINY


def pairs(*words: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in words)


def test_without_a_word_settings_are_the_defaults() -> None:
    assert read_settings(None, {}) == RunSettings()


def test_words_change_single_settings() -> None:
    changed = read_settings(None, {"seed": "5", "optimiser.learning_rate": "1", "blocks.widths": "[3, 9]"})
    assert changed == replace(
        RunSettings(),
        seed=5,
        optimiser=OptimiserChoice(learning_rate=1.0),
        blocks=replace(RunSettings().blocks, widths=(3, 9)),
    )
    assert read_settings(None, pairs(*SETTING_WORDS)) == TINY


def test_what_a_run_keeps_is_read_again_and_words_come_on_top(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(TINY.to_json(), encoding="utf-8")
    assert read_settings(path, {}) == TINY
    assert read_settings(path, {"seed": "9"}) == replace(TINY, seed=9)
    # What a file of an earlier version leaves out is as by default.
    path.write_text('{"seed": 3, "weights": {"masks": 1}}', encoding="utf-8")
    assert read_settings(path, {}) == replace(RunSettings(), seed=3, weights=replace(RunSettings().weights, masks=1.0))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"speed": "1"}, "speed: there is no setting 'speed'; there are blocks, contexts"),
        ({"optimiser.rate": "1"}, "optimiser.rate: there is no setting 'rate'; there are average"),
        ({"optimiser": "1"}, "optimiser is a group of settings"),
        ({"seed.x": "1"}, "seed.x: 'seed' is no group of settings"),
        ({"seed": "one"}, "seed: 'one' is no JSON value"),
        ({"seed": "1.5"}, "seed: 1.5 is no int"),
        ({"seed": "true"}, "seed: True is no int"),
        ({"optimiser.clip": '"1"'}, "optimiser.clip: '1' is no float"),
        ({"blocks.widths": "4"}, "blocks.widths: 4 is no list"),
        ({"blocks.widths": "[4, 5.5]"}, "blocks.widths: 5.5 is no int"),
        ({"blocks.widths": "[]"}, "blocks.widths: widths must list"),
        ({"optimiser.betas": "[0.9]"}, "optimiser.betas: betas are two numbers"),
        ({"optimiser.learning_rate": "-1"}, "optimiser.learning_rate: learning_rate must be a positive"),
        ({"optimiser.learning_rate": "NaN"}, "optimiser.learning_rate: learning_rate must be a positive"),
        ({"gaps_per_step": "0"}, "gaps_per_step: gaps_per_step must be at least 1"),
        ({"frequent": "0"}, "frequent must be at least 1"),
    ],
)
def test_words_that_make_no_setting_are_refused(words: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace(".", r"\.")):
        read_settings(None, words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("\udcff", "is no JSON"),
        ("[1]", "holds no JSON object"),
        ('{"seed": null}', "seed: None is no int"),
        ('{"weights": 3}', "weights is a group of settings"),
        ('{"weights": {"end": "2"}}', r"weights\.end: '2' is no float"),
        ('{"weights": {"ends": 2}}', r"weights\.ends: there is no setting 'ends'"),
    ],
)
def test_a_file_that_holds_no_settings_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(text.encode("utf-8", errors="surrogateescape"))
    with pytest.raises(ValueError, match=rf"mine\.json.*{said}"):
        read_settings(path, {})


def test_a_folder_keeps_the_settings_of_its_run(tmp_path: Path) -> None:
    assert settings_of(tmp_path) is None
    require_same_settings(tmp_path, TINY)
    keep_settings(tmp_path, TINY)
    require_same_settings(tmp_path, TINY)
    with pytest.raises(ValueError, match="a run with other settings: give this one a folder of its own"):
        require_same_settings(tmp_path, RunSettings())
    keep_settings(tmp_path, RunSettings())
    assert json.loads((tmp_path / SETTINGS).read_text(encoding="utf-8")) == json.loads(TINY.to_json())


def test_one_trainer_at_a_time_holds_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"
    with claimed(folder):
        with pytest.raises(ValueError, match="another trainer is writing"), claimed(folder):
            pass
        with claimed(tmp_path / "runs" / "other"):
            pass
    with claimed(folder):
        assert folder.is_dir()
