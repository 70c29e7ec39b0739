"""What the text rules know of a programming language: comments, strings, blocks, indentation, grammar.

Owns the table by LSP language id. Holds facts only; the rules that use them live elsewhere. An unknown language
gets facts cautious enough for prose.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Quote:
    """A string delimiter. `hole` opens code inside the string and is closed by `}`; empty when there is none."""

    open: str
    close: str
    multiline: bool = False
    escapes: bool = True
    hole: str = ""


@dataclass(frozen=True, slots=True)
class Language:
    """Facts about one language.

    atoms: regular expressions of tokens whose quotes or brackets mean nothing (a Rust lifetime, `/[/]/`).
    off_side: indentation is syntax. ends: blocks close with the word `end`. grammar: a tree-sitter grammar's name.
    """

    line_comments: tuple[str, ...] = ()
    block_comments: tuple[tuple[str, str], ...] = ()
    quotes: tuple[Quote, ...] = ()
    atoms: tuple[str, ...] = ()
    off_side: bool = False
    ends: bool = False
    indent: str = "    "
    grammar: str = ""


_DOUBLE, _SINGLE = Quote('"', '"'), Quote("'", "'")
_LONG_DOUBLE = Quote('"""', '"""', multiline=True)
_LONG_SINGLE = Quote("'''", "'''", multiline=True)
_C_COMMENTS = (("/*", "*/"),)
_HASH_AT_WORD_START = r"(?<=[^\s;(])#"
_REGEX_LITERAL = r"(?<=[=(,:!&|?;{}\[])[ \t]*/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/"

_UNKNOWN = Language(quotes=(_DOUBLE,))
_PROSE = Language()
_C = Language(("//",), _C_COMMENTS, (_DOUBLE, _SINGLE))
_JAVASCRIPT = Language(
    ("//",),
    _C_COMMENTS,
    (_DOUBLE, _SINGLE, Quote("`", "`", multiline=True, hole="${")),
    atoms=(_REGEX_LITERAL,),
    indent="  ",
    grammar="javascript",
)
_PYTHON = Language(("#",), (), (_LONG_DOUBLE, _LONG_SINGLE, _DOUBLE, _SINGLE), off_side=True, grammar="python")
_MARKUP = Language(block_comments=(("<!--", "-->"),), indent="  ")
_HASH = Language(("#",), (), (_DOUBLE, _SINGLE), atoms=(_HASH_AT_WORD_START,))
_TRIPLE = replace(_C, quotes=(_LONG_DOUBLE, _DOUBLE, _SINGLE))
_REM_IN_WORD = r"(?<=[\w.])(?:REM|Rem|rem) "
_BATCH = Language(
    ("::", *(f"{sign}{word} " for word in ("REM", "Rem", "rem") for sign in ("", "@"))),
    (),
    (Quote('"', '"', escapes=False),),
    atoms=(_REM_IN_WORD,),
)
_FORTRAN = Language(("!",), (), (Quote('"', '"', escapes=False), Quote("'", "'", escapes=False)), indent="  ")
_PASCAL = Language(("//",), (("{", "}"), ("(*", "*)")), (Quote("'", "'", escapes=False),), indent="  ")
_TEMPLATE = Language((), (("{#", "#}"), ("<!--", "-->")), indent="  ")
_STYLE = Language((), _C_COMMENTS, (_DOUBLE, _SINGLE), indent="  ")


def language_of(language_id: str) -> Language:
    """The facts for an LSP language id; cautious ones for an id this table does not know."""
    return _LANGUAGES.get(language_id, _UNKNOWN)


_RULES: dict[str, Language] = {
    "c": _C,
    "cpp": _C,
    "csharp": _C,
    "java": _TRIPLE,
    "objective-c": _C,
    "kotlin": replace(_TRIPLE, quotes=(Quote('"""', '"""', True, False), _DOUBLE, _SINGLE)),
    "scala": _TRIPLE,
    "swift": replace(_TRIPLE, quotes=(_LONG_DOUBLE, _DOUBLE)),
    "dart": replace(_TRIPLE, quotes=(_LONG_DOUBLE, _LONG_SINGLE, _DOUBLE, _SINGLE), indent="  "),
    "php": replace(_C, line_comments=("//", "#")),
    "zig": replace(_C, block_comments=()),
    "go": replace(_C, quotes=(_DOUBLE, _SINGLE, Quote("`", "`", True, False)), indent="\t"),
    "rust": Language(
        ("//",),
        _C_COMMENTS,
        (Quote('"', '"', multiline=True),),
        atoms=(r"'(?:\\[^\n]{1,8}?|[^'\\\n])'",),
    ),
    "javascript": _JAVASCRIPT,
    "javascriptreact": _JAVASCRIPT,
    "typescript": replace(_JAVASCRIPT, grammar="typescript"),
    "typescriptreact": replace(_JAVASCRIPT, grammar="tsx"),
    "json": Language(quotes=(_DOUBLE,), indent="  "),
    "jsonc": Language(("//",), _C_COMMENTS, (_DOUBLE,), indent="  "),
    "python": _PYTHON,
    "ruby": Language(
        ("#",),
        (("=begin", "=end"),),
        (Quote('"', '"', multiline=True, hole="#{"), Quote("'", "'", multiline=True)),
        ends=True,
        indent="  ",
    ),
    "lua": Language(
        ("--",), (("--[[", "]]"),), (Quote("[[", "]]", True, False), _DOUBLE, _SINGLE), ends=True, indent="  "
    ),
    "elixir": Language(("#",), (), (_LONG_DOUBLE, Quote('"', '"', True, hole="#{"), _SINGLE), ends=True, indent="  "),
    "julia": Language(("#",), (("#=", "=#"),), (_LONG_DOUBLE, _DOUBLE), ends=True),
    "shellscript": replace(_HASH, quotes=(Quote('"', '"', True), Quote("'", "'", True, False)), indent="  "),
    "perl": replace(_HASH, atoms=(r"\$#",)),
    "r": Language(("#",), (), (_DOUBLE, _SINGLE), indent="  "),
    "powershell": Language(("#",), (("<#", "#>"),), (_DOUBLE, _SINGLE)),
    "yaml": replace(_HASH, atoms=(_HASH_AT_WORD_START, r"(?<=[\w])'"), off_side=True, indent="  "),
    "toml": Language(("#",), (), (_LONG_DOUBLE, _LONG_SINGLE, _DOUBLE, Quote("'", "'", False, False))),
    "ini": Language(("#", ";")),
    "makefile": replace(_HASH, indent="\t"),
    "dockerfile": _HASH,
    "cmake": Language(("#",), (), (Quote('"', '"', True),), indent="  "),
    "sql": Language(("--",), _C_COMMENTS, (Quote("'", "'", True, False), _DOUBLE)),
    "haskell": Language(("--",), (("{-", "-}"),), (_DOUBLE,), off_side=True, indent="  "),
    "elm": Language(("--",), (("{-", "-}"),), (_DOUBLE,), off_side=True),
    "ocaml": Language((), (("(*", "*)"),), (Quote('"', '"', True),), indent="  "),
    "fsharp": Language(("//",), (("(*", "*)"),), (_LONG_DOUBLE, _DOUBLE), off_side=True),
    "clojure": Language((";",), (), (Quote('"', '"', True),), indent="  "),
    "erlang": Language(("%",), (), (_DOUBLE,)),
    "css": _STYLE,
    "scss": replace(_STYLE, line_comments=("//",)),
    "less": replace(_STYLE, line_comments=("//",)),
    "html": _MARKUP,
    "xml": _MARKUP,
    "vue": _MARKUP,
    "svelte": _MARKUP,
    "markdown": _PROSE,
    "plaintext": _PROSE,
    **dict.fromkeys(("bat", "batch", "dosbatch"), _BATCH),
    **dict.fromkeys(("fortran", "fortran-modern", "fortran90", "FortranFreeForm"), _FORTRAN),
    **dict.fromkeys(("pascal", "objectpascal", "delphi"), _PASCAL),
    "cobol": Language(("*>",), (), (Quote('"', '"', escapes=False), Quote("'", "'", escapes=False))),
    **dict.fromkeys(("jinja", "jinja2", "jinja-html", "django-html", "nunjucks", "twig"), _TEMPLATE),
    "latex": Language(("%",), atoms=(r"\\%",), indent="  "),
    "restructuredtext": _PROSE,
    "git-commit": _PROSE,
}

# Where a language id and its grammar differ in name, and which of the others have one.
_GRAMMAR_OF = {
    "c": "c",
    "cpp": "cpp",
    "csharp": "csharp",
    "css": "css",
    "go": "go",
    "html": "html",
    "java": "java",
    "json": "json",
    "jsonc": "json",
    "lua": "lua",
    "markdown": "markdown",
    "php": "php",
    "ruby": "ruby",
    "rust": "rust",
    "shellscript": "bash",
    "toml": "toml",
    "yaml": "yaml",
}

_LANGUAGES = {name: replace(facts, grammar=_GRAMMAR_OF.get(name, facts.grammar)) for name, facts in _RULES.items()}
