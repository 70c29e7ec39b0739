"""What every test may ask for: the default model, and how hard the property tests look.

300 examples in the normal run, `--hypothesis-profile=nightly` for 10,000.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from engine.config import DEFAULT_MODEL
from engine.runtime.environment import prepare_environment

if TYPE_CHECKING:
    from engine.models.hybrid import HybridDenoiser

settings.register_profile("normal", max_examples=300, deadline=None)
settings.register_profile("nightly", max_examples=10_000, deadline=None)
settings.load_profile("normal")

# As the engine does it, before torch is imported: spinning threads make tests crawl on a busy machine.
prepare_environment(os.environ)


@pytest.fixture(autouse=True)
def _denormals() -> Iterator[None]:
    """A loaded model flushes denormals in the whole process; the next test's floats must be ordinary again."""
    yield
    if "torch" in sys.modules:
        sys.modules["torch"].set_flush_denormal(False)


@pytest.fixture(scope="session")
def default_gguf() -> Path:
    """The default model's file, fetched on first use as `lacuna models pull` would."""
    from engine.store import Store

    return Store.of_user(os.environ).pull(DEFAULT_MODEL)


@pytest.fixture(scope="session")
def default_model(default_gguf: Path) -> HybridDenoiser:
    """The default model on the int8 path with its patch, loaded once for the whole run."""
    from engine.models.loading import adapter_path, load_denoiser
    from engine.store import Store

    cache = Store.of_user(os.environ).converted_dir(DEFAULT_MODEL)
    return load_denoiser(default_gguf, cache, name=DEFAULT_MODEL, adapter=adapter_path(), threads=os.cpu_count())


@pytest.fixture
def model_home(default_gguf: Path, tmp_path: Path) -> Path:
    """A `LACUNA_HOME` of the test's own that shares the fetched and converted models, but no engine and no logs."""
    from engine.paths import Paths

    real = Paths.from_environment(os.environ)
    home = tmp_path / "home"
    home.mkdir()
    real.cache.mkdir(parents=True, exist_ok=True)
    (home / "models").symlink_to(real.models, target_is_directory=True)
    (home / "cache").symlink_to(real.cache, target_is_directory=True)
    return home


@pytest.fixture
def heard_interrupts() -> Iterator[None]:
    """A job that a shell put in the background inherits that Ctrl-C is ignored, and so would its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
