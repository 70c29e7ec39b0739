"""What both engines are asked: places in Python's own library, chosen by rule and never by a result.

Pure but for reading the library's sources, which come with every Python (PSF licence); nothing of them is kept here.
"""

from __future__ import annotations

import ast
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.protocol.messages import Fill, Rewrite
from lsp_server.context import window

SCENARIOS = ("cold", "typing", "rewrite", "decode")
COLD_MODULES = (
    *("argparse", "ast", "base64", "calendar", "cmd", "configparser", "csv", "dis", "fractions", "ftplib"),
    *("gettext", "gzip", "inspect", "ipaddress", "mailbox", "optparse", "pprint", "shlex", "smtplib", "tokenize"),
)
TYPED_MODULES = (
    *("dataclasses", "difflib", "fileinput", "getpass", "netrc"),
    *("plistlib", "selectors", "tarfile", "textwrap", "uuid"),
)
COLD_TOKENS, TYPED_TOKENS, REWRITE_TOKENS, DECODED_TOKENS = 24, 16, 1024, 200
KEYSTROKES = 40
# About 500 tokens of Python together.
COLD_PREFIX_CHARS, COLD_SUFFIX_CHARS = 1800, 600
# The server's own settings, unless somebody changes them.
PREFIX_CHARS, SUFFIX_CHARS = 4096, 1024
SHORTEST_REWRITE, LONGEST_REWRITE = 20, 60


@dataclass(frozen=True, slots=True)
class Case:
    """One unit of a scenario; its requests are made one after another."""

    scenario: str
    name: str
    requests: tuple[Fill | Rewrite, ...]

    @property
    def key(self) -> str:
        return f"{self.scenario}/{self.name}"


@dataclass(frozen=True, slots=True)
class Hole:
    """A text without the second half of one function: `[start, start)` is where that half was, `gone` what it was."""

    text: str
    start: int
    gone: str


def cases(scenario: str) -> list[Case]:
    """Every case of a scenario, in order. Raises LookupError where this Python's library lacks one."""
    makers = {"cold": _cold, "typing": _typing, "rewrite": _rewrites, "decode": _decoding}
    return list(makers[scenario]())


def _cold() -> Iterator[Case]:
    for module in COLD_MODULES:
        hole = hole_in(library_text(module))
        seen = window(hole.text, hole.start, hole.start, prefix_chars=COLD_PREFIX_CHARS, suffix_chars=COLD_SUFFIX_CHARS)
        yield Case("cold", module, (Fill(module, "python", seen.prefix, seen.suffix, max_tokens=COLD_TOKENS),))


def _typing() -> Iterator[Case]:
    for module in TYPED_MODULES:
        hole = hole_in(library_text(module))
        yield Case("typing", module, tuple(_keystrokes(module, hole)))


def _keystrokes(module: str, hole: Hole) -> Iterator[Fill]:
    """What the server asks after each key while the first characters of what is gone are typed again."""
    for count in range(1, KEYSTROKES + 1):
        text = hole.text[: hole.start] + hole.gone[:count] + hole.text[hole.start :]
        cursor = hole.start + count
        seen = window(text, cursor, cursor, prefix_chars=PREFIX_CHARS, suffix_chars=SUFFIX_CHARS)
        yield Fill(f"{module}-{count}", "python", seen.prefix, seen.suffix, max_tokens=TYPED_TOKENS)


def _rewrites() -> Iterator[Case]:
    rows = tomllib.loads(Path(__file__).with_name("rewrites.toml").read_text(encoding="utf-8"))["rewrite"]
    for row in rows:
        request = _rewrite(row["module"], row["function"], row["instruction"], REWRITE_TOKENS)
        yield Case("rewrite", request.id, (request,))


def _decoding() -> Iterator[Case]:
    """Long functions told back unchanged: the text is sure to reach the limit, and nothing else differs."""
    for module, function in (
        ("heapq", "nlargest"),
        ("copy", "deepcopy"),
        ("textwrap", "dedent"),
        ("fractions", "Fraction.limit_denominator"),
        ("sched", "scheduler.run"),
    ):
        request = _rewrite(module, function, "Change nothing.", DECODED_TOKENS)
        yield Case("decode", request.id, (request,))


def _rewrite(module: str, function: str, instruction: str, most_tokens: int) -> Rewrite:
    before, selection, after = function_in(library_text(module), function)
    if not SHORTEST_REWRITE <= selection.count("\n") + 1 <= LONGEST_REWRITE:
        raise LookupError(f"{module}.{function} has {selection.count(chr(10)) + 1} lines in this Python's library")
    name = f"{module}.{function}"
    return Rewrite(name, "python", before, selection, after, instruction, max_tokens=most_tokens)


def library_text(module: str) -> str:
    """The source of a module of the standard library."""
    return Path(os.__file__).with_name(f"{module}.py").read_text(encoding="utf-8")


def hole_in(text: str) -> Hole:
    """The first function far enough into `text` whose second half is long enough to be typed."""
    offsets = line_offsets(text)
    for node in _functions(ast.parse(text)):
        middle = node.body[len(node.body) // 2]
        assert node.end_lineno is not None
        start = offsets[middle.lineno - 1] + middle.col_offset
        end = offsets[node.end_lineno] - 1
        if len(node.body) > 1 and start >= COLD_PREFIX_CHARS and end - start >= 3 * KEYSTROKES:
            return Hole(text[:start] + text[end:], start, text[start:end])
    raise LookupError("no function of this text has a second half long enough")


def function_in(text: str, name: str) -> tuple[str, str, str]:
    """What stands before a function, its whole lines, and what stands behind. `name` may be `Class.method`."""
    *owners, last = name.split(".")
    scope: ast.AST = ast.parse(text)
    for owner in owners:
        scope = _child(scope, owner)
    node = _child(scope, last)
    assert isinstance(node, ast.FunctionDef)
    assert node.end_lineno is not None
    offsets = line_offsets(text)
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    start, end = offsets[first - 1], offsets[node.end_lineno] - 1
    return text[:start], text[start:end], text[end:]


def line_offsets(text: str) -> list[int]:
    """Where each line begins; one more entry behind the last line, as if a line end closed it."""
    offsets = [0]
    for line in text.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    return offsets


def _child(scope: ast.AST, name: str) -> ast.AST:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            return node
    raise LookupError(f"this Python's library has no {name} where the bench looks for it")


def _functions(tree: ast.AST) -> list[ast.FunctionDef]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return sorted(found, key=lambda node: node.lineno)
