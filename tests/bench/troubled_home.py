"""A LACUNA_HOME of its own for a run that harms what lies in it: the model is shared, its converted cache a copy."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.paths import Paths
from engine.store import Store


@contextmanager
def troubled_home(model: str) -> Iterator[tuple[Path, Path]]:
    """The folder, and where the converted weights lie in it. `LACUNA_HOME` names it until it is removed at the end.

    The copy needs as much room as the cache of the model, for the default one 0.7 GB (1.7 GB with its patch).
    """
    store = Store.of_user(os.environ)
    converted, models = store.converted_dir(model), store.paths.models
    before = os.environ.get("LACUNA_HOME")
    with tempfile.TemporaryDirectory(prefix="lac-", ignore_cleanup_errors=True) as name:
        home = Path(name)
        os.environ["LACUNA_HOME"] = str(home)
        own = Paths.from_environment(os.environ)
        own.models.parent.mkdir(parents=True, exist_ok=True)
        own.models.symlink_to(models.resolve(), target_is_directory=True)
        copied = own.cache / "converted" / converted.name
        if converted.exists():
            shutil.copytree(converted, copied)
        try:
            yield home, copied
        finally:
            if before is None:
                del os.environ["LACUNA_HOME"]
            else:
                os.environ["LACUNA_HOME"] = before
