"""A program in a terminal of its own: keys go in, and what is on its screen is waited for. No pause of fixed length."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pyte

PATIENCE_S = 60.0
COLUMNS, LINES = 120, 40


class Terminal:
    """`with Terminal(command, folder, env) as program`: it is killed at the end, whatever happens."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self._main, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self._process = subprocess.Popen(
            list(command),
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=folder,
            env=dict(env) | {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(LINES)},
            start_new_session=True,
        )
        os.close(inner)
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._main)

    def press(self, keys: str) -> None:
        """Type `keys`."""
        os.write(self._main, keys.encode())

    def sees(self, text: str, patience_s: float = PATIENCE_S) -> bool:
        """Wait until `text` stands in a line of the screen; whether it does."""
        end = time.monotonic() + patience_s
        while text not in self.screen:
            if time.monotonic() > end or not self._read(0.05):
                return text in self.screen
        return True

    def sees_no(self, text: str, patience_s: float = PATIENCE_S) -> bool:
        """Wait until `text` has gone from the screen; whether it has."""
        end = time.monotonic() + patience_s
        while text in self.screen:
            if time.monotonic() > end or not self._read(0.05):
                return text not in self.screen
        return True

    @property
    def screen(self) -> str:
        """What a person sees, line by line."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def end(self) -> int:
        """Wait until the program has left; its exit status. Raises TimeoutExpired."""
        end = time.monotonic() + PATIENCE_S
        while self._process.poll() is None and time.monotonic() < end:
            self._read(0.05)
        return self._process.wait(timeout=1)

    def _read(self, patience_s: float) -> bool:
        """Take in what there is; False when the program has closed its side."""
        while select.select([self._main], [], [], patience_s)[0]:
            try:
                data = os.read(self._main, 65536)
            except OSError:
                return False
            if not data:
                return False
            self._stream.feed(data)
            patience_s = 0.0
        return True
