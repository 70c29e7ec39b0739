"""Every regular expression that meets somebody's text takes time in proportion to it (`regex_growth` proves it)."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from engine.diffusion.constraints.regex_growth import growth_of
from lsp_server import holes, lexing
from lsp_server.languages import _LANGUAGES
from lsp_server.settings import Settings
from tests.rules.sources import Source, sources

# The training recipe reads a corpus at leisure, and no text of a user's.
NOT_LOOKED_AT = ("engine/training/", "engine/cli/sample/")
AT_ONE_PLACE = {"match", "fullmatch"}
ANYWHERE = {"search", "sub", "subn", "split", "findall", "finditer"}


@dataclass(frozen=True)
class Used:
    """An expression and how it is used: looked for anywhere, or matched at one place."""

    where: str
    pattern: str
    flags: int
    search: bool


def named_patterns() -> Iterator[Used]:
    """Those that a module keeps under a name."""
    for source in _sources():
        names = list(_compiled_names(source.tree))
        module = importlib.import_module(source.path.removesuffix(".py").replace("/", ".")) if names else None
        for name in names:
            found = getattr(module, name)
            if isinstance(found, re.Pattern) and isinstance(found.pattern, str):
                yield Used(f"{source.path} {name}", found.pattern, found.flags, _is_searched(name, source))


def _compiled_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(inner, ast.Call) and ast.unparse(inner.func) == "re.compile" for inner in ast.walk(node.value)
        ):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _is_searched(name: str, source: Source) -> bool:
    """Searched unless every use is a match at one place; in other files it may be used as it likes."""
    uses = {
        node.attr
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    }
    passed_on = sum(
        1 for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == name and _loaded(node)
    ) > sum(
        1
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name
    )
    return passed_on or not name.startswith("_") or not uses <= AT_ONE_PLACE


def _loaded(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def written_patterns() -> Iterator[Used]:
    """Those that stand in a call: `re.search(r"...", text)`."""
    for source in _sources():
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Call) or not ast.unparse(node.func).startswith("re."):
                continue
            method = ast.unparse(node.func).removeprefix("re.")
            first = node.args[0] if node.args else None
            if method in AT_ONE_PLACE | ANYWHERE and isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield Used(f"{source.path}:{node.lineno}", first.value, 0, method in ANYWHERE)


def _sources() -> Iterator[Source]:
    return (one for one in sources("lsp_server", "engine") if not one.path.startswith(NOT_LOOKED_AT))


def made_patterns() -> Iterator[Used]:
    """Those that are put together while the server runs: for every language, for the markers of holes."""
    for name, language in _LANGUAGES.items():
        rules = lexing._rules(language)
        for pattern in (rules.code, *rules.inside_quote.values()):
            yield Used(f"lexing of {name}", pattern.pattern, pattern.flags, search=True)
    for marker in (*Settings().hole_markers, "a b c", "x" * 500):
        # A line may also begin behind a carriage return, of which the analysis knows nothing.
        pattern = holes._pattern(marker).pattern.replace(r"(?:^|(?<=\r))", "^")
        yield Used(f"hole {marker[:20]}", pattern, re.MULTILINE, search=True)


# What is never given a user's text.
OWN_TEXTS = {"lsp_server/settings_schema.py _TABLE": "finds the table in the project's own README"}


def test_no_expression_takes_more_than_its_share() -> None:
    looked_at = [*named_patterns(), *written_patterns(), *made_patterns()]
    assert len(looked_at) > 100
    # Many languages share theirs.
    known = {(one.pattern, one.flags, one.search): one for one in looked_at}
    growths = {one.where: growth_of(*key[:2], search=key[2]) for key, one in known.items()}
    slow = {where: growth for where, growth in growths.items() if growth != "linear"}
    assert slow.keys() == OWN_TEXTS.keys(), slow


def test_expressions_are_made_in_few_places() -> None:
    """Whoever makes one at run time adds it to `made_patterns`, or escapes what it is made of."""
    made = {
        f"{source.path} {ast.unparse(node.args[0])[:30]}"
        for source in _sources()
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).startswith("re.")
        and ast.unparse(node.func).removeprefix("re.") in AT_ONE_PLACE | ANYWHERE | {"compile"}
        and not isinstance(node.args[0], ast.Constant)
    }
    assert {one.split(" ")[0] for one in made} == {
        "lsp_server/holes.py",
        "lsp_server/lexing.py",
        "lsp_server/stubs.py",
        "lsp_server/words.py",
        *(one for one in ("lsp_server/special_tokens.py",) if one in {made_in.split(" ")[0] for made_in in made}),
    }, made


@pytest.mark.parametrize(
    ("pattern", "flags", "search", "growth"),
    [
        (r"(a+)+$", 0, False, "exponential"),
        (r"(a*)*b", 0, False, "exponential"),
        (r"(?:a|ab?)*c", 0, False, "linear"),
        (r"(?:ab|a|b)*c", 0, False, "exponential"),
        (r"(?:\w+\s*)+;", 0, False, "exponential"),
        (r"\d+\s*\d+x", 0, False, "polynomial"),
        (r"a.*b.*c", 0, False, "polynomial"),
        (r"a*b", 0, False, "linear"),
        (r"a*b", 0, True, "polynomial"),
        (r"\w*$", 0, True, "polynomial"),
        (r"[ \t]*#", 0, True, "polynomial"),
        (r"^[ \t]*#", re.MULTILINE, True, "linear"),
        (r"^[ \t]*#|x", re.MULTILINE, True, "linear"),
        (r"x|[ \t]*#", re.MULTILINE, True, "polynomial"),
        (r"^\s*#", re.MULTILINE, True, "polynomial"),
        (r"\A\s*#", 0, True, "linear"),
        (r"\w{2,}", 0, True, "linear"),
        (r"(?:foo|bar)*x", 0, False, "linear"),
        (r"x(?!.*y)", 0, True, "polynomial"),
        (r"(?i)A*a*b", 0, False, "polynomial"),
    ],
)
def test_the_analysis_knows_the_textbook(pattern: str, flags: int, search: bool, growth: str) -> None:
    assert growth_of(pattern, flags, search=search) == growth


def test_a_reference_backwards_is_refused() -> None:
    with pytest.raises(NotImplementedError):
        growth_of(r"(a+)\1", search=False)
