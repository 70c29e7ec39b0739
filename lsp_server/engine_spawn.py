"""Start an engine process that outlives this one, and read why it left if it leaves at once.

Owns the child's command line, its log file and that file's size. Only ever a subprocess: nothing of the engine
but its protocol is imported here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import platformdirs

import lsp_server
from engine.protocol.errors import EngineError
from engine.protocol.last_words import read_last_words
from engine.protocol.model_name import engine_name

MAX_LOG_BYTES = 1024 * 1024
TAIL_BYTES = 8 * 1024


def engine_command(model: str) -> list[str]:
    """The command line of the product's own engine."""
    # -P: a folder named `engine` where the editor was started must not be run in place of ours.
    return [sys.executable, "-P", "-m", "engine", "run", "--model", model]


def log_path(model: str, env: Mapping[str, str]) -> Path:
    """The file the engine for `model` writes its log to."""
    home = env.get("LACUNA_HOME")
    state = Path(home).expanduser().absolute() / "state" if home else Path(platformdirs.user_state_dir("lacuna"))
    return state / f"engine-{engine_name(model)}.log"


class EngineChild:
    """A started engine. It is watched while this process lives, and never killed by it.

    `log_start` is the size of the log in bytes before this engine wrote to it, None when it can write none.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path, log_start: int | None) -> None:
        self._process = process
        self._log = log
        self._log_start = log_start

    def exit_status(self) -> int | None:
        """None while it runs; 0 when it left because another engine serves already."""
        return self._process.poll()

    def failure(self) -> EngineError:
        """Why it left, from the last words in its own part of the log, or from the signal that ended it."""
        if self._process.returncode < 0:
            return _ended_by(-self._process.returncode, self._log)
        if self._log_start is None:
            return _unlogged(self._process.returncode, self._log.parent)
        tail = _tail(self._log, self._log_start)
        for line in reversed(tail):
            if (found := read_last_words(line)) is not None:
                return found
        said = tail[-1] if tail else "it wrote nothing"
        status = self._process.returncode
        return EngineError(
            "internal",
            f"the engine left with status {status} before it served: {said[:300]}",
            f"see {self._log}, or run `lacuna doctor`",
        )

    def let_go(self) -> None:
        """Forget the child without a warning about it still running: outliving us is what it is for."""
        if self._process.poll() is None:
            self._process.returncode = 0


def spawn(command: Sequence[str], model: str, env: Mapping[str, str]) -> EngineChild:
    """Start `command` detached: own session, no standard input, output to the log file.

    Raises EngineError(internal) when the command cannot be run.
    """
    path = log_path(model, env)
    log = _open_log(path)
    try:
        start = log.tell() if log is not None else None
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=log if log is not None else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            env=_child_env(env),
            # The folder the editor was started in must not be kept in use by a process that outlives it.
            cwd=path.anchor,
            close_fds=True,
            start_new_session=True,
            creationflags=_creation_flags(),
        )
    except OSError as fault:
        raise EngineError(
            "internal", f"the engine cannot be started ({fault.strerror})", "check the installation: `lacuna doctor`"
        ) from None
    finally:
        if log is not None:
            log.close()
    return EngineChild(process, path, start)


def _ended_by(number: int, log: Path) -> EngineError:
    """The failure of an engine that a signal ended: it had no time for words."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if name == "SIGKILL":
        return EngineError(
            "out_of_memory",
            "the engine was killed from outside before it served, which systems do when memory runs out",
            "close programs or use a smaller model; `lacuna doctor` says how much memory this one needs",
        )
    return EngineError(
        "internal", f"the engine crashed before it served ({name})", f"see {log}, or run `lacuna doctor`"
    )


def _unlogged(status: int, folder: Path) -> EngineError:
    """The failure of an engine that could leave no words: what stands in the log is from an earlier one."""
    return EngineError(
        "internal",
        f"the engine ended with status {status} before it served, and its log in {folder} could not be written",
        "make that folder writable, or set LACUNA_HOME to one that is; `lacuna doctor` says more",
    )


def _open_log(path: Path) -> BinaryIO | None:
    """The log opened for appending, made small first; None where nothing can be written (a read-only home)."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > MAX_LOG_BYTES:
            path.replace(path.with_suffix(".log.1"))
        log = path.open("ab")
    except OSError:
        return None
    log.seek(0, os.SEEK_END)
    return log


def _child_env(env: Mapping[str, str]) -> dict[str, str]:
    """`env`, and a way to find our own packages when they run from a checkout that is not installed."""
    if home := env.get("LACUNA_HOME"):
        env = {**env, "LACUNA_HOME": str(Path(home).expanduser().absolute())}
    root = Path(lsp_server.__file__).resolve().parent.parent
    if root.name in {"site-packages", "dist-packages"}:
        return dict(env)
    paths = [str(root), *filter(None, [env.get("PYTHONPATH")])]
    return {**env, "PYTHONPATH": os.pathsep.join(paths)}


def _creation_flags() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0


def _tail(path: Path, start: int) -> list[str]:
    try:
        with path.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(min(start, end), end - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.strip() for line in text.split("\n") if line.strip()]
