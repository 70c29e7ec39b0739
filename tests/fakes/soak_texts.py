"""Texts, places and names an editor may come up with: every choice follows from the `random.Random` it is given."""

from __future__ import annotations

import random

from tests.fakes.editor_model import EditorModel

Place = tuple[int, int]

MOST_INT = 2**31 - 1
LANGUAGES = {
    "python": ("py", "def area(w, h):\n    # größe\n    return <fill>\n\n\nclass A:\n    def f(self):\n        ...\n"),
    "javascript": ("js", "function area(w, h) {\n  // 🙂\n  const s = `a${w}`;\n  return w * h;\n}\n"),
    "typescript": ("ts", "interface A { x: number }\nconst f = (a: A): number => {\n  return a.x;\n};\n"),
    "go": ("go", 'package main\n\nfunc area(w int) int {\n\treturn w // "x"\n}\n'),
    "rust": ("rs", "fn area<'a>(w: &'a str) -> usize {\n    let r = r#\"x\"#;\n    w.len()\n}\n"),
    "c": ("c", '#include <stdio.h>\nint main(void) {\n    printf("%d\\n", 1);\n    return 0;\n}\n'),
    "html": ("html", "<!-- 漢字 -->\n<ul>\n  <li>one</li>\n</ul>\n<script>let a = 1;</script>\n"),
    "yaml": ("yaml", "a:\n  - b: 1  # x\n  - c: [1, 2]\n"),
    "markdown": ("md", "# Title\n\nSome *text* `code`.\n\n```python\nx = 1\n```\n"),
    "ruby": ("rb", "def area(w)\n  w.map { |x| x + 1 }\nend\n"),
    "plaintext": ("txt", "Just some words.\nAnd more of them.\n"),
    "made-up": ("zzz", "word word\n\tword\n"),
}
PIECES = (
    *("a", "x", "(", ")", '"', "'", "    ", "\t", "}", "#", "value", "return ", "a.b(c)", "def f(x):\n    "),
    *("\n", "\r\n", "\r", "\n\n", "\nx = 1\n    y = 2\n", "🙂", "é", "漢字", "👨‍👩‍👧", "\u2028", "\x0c", "\x85"),
    *(
        "<fill>",
        "    ...\n",
        "pass  # fill",
        "# lacuna: add type hints\n",
        '"""',
        "`",
        "```\n",
        "//",
        "/*",
        "\ud83d",
        "\ude42",
    ),
)
FOLDERS = ("file:///soak/app", "file:///soak/lib", "file:///soak/l%C3%A4uft%20so")
INSTRUCTIONS = ("tidy", "Add type hints.", "Übersetze die Namen 🙂", "make it\nlonger")


def a_text(chance: random.Random, language: str) -> str:
    """A file's text, mostly of a few lines, with any line ends, empty at times."""
    body = LANGUAGES[language][1] * chance.choice((0, 1, 1, 1, 2, 4))
    ending = chance.choice(("\n", "\n", "\n", "\r\n", "\r\n", "\r"))
    if chance.random() < 0.1:
        body = "".join(chance.choice(PIECES) for _ in range(chance.randrange(60)))
    return body.replace("\n", ending)


def a_piece(chance: random.Random) -> str:
    """What is put in by one edit."""
    return "".join(chance.choice(PIECES) for _ in range(chance.choice((0, 1, 1, 1, 2, 6))))


def a_place(chance: random.Random, model: EditorModel) -> Place:
    """A position: mostly on the text, also inside a character, beyond a line's end or beyond the last line."""
    line = chance.randrange(len(model.lines))
    wild = chance.random()
    if wild < 0.04:
        return len(model.lines) + chance.choice((0, 1, 1000, MOST_INT - 100_000)), chance.choice((0, 5, MOST_INT))
    length = model.length(line)
    if wild < 0.12:
        return line, length + chance.choice((1, 2, 99, MOST_INT - 100_000))
    return line, chance.choice((length, chance.randint(0, length)))


def a_span(chance: random.Random, model: EditorModel) -> tuple[Place, Place]:
    """Two positions, mostly close to each other and in their order."""
    first = a_place(chance, model)
    if chance.random() < 0.35:
        return first, first
    second = a_place(chance, model)
    if chance.random() < 0.6:
        second = (first[0], second[1])
    in_order = chance.random() < 0.95
    return (min(first, second), max(first, second)) if in_order else (max(first, second), min(first, second))
