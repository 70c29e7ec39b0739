"""Tree-sitter grammars as the engine needs them: where a text in a language does not parse.

Owns which wheel holds the grammar of an LSP language id; a wheel is imported when it is first asked for. (What a
grammar's nodes mean is the language server's affair, which the engine does not import.) Pure but for that import.
"""

from __future__ import annotations

import importlib

from tree_sitter import Language, Parser

from engine.protocol.errors import EngineError

Span = tuple[int, int]

GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "javascriptreact": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "typescriptreact": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "lua": ("tree_sitter_lua", "language"),
    "shellscript": ("tree_sitter_bash", "language"),
    "json": ("tree_sitter_json", "language"),
    "yaml": ("tree_sitter_yaml", "language"),
    "toml": ("tree_sitter_toml", "language"),
    "css": ("tree_sitter_css", "language"),
    "html": ("tree_sitter_html", "language"),
}
"""Module and entry point of the grammar of each LSP language id; not all of the wheels need be installed."""


def parser_for(language: str) -> Parser:
    """A parser for an LSP language id. Raises EngineError(bad_request) where there is no grammar."""
    module, entry = GRAMMARS.get(language, ("", ""))
    try:
        if not module:
            raise ImportError
        return Parser(Language(getattr(importlib.import_module(module), entry)()))
    except ImportError:
        raise EngineError(
            "bad_request",
            f"there is no grammar of {language!r} here, so nobody can tell whether the text parses",
            f"leave out must-parse, or name the language: {', '.join(sorted(GRAMMARS))}",
        ) from None


def error_spans(parser: Parser, text: str) -> list[Span]:
    """Where `text` does not parse, in characters: errors in full, and the empty spans of missing tokens."""
    data = text.encode()
    spans: list[Span] = []
    waiting = [parser.parse(data).root_node]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            spans.append((_characters(data, node.start_byte), _characters(data, node.end_byte)))
        elif node.has_error:
            waiting += node.children
    return sorted(spans)


def _characters(data: bytes, end: int) -> int:
    return len(data[:end].decode(errors="ignore"))
