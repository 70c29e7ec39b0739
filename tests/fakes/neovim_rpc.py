"""Neovim's msgpack-RPC over the standard streams of `nvim --embed`, one call at a time.

See Neovim's `:help rpc`: a request is `[0, id, method, params]`, its response `[1, id, error, result]`, a notification
`[2, method, params]`. Nothing here is asynchronous, and nothing is left open.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Sequence
from typing import IO, Any

import msgpack

CHUNK = 65536


class NeovimFault(Exception):  # noqa: N818 (as the editor's own word for it)
    """What Neovim says is wrong with a call."""


class Rpc:
    """A running `nvim --embed`, to be called. Calls raise NeovimFault, or TimeoutError after `patience_s`."""

    def __init__(self, command: Sequence[str], patience_s: float) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._unpacker = msgpack.Unpacker(raw=False, strict_map_key=False, unicode_errors="surrogateescape")
        self._patience_s = patience_s
        self._last = 0

    @property
    def pid(self) -> int:
        """The process id of Neovim."""
        return self._process.pid

    def call(self, method: str, *arguments: Any) -> Any:
        """The result of an API function."""
        self._last += 1
        self._write([0, self._last, method, arguments])
        end = time.monotonic() + self._patience_s
        while True:
            for message in self._unpacker:
                if message[0] == 1 and message[1] == self._last:
                    if message[2] is not None:
                        raise NeovimFault(str(message[2]))
                    return message[3]
            self._read(end)

    def close(self) -> None:
        """Have Neovim end without saving, and wait until it has."""
        try:
            self._write([2, "nvim_command", ["qa!"]])
            self._stream(self._process.stdin).close()
            self._process.wait(self._patience_s)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        finally:
            self._stream(self._process.stdout).close()

    def _write(self, message: list[Any]) -> None:
        stream = self._stream(self._process.stdin)
        stream.write(msgpack.packb(message, unicode_errors="surrogateescape"))
        stream.flush()

    def _read(self, end: float) -> None:
        file = self._stream(self._process.stdout).fileno()
        ready, _, _ = select.select([file], [], [], max(end - time.monotonic(), 0))
        if not ready:
            raise TimeoutError("Neovim does not answer")
        data = os.read(file, CHUNK)
        if not data:
            raise NeovimFault("Neovim has ended")
        self._unpacker.feed(data)

    @staticmethod
    def _stream(stream: IO[bytes] | None) -> IO[bytes]:
        assert stream is not None
        return stream
