"""Tree-sitter grammars: which wheel holds each, and what its nodes are called.

Owns the table by grammar name and the parsers, each made on first use and never before. Holds facts only; the rules
that use them live in `syntax` and `outline`. A grammar whose wheel is not installed is as good as none.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

Kinds = frozenset[str]


@dataclass(frozen=True, slots=True)
class Grammar:
    """Where a grammar lives and the kinds of its nodes.

    holes: code inside a string. prose: text in which quotes and comment signs mean nothing. definitions: what has a
    name that other code may use. scopes: what surrounds a place and is not a definition (a CSS rule, a JSON pair).
    """

    module: str
    entry: str = "language"
    comments: Kinds = frozenset({"comment"})
    strings: Kinds = frozenset()
    holes: Kinds = frozenset()
    prose: Kinds = frozenset()
    definitions: Kinds = frozenset()
    scopes: Kinds = frozenset()
    imports: Kinds = frozenset()


def grammar_of(name: str) -> Grammar | None:
    """The facts of a grammar, None where there is none of that name."""
    return _GRAMMARS.get(name)


@lru_cache(maxsize=32)
def parser_of(name: str) -> Parser | None:
    """A parser for a grammar of the table, or None where its wheel is not installed."""
    facts = grammar_of(name)
    if facts is None:
        return None
    try:
        module = importlib.import_module(facts.module)
    except ImportError:
        return None
    from tree_sitter import Language, Parser

    return Parser(Language(getattr(module, facts.entry)()))


@lru_cache(maxsize=64)
def query_of(name: str, kinds: Kinds) -> Query | None:
    """A query that captures every node of these kinds as `found`; None without a grammar or kinds."""
    parser = parser_of(name)
    if parser is None or parser.language is None or not kinds:
        return None
    from tree_sitter import Query

    return Query(parser.language, "[" + " ".join(f"({kind})" for kind in sorted(kinds)) + "] @found")


def nodes_of(name: str, root: Node, kinds: Kinds) -> list[Node]:
    """Every node below `root` of these kinds, in the order of the text."""
    query = query_of(name, kinds)
    if query is None:
        return []
    from tree_sitter import QueryCursor

    found = QueryCursor(query).captures(root).get("found", [])
    return sorted(found, key=lambda node: (node.start_byte, -node.end_byte))


def _kinds(names: str) -> Kinds:
    return frozenset(names.split())


_JAVASCRIPT = Grammar(
    "tree_sitter_javascript",
    strings=_kinds("string template_string regex"),
    holes=_kinds("template_substitution"),
    prose=_kinds("jsx_text"),
    definitions=_kinds("function_declaration generator_function_declaration method_definition class_declaration"),
    scopes=_kinds("arrow_function function_expression"),
    imports=_kinds("import_statement"),
)
_TYPED = _kinds("interface_declaration type_alias_declaration enum_declaration abstract_class_declaration")


def _typescript(entry: str) -> Grammar:
    """TypeScript's grammars are JavaScript's and more; only the TSX one knows JSX."""
    return Grammar(
        "tree_sitter_typescript",
        entry,
        strings=_JAVASCRIPT.strings,
        holes=_JAVASCRIPT.holes,
        prose=_JAVASCRIPT.prose if entry == "language_tsx" else frozenset(),
        definitions=_JAVASCRIPT.definitions | _TYPED,
        scopes=_JAVASCRIPT.scopes,
        imports=_JAVASCRIPT.imports,
    )


_GRAMMARS: dict[str, Grammar] = {
    "python": Grammar(
        "tree_sitter_python",
        strings=_kinds("string"),
        holes=_kinds("interpolation"),
        definitions=_kinds("function_definition class_definition"),
        imports=_kinds("import_statement import_from_statement future_import_statement"),
    ),
    "javascript": _JAVASCRIPT,
    "typescript": _typescript("language_typescript"),
    "tsx": _typescript("language_tsx"),
    "go": Grammar(
        "tree_sitter_go",
        strings=_kinds("interpreted_string_literal raw_string_literal rune_literal"),
        definitions=_kinds("function_declaration method_declaration type_declaration"),
        scopes=_kinds("func_literal"),
        imports=_kinds("package_clause import_declaration"),
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        comments=_kinds("line_comment block_comment"),
        strings=_kinds("string_literal raw_string_literal char_literal"),
        definitions=_kinds("function_item function_signature_item struct_item enum_item trait_item impl_item mod_item"),
        scopes=_kinds("closure_expression"),
        imports=_kinds("use_declaration"),
    ),
    "java": Grammar(
        "tree_sitter_java",
        comments=_kinds("line_comment block_comment"),
        strings=_kinds("string_literal character_literal"),
        holes=_kinds("string_interpolation"),
        definitions=_kinds(
            "class_declaration interface_declaration enum_declaration record_declaration method_declaration "
            "constructor_declaration"
        ),
        scopes=_kinds("lambda_expression"),
        imports=_kinds("package_declaration import_declaration"),
    ),
    "c": Grammar(
        "tree_sitter_c",
        strings=_kinds("string_literal char_literal system_lib_string"),
        definitions=_kinds("function_definition struct_specifier enum_specifier union_specifier type_definition"),
        imports=_kinds("preproc_include"),
    ),
    "cpp": Grammar(
        "tree_sitter_cpp",
        strings=_kinds("string_literal char_literal raw_string_literal system_lib_string"),
        definitions=_kinds(
            "function_definition class_specifier struct_specifier enum_specifier union_specifier type_definition "
            "namespace_definition"
        ),
        scopes=_kinds("lambda_expression"),
        imports=_kinds("preproc_include using_declaration"),
    ),
    "csharp": Grammar(
        "tree_sitter_c_sharp",
        strings=_kinds(
            "string_literal interpolated_string_expression verbatim_string_literal raw_string_literal character_literal"
        ),
        holes=_kinds("interpolation"),
        definitions=_kinds(
            "namespace_declaration class_declaration interface_declaration struct_declaration enum_declaration "
            "record_declaration method_declaration constructor_declaration property_declaration "
            "local_function_statement"
        ),
        scopes=_kinds("lambda_expression"),
        imports=_kinds("using_directive"),
    ),
    "ruby": Grammar(
        "tree_sitter_ruby",
        strings=_kinds("string string_array symbol_array heredoc_body regex subshell"),
        holes=_kinds("interpolation"),
        definitions=_kinds("method singleton_method class module"),
        scopes=_kinds("do_block"),
    ),
    "php": Grammar(
        "tree_sitter_php",
        "language_php",
        strings=_kinds("string encapsed_string heredoc nowdoc"),
        prose=_kinds("text"),
        definitions=_kinds(
            "function_definition method_declaration class_declaration interface_declaration trait_declaration "
            "enum_declaration"
        ),
        scopes=_kinds("anonymous_function"),
        imports=_kinds("namespace_definition namespace_use_declaration"),
    ),
    "bash": Grammar(
        "tree_sitter_bash",
        strings=_kinds("string raw_string ansi_c_string heredoc_body"),
        holes=_kinds("command_substitution expansion"),
        definitions=_kinds("function_definition"),
    ),
    "html": Grammar(
        "tree_sitter_html",
        strings=_kinds("quoted_attribute_value"),
        prose=_kinds("text"),
        scopes=_kinds("element script_element style_element"),
    ),
    "css": Grammar(
        "tree_sitter_css",
        strings=_kinds("string_value"),
        scopes=_kinds("rule_set media_statement supports_statement keyframes_statement"),
        imports=_kinds("import_statement"),
    ),
    "json": Grammar("tree_sitter_json", strings=_kinds("string"), scopes=_kinds("pair")),
    "yaml": Grammar(
        "tree_sitter_yaml",
        strings=_kinds("double_quote_scalar single_quote_scalar"),
        scopes=_kinds("block_mapping_pair"),
    ),
    "toml": Grammar("tree_sitter_toml", strings=_kinds("string"), scopes=_kinds("table table_array_element")),
    "lua": Grammar(
        "tree_sitter_lua",
        strings=_kinds("string"),
        definitions=_kinds("function_declaration"),
        scopes=_kinds("function_definition"),
    ),
    "markdown": Grammar(
        "tree_sitter_markdown",
        comments=_kinds("html_block"),
        scopes=_kinds("section"),
    ),
}
