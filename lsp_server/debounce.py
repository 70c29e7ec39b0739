"""How long to wait before the engine is asked, so that only the last key of a burst does: as long as it must be.

A lone request waits not at all. In a burst the wait is the user's setting at least; it grows each time a key overtook
a question the engine was working on and shrinks with each answer that came in time. Owns no timers: the caller waits.
"""

from __future__ import annotations

from lsp_server.clock import Clock

GROWTH = 1.5
SHRINKING = 0.6
# People notice a longer wait as one of its own, whatever the engine takes.
LONGEST_S = 0.6
# Who rests this long begins anew.
REST_S = 3.0


class Debounce:
    """The waits of one editor. `key` is whatever bursts apart: a document and a kind of request."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._asked_at: dict[object, float] = {}
        self._last_at: float | None = None
        self._window_s = 0.0

    @property
    def window_s(self) -> float:
        """Seconds by which bursts are judged at present, where the setting asks for less."""
        return self._window_s

    def pause_s(self, key: object, least_s: float) -> float:
        """Seconds to wait before asking; none for a request that comes alone, or where `least_s` is none."""
        now = self._clock.now()
        if self._last_at is not None and now - self._last_at > REST_S:
            self._window_s = 0.0
        before, self._asked_at[key] = self._asked_at.get(key), now
        self._last_at = now
        if not least_s:
            return 0.0
        self._window_s = max(self._window_s, least_s)
        return self._window_s if before is not None and now - before < self._window_s else 0.0

    def outrun(self) -> None:
        """A question was dropped while the engine worked on it: keys come faster than answers."""
        self._window_s = max(self._window_s, min(LONGEST_S, self._window_s * GROWTH))

    def kept_up(self) -> None:
        """An answer came in time to be of use."""
        self._window_s *= SHRINKING

    def forget(self, uri: str) -> None:
        """Drop what is known of a document's requests."""
        for key in [key for key in self._asked_at if isinstance(key, tuple) and key[0] == uri]:
            del self._asked_at[key]
