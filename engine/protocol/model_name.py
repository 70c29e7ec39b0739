"""What stands for a model: a name of the registry, or the absolute path of its weights. Stdlib only; touches no file.

Both sides of the door derive an engine's address and its log's name from here, so that they agree.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from engine.protocol.errors import EngineError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_STEM_LENGTH = 40


def as_written(model: str) -> str:
    """`model` as a person wrote it: a path (it holds a separator, or ends in .gguf) made absolute, a name unchanged."""
    separators = {os.sep, os.altsep} - {None}
    if any(str(mark) in model for mark in separators) or model.endswith(".gguf"):
        return os.path.normpath(Path(model).expanduser().absolute())
    return model


def is_path(model: str) -> bool:
    """Whether `model` names weights by where they lie."""
    return Path(model).is_absolute()


def engine_name(model: str) -> str:
    """What the engine of `model` is called, in a form that can name files.

    A path gives its last part and a digest of the whole. Raises EngineError(bad_request) for what is neither.
    """
    if is_path(model):
        stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(model).name).strip(".-_")[:_STEM_LENGTH] or "model"
        # The letters of a name are those of the registry's names; ".." could leave a folder.
        return f"{stem.replace('..', '-').lower()}-{hashlib.sha256(os.fsencode(model)).hexdigest()[:8]}"
    if not _NAME.fullmatch(model) or ".." in model:
        raise EngineError(
            "bad_request",
            f"{model[:64]!r} is no model name",
            "use a name that `lacuna models list` shows, or the path of a GGUF file or a model's folder",
        )
    return model
