"""Nothing that runs code from a file or the network: weights are data."""

from __future__ import annotations

import ast

import pytest

from tests.rules.sources import imported_names, sources

MODULES = (
    "pickle",
    "pickletools",
    "_pickle",
    "cPickle",
    "cloudpickle",
    "dill",
    "joblib",
    "marshal",
    "shelve",
    "copyreg",
)
CALLS = {
    *("eval", "exec", "compile", "__import__", "torch.load", "torch.hub.load", "torch.jit.load", "torch.save"),
    *("np.load", "numpy.load", "yaml.load", "runpy.run_path", "runpy.run_module"),
}
# What unpickles, whatever the library it is called in.
ENDINGS = {"read_pickle", "to_pickle", "load_state_dict_from_url"}
# Keywords that let a library unpickle or run what it reads.
TRUSTING = {"trust_remote_code": False, "allow_pickle": False, "weights_only": True, "shell": False}


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
        if isinstance(node, ast.Call) and is_called(ast.unparse(node.func))
    ]
    assert found == []


def is_called(name: str) -> bool:
    """Whether what is called so is forbidden."""
    return name in CALLS or name.rpartition(".")[2] in ENDINGS


def test_remote_code_is_never_trusted() -> None:
    found = [
        f"{source.path}:{node.value.lineno} {node.arg}"
        for source in sources("lsp_server", "engine", "tests")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.keyword)
        and node.arg in TRUSTING
        and not (isinstance(node.value, ast.Constant) and node.value.value is TRUSTING[node.arg])
    ]
    assert found == []


def test_archives_are_read_member_by_member() -> None:
    """`extractall` and its kind write wherever an archive says; nothing here lets one say."""
    writing = {"extractall", "unpack_archive", "extract"}
    found = [
        f"{source.path}:{node.lineno} calls {ast.unparse(node.func)}"
        for source in sources("lsp_server", "engine")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in writing
    ]
    assert found == []


def test_the_rules_see_what_they_forbid() -> None:
    assert all(map(is_called, ("torch.load", "eval", "pandas.read_pickle")))
    assert not any(map(is_called, ("json.load", "model.load", "re.compile", "model.eval", "evaluate")))


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
