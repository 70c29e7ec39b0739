"""Importing a module does nothing, and no module holds state: what is assigned at the top is constant."""

from __future__ import annotations

import ast
import re

from tests.rules.sources import Source, sources

CONSTANT = re.compile(r"_{0,2}[A-Z][A-Za-z0-9_]*$")
# A logger is the one object a module may hold: it is named after the module and has no state of ours.
ALLOWED = {"logger", "log", "__all__", "__version__"}
EMPTY = ("[]", "{}", "set()", "dict()", "list()", "defaultdict(list)", "deque()")
CHANGING = frozenset(
    ("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update")
)


def targets(node: ast.stmt) -> list[str]:
    """The names a statement at the top of a module assigns; anything else than a name is given as it stands."""
    if isinstance(node, ast.Assign):
        parts = [part for target in node.targets for part in getattr(target, "elts", [target])]
        return [ast.unparse(part) for part in parts]
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        return [ast.unparse(node.target)]
    return []


def is_decorator(node: ast.stmt, tree: ast.Module) -> bool:
    """Whether what is assigned decorates functions further down: then it is a function, made by a call."""
    decorators = {
        ast.unparse(decorator)
        for other in ast.walk(tree)
        if isinstance(other, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for decorator in other.decorator_list
    }
    return set(targets(node)) <= decorators


def faults(source: Source) -> list[str]:
    """What stands at the top of a module and should not."""
    found = []
    for node in source.tree.body:
        where = f"{source.path}:{node.lineno}"
        names = [name for name in targets(node) if name not in ALLOWED]
        if not all(CONSTANT.match(name) for name in names) and not is_decorator(node, source.tree):
            found.append(f"{where} {', '.join(names)} is not named as a constant")
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and ast.unparse(node.value) in EMPTY:
            found.append(f"{where} {', '.join(names)} is empty: it can only be there to be filled")
        if not isinstance(node, ALLOWED_STATEMENTS) and not is_main_guard(node) and not is_docstring(node):
            found.append(f"{where} does something on import")
    return found + [f"{source.path}:{line} changes {name}" for name, line in changes(source)]


def changes(source: Source) -> list[tuple[str, int]]:
    """(name, line) wherever a constant of the module is changed in place."""
    constants = {name for node in source.tree.body for name in targets(node)}
    found = []
    for node in ast.walk(source.tree):
        changed: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            changed = [target.value for target in node.targets if isinstance(target, ast.Subscript)]
        elif isinstance(node, ast.AugAssign):
            changed = [getattr(node.target, "value", node.target)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGING:
            changed = [node.func.value]
        found += [(item.id, item.lineno) for item in changed if isinstance(item, ast.Name) and item.id in constants]
    return found


ALLOWED_STATEMENTS = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.ClassDef,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
)


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_main_guard(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":` or `if TYPE_CHECKING:`."""
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("__name__ == '__main__'", "TYPE_CHECKING")


def test_modules_hold_no_state_and_do_nothing_on_import() -> None:
    assert [fault for source in sources("lsp_server", "engine") for fault in faults(source)] == []


def test_nothing_is_made_global_later() -> None:
    found = [
        f"{source.path}:{node.lineno}"
        for source in sources("lsp_server", "engine")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Global)
    ]
    assert found == []


def test_the_rule_sees_state_when_there_is_some() -> None:
    text = "CACHE = {}\nTABLE = {1: 2}\ncurrent = None\nprint(1)\ndef f():\n    TABLE[2] = 3\n    TABLE.clear()\n"
    found = faults(Source("x.py", text, ast.parse(text)))
    assert [fault.split(" ", 1)[0] for fault in found] == ["x.py:1", "x.py:3", "x.py:4", "x.py:6", "x.py:7"]
    fine = "from a import b\nTABLE = {1: 2}\nA, _B = 1, 2\nlogger = b()\noption = b(1)\n@option\ndef f() -> None: ...\n"
    assert faults(Source("x.py", fine, ast.parse(fine))) == []
