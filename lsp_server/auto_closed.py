"""What an editor puts behind the cursor by itself: the closers of the brackets and quotes that were just typed."""

from __future__ import annotations

_CLOSER_OF = {"(": ")", "[": "]", "{": "}"}
_QUOTES = frozenset("\"'`")


def closers_behind(typed: str) -> str:
    """The closers of all that `typed` leaves open, the innermost first; no language's rules, as editors have none."""
    open_: list[str] = []
    for letter in typed:
        if open_ and letter == open_[-1]:
            open_.pop()
        elif open_ and open_[-1] in _QUOTES:
            continue
        elif letter in _QUOTES:
            open_.append(letter)
        elif letter in _CLOSER_OF:
            open_.append(_CLOSER_OF[letter])
    return "".join(reversed(open_))


def says_again(text: str, closers: str) -> bool:
    """Whether `text` holds all of `closers` in their order, so that it may take their place."""
    letters = iter(text)
    return all(closer in letters for closer in closers)
