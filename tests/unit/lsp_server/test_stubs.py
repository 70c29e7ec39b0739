"""Which bodies are still to be written, and where their text goes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lsp_server import lexing
from lsp_server.holes import Hole
from lsp_server.languages import Language
from lsp_server.stubs import find_stubs, is_unfinished

QUOTED = 's = """\ndef f(a):\n    pass\n"""\n'


def marked(text: str) -> str:
    """The text with every stub in ‹›, and what its text begins with there."""
    pieces, done = [], 0
    for start, end, lead in find_stubs(text, 0, len(text), "python"):
        pieces.append(f"{text[done:start]}‹{text[start:end]}{lead}›")
        done = end
    return "".join([*pieces, text[done:]])


@pytest.mark.parametrize(
    "wanted",
    [
        "def f():\n    ‹pass›\n",
        "def f():\r\n    ‹pass›\r\n",
        "def f():\r    ‹...›\r",
        "def f(): ‹...›\n",
        "def f(x): ‹pass›",
        "async def f(\n    a,\n) -> int:\n    ‹raise NotImplementedError('later')›\n",
        'def f():\n    """Say so.\n\n    pass\n    """\n    ‹...›',
        "def f():  # soon\n    ‹pass›",
        "def f():\n\n    # Adds them.\n    ‹pass›  \n",
        "def f(a=':', b={1: 2}, c=lambda: 0) -> 'int':\n    ‹pass›\n",
        "def f(a, b:\n    ‹pass›\n\nclass\n",
        "def f():\n    ‹pass›\n\n\ndef g():\n    ‹...›\n",
        "def f():\n    def g():\n        ‹pass›\n    return g\n",
        "class A:\n\tdef f(self):\n\t\t‹pass›\n\n\tdef g(self): ‹...›\n",
        'def f():\n    """Say so."""‹\n    ›\n',
        'def f():\n    """Say so."""‹\n    ›',
        "def f():\n    r'''Say so.\n\n    At length.\n    '''  # noqa‹\n    ›\n\n\nx = 1\n",
        'class A:\n\tdef f(self):\n\t\t"""Say so."""\n\t\t# now: add‹\n\t\t›\n\n\tx = 1\n',
        'def f():\r\n    """Say so."""‹\n    ›\r\n',
    ],
)
def test_stubs_and_lone_docstrings_are_bodies_to_be_written(wanted: str) -> None:
    text = wanted.replace("‹\n    ›", "").replace("‹\n\t\t›", "").replace("‹", "").replace("›", "")
    assert marked(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    x = 1\n    pass\n",
        "def f():\n    pass\n    x = 1\n",
        "class A:\n    pass\n",
        'class A:\n    """Say so."""\n',
        "try:\n    f()\nexcept OSError:\n    pass\n",
        "def f():\n    '''x''' + y\n    pass\n",
        'def f():\n    """Say so."""\n    return 1\n',
        'def f(): """Say so."""\n',
        "x = pass_\n",
        "def f(): return x\n",
        "def f():\npass\n",
        QUOTED,
        "# def f():\n#     pass\n",
        "def f",
    ],
)
def test_what_is_whole_or_text_is_no_stub(text: str) -> None:
    assert find_stubs(text, 0, len(text), "python") == []


def test_stubs_are_pythons() -> None:
    assert find_stubs("def f\n  ...\nend\n", 0, 16, "ruby") == []
    assert find_stubs("def f():\n    pass\n", 0, 18, "javascript") == []


def test_stubs_outside_the_selection_stay() -> None:
    text = "def f():\n    pass\n\n\ndef g():\n    pass\n"
    assert find_stubs(text, 0, 17, "python") == [Hole(13, 17)]
    assert find_stubs(text, 0, 16, "python") == []
    assert find_stubs(text, 13, 17, "python") == [Hole(13, 17)]
    documented = 'def f():\n    """One."""\n\ndef g():\n    pass\n'
    assert find_stubs(documented, documented.index("\n\ndef"), len(documented), "python") == [Hole(38, 42)]


def test_only_a_bounded_stretch_around_the_selection_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    scan = lexing.scan

    def counted(text: str, language: Language) -> Iterator[lexing.Event]:
        read.append(len(text))
        return scan(text, language)

    monkeypatch.setattr(lexing, "scan", counted)
    stub = "def f():\n    pass\n\n\n"
    text = "x = [1, 2]\n" * 20_000 + stub * 150 + "y = 1\n" * 20_000
    start = text.index("def")
    assert len(find_stubs(text, start, start + len(stub) * 150, "python")) == 150
    assert len(read) == 1
    assert read[0] < len(stub) * 150 + 15_000


@pytest.mark.parametrize(
    ("language", "selected"),
    [
        ("python", "def f():\n    pass\n"),
        ("python", "def f(x): pass\r\n"),
        ("python", "def f():\r    ...\r"),
        ("python", 'def f():\n    """Say so."""\n'),
        ("python", "def f():\n    ...  # later\n"),
        ("python", "def f(a):"),
        ("python", "raise NotImplementedError"),
        ("python", "def f():\n    # TODO: sum\n    return 0\n"),
        ("javascript", "function f() { }"),
        ("rust", "fn f() { todo!() }"),
        ("go", "func F() {\n\t// TODO: write\n}"),
        ("gdscript", "func f():\r\n\tpass\r\n"),
        ("gdscript", "func f():\r\tpass\r"),
    ],
)
def test_a_body_is_completed_where_one_is_missing(language: str, selected: str) -> None:
    assert is_unfinished(selected, 0, len(selected), language)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "try:\n    f()\nexcept OSError:\n    pass\n"),
        ("python", "class A:\n    pass\n"),
        ("python", "x = {}\n"),
        ("python", "def __eq__(self, other):\n    return NotImplemented\n"),
        ("python", QUOTED),
        ("javascript", "function f() { return 1; }"),
    ],
)
def test_what_is_whole_is_not_completed(language: str, text: str) -> None:
    assert not is_unfinished(text, 0, len(text), language)
