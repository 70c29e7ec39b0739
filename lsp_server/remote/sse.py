"""Server-sent events, from bytes as they arrive to the data of each event (WHATWG HTML, section 9.2). Pure.

Only `data` matters to the APIs spoken here. A stream is another machine's word, so every event is bounded.
"""

from __future__ import annotations

LARGEST_EVENT = 1 << 20


class EventTooLargeError(ValueError):
    """An event of more than `LARGEST_EVENT` bytes."""


class EventDecoder:
    """One stream. Bytes may be cut anywhere, also inside a character or between CR and LF."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._searched = 0

    def feed(self, chunk: bytes) -> list[str]:
        """The data of the events that `chunk` completes. Raises EventTooLargeError."""
        self._pending += chunk
        events: list[str] = []
        start = 0
        while (end := self._pending.find(b"\n", max(start, self._searched))) >= 0:
            line = bytes(self._pending[start:end]).removesuffix(b"\r")
            start = end + 1
            self._searched = start
            if (event := self._take(line)) is not None:
                events.append(event)
        del self._pending[:start]
        self._searched = len(self._pending)
        if len(self._pending) + self._size > LARGEST_EVENT:
            raise EventTooLargeError
        return events

    def _take(self, line: bytes) -> str | None:
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data).decode("utf-8", "replace") if data else None
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)
            if self._size > LARGEST_EVENT:
                raise EventTooLargeError
        return None
