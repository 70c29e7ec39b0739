"""Nothing that runs code from a file or the network: weights are data."""

from __future__ import annotations

import ast

import pytest

from tests.rules.sources import imported_names, sources

MODULES = ("pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve")
CALLS = {"torch.load", "eval", "exec", "torch.hub.load", "np.load", "numpy.load"}


def test_nothing_unpickles() -> None:
    found = [
        f"{source.path}:{line} imports {name}"
        for source in sources("lsp_server", "engine", "tests")
        for name, line in imported_names(source.tree)
        if name.split(".")[0] in MODULES
    ]
    assert found == []


def test_nothing_loads_or_evaluates_code() -> None:
    found = [
        f"{source.path}:{node.lineno} calls {ast.unparse(node.func)}"
        for source in sources("lsp_server", "engine")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in CALLS
    ]
    assert found == []


def test_remote_code_is_never_trusted() -> None:
    found = [
        f"{source.path}:{node.value.lineno}"
        for source in sources("lsp_server", "engine", "tests")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.keyword)
        and node.arg == "trust_remote_code"
        and not (isinstance(node.value, ast.Constant) and node.value.value is False)
    ]
    assert found == []


@pytest.mark.parametrize("name", ["pickle", "torch.load", "trust_remote_code=True"])
def test_the_words_do_not_hide_in_text_either(name: str) -> None:
    """Not in code built from strings: only these rules name them."""
    found = [
        source.path
        for source in sources("lsp_server", "engine")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and name in node.value
        and not is_docstring_of(node, source.tree)
    ]
    assert found == []


def is_docstring_of(constant: ast.Constant, tree: ast.AST) -> bool:
    """Whether a string is a bare statement: prose, not data."""
    return any(isinstance(node, ast.Expr) and node.value is constant for node in ast.walk(tree))
