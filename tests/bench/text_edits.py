"""What an edit and a position look-up cost the server in long files: `python -m tests.bench.text_edits`.

The first table is the server's own text against pygls's `TextDocument`, fed with the same changes and positions in the
same run: medians in milliseconds, and how many times faster. The second one is a key on its way through the whole
server: framing, parsing, dispatch and the edit, as processor time per key. One line of JSON each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

from lsprotocol import types
from pygls.workspace import TextDocument

from lsp_server.document import Change, Document, apply_changes
from lsp_server.positions import PositionEncoding, TextPosition
from tests.fakes import lsp_client as lsp

UTF16 = PositionEncoding.UTF16
LINES = {
    "ascii": "    value = compute(argument)\n",
    "unicode": "    größe = '🙂漢字'  # é\r\n",
    "mixed": "value = compute(1)\r\nx = 2\n",
    "blank": "\n",
}


@dataclass(frozen=True)
class Work:
    """The same keys for both sides: one letter after another at the start of a line in the middle of the text."""

    line: str
    count: int

    @property
    def text(self) -> str:
        return self.line * self.count

    def place(self, key: int) -> tuple[int, int]:
        return self.count // 2 + key % 7, 0


def median_ms(act: Callable[[int], object], rounds: int) -> float:
    """The median time of `act`, which is told which round it is."""
    times = []
    for number in range(rounds):
        began = time.perf_counter()
        act(number)
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1000


def own_times(work: Work, rounds: int) -> tuple[float, float]:
    """Milliseconds for an edit, and for a position look-up after each of a number of edits."""
    versions = [Document.open("file:///a.py", 0, "python", work.text)]

    def edit(key: int) -> None:
        place = TextPosition(*work.place(key))
        versions[0] = apply_changes(versions[0], key, [Change(place, place, "x")], UTF16)

    def look_up(key: int) -> int:
        return versions[0].index.to_offset(work.count * key // rounds, 4, UTF16)

    return median_ms(edit, rounds), median_ms(look_up, rounds)


def pygls_times(work: Work, rounds: int) -> tuple[float, float]:
    """The same for the framework's document."""
    document = TextDocument("file:///a.py", work.text, version=0, language_id="python")

    def edit(key: int) -> None:
        place = types.Position(*work.place(key))
        document.apply_change(types.TextDocumentContentChangePartial(types.Range(place, place), "x"))

    def look_up(key: int) -> int:
        return document.offset_at_position(types.Position(work.count * key // rounds, 4))

    return median_ms(edit, rounds), median_ms(look_up, rounds)


async def key_ms(work: Work, keys: int) -> float:
    """Milliseconds of processor time per key, from bytes to the new version; the client's share is in it."""
    async with lsp.session() as client:
        client.open(work.text)
        await client.engine()
        began = time.process_time()
        for key in range(keys):
            place = work.place(key)
            client.send(lsp.change(2 + key, "x", lsp.area(place, place)))
        # An answer means that all before it has been handled.
        await client.engine()
        return (time.process_time() - began) * 1000 / keys


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.text_edits", description=__doc__)
    parser.add_argument("--lines", type=int, nargs="+", default=[1_000, 20_000, 100_000, 400_000])
    parser.add_argument("--rounds", type=int, default=200, help="edits and look-ups of our own")
    parser.add_argument("--pygls-rounds", type=int, default=11, help="the same for pygls, which is slow")
    options = parser.parse_args()
    for name, line in LINES.items():
        for count in options.lines:
            work = Work(line, count)
            own, other = own_times(work, options.rounds), pygls_times(work, options.pygls_rounds)
            row: dict[str, object] = {
                "text": name,
                "lines": work.text.count("\n"),
                "mb": round(len(work.text) / 1e6, 2),
            }
            for label, mine, theirs in zip(("edit", "look_up"), own, other, strict=True):
                row[f"{label}_ms"], row[f"{label}_pygls_ms"] = round(mine, 4), round(theirs, 3)
                row[f"{label}_times_faster"] = round(theirs / mine, 1)
            print(json.dumps(row), flush=True)
    for count in options.lines:
        spent = asyncio.run(key_ms(Work(LINES["ascii"], count), 50))
        print(json.dumps({"key_through_server": True, "lines": count, "cpu_ms": round(spent, 3)}), flush=True)


if __name__ == "__main__":
    main()
