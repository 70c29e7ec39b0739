"""Well-formed bytes with a few mistakes in them: every door keeps its promises (see `targets`)."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.lsp_target import LSP_SEEDS, LspTarget
from tests.fuzz.targets import Target, targets

TARGETS = targets()
# Numbers at which counts, lengths and offsets go wrong.
TELLING = (
    *(b"\xff" * 8, b"\xff\xff\xff\x7f", b"\0" * 8, struct.pack("<Q", 2**63), struct.pack(">I", 2**24)),
    *(
        b"[" * 2000,
        b'{"a":' * 500,
        b"9" * 5000,
        b"-1",
        b"1e999",
        b"NaN",
        b"null",
        b'"\\ud800"',
        b"\r\n\r\n",
        b'"',
        b"\\",
    ),
)
Change = Callable[[bytes], bytes]


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """One mistake, made at a share of the way through whatever it is made in."""
    kind = draw(st.sampled_from(("overwrite", "insert", "cut", "repeat")))
    share, length = draw(st.floats(0, 1)), draw(st.integers(1, 12))
    what = draw(st.sampled_from(TELLING) | st.binary(min_size=1, max_size=4))

    def change(data: bytes) -> bytes:
        place = int(share * len(data))
        if kind == "overwrite":
            return data[:place] + what + data[place + len(what) :]
        if kind == "insert":
            return data[:place] + what + data[place:]
        if kind == "cut":
            return data[:place] + data[place + length :]
        return data[:place] + data[place : place + length] * 2 + data[place + length :]

    return change


def mistaken(seeds: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """A seed or two with mistakes in them, or noise."""
    wrong = st.builds(_with_changes, st.lists(st.sampled_from(seeds), min_size=1, max_size=2), st.lists(changes()))
    return wrong | st.binary(max_size=100)


def _with_changes(parts: list[bytes], made: list[Change]) -> bytes:
    data = b"".join(parts)
    for change in made:
        data = change(data)
    return data


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"lsp_messages"}))
@given(st.data())
def test_no_bytes_break_a_promise(name: str, data: st.DataObject) -> None:
    target = TARGETS[name]
    target.run(data.draw(mistaken(target.seeds)))


@pytest.mark.parametrize("name", sorted(set(TARGETS) - {"lsp_messages"}))
@pytest.mark.parametrize("telling", TELLING, ids=range(len(TELLING)))
def test_telling_numbers_at_every_place(name: str, telling: bytes) -> None:
    target = TARGETS[name]
    for seed in target.seeds:
        target.run(seed)
        target.run(telling)
        for place in range(len(seed)):
            target.run(seed[:place] + telling + seed[place + len(telling) :])


@pytest.fixture
def server() -> Iterator[LspTarget]:
    target = LspTarget(inputs_each=10**6)
    yield target
    target.close()


JSON_VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "\ud800",
    "x" * 5000,
    [],
    {},
    [[]],
    {"jsonrpc": "2.0"},
)


def test_every_value_in_every_member_of_every_message(server: LspTarget) -> None:
    """All one-member mistakes there are, on one server; its documents and settings change under way."""
    for seed in LSP_SEEDS:
        message = json.loads(seed)
        for path in paths_in(message):
            for value in JSON_VALUES:
                server(json.dumps(replaced(message, path, value)).encode())
    server.finish()


def paths_in(value: object) -> Iterator[tuple[str | int, ...]]:
    """The way to every member, at every depth."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in members:
        yield (key,)
        yield from ((key, *path) for path in paths_in(inner))


def replaced(value: object, path: tuple[str | int, ...], by: object) -> object:
    """A copy with one member exchanged."""
    if not path:
        return by
    if isinstance(value, dict):
        return {key: replaced(inner, path[1:], by) if key == path[0] else inner for key, inner in value.items()}
    assert isinstance(value, list)
    return [replaced(inner, path[1:], by) if index == path[0] else inner for index, inner in enumerate(value)]


@settings(max_examples=100)
@given(st.lists(mistaken(LSP_SEEDS), max_size=5))
def test_broken_messages_break_no_server(bodies: list[bytes]) -> None:
    target: Target = Target(LspTarget(inputs_each=10**6), LSP_SEEDS)
    assert isinstance(target.run, LspTarget)
    target.run(b"\n".join(bodies))
    target.run.close()
