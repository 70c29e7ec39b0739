"""What a user can choose: raw options → frozen `Settings` and a list of `Problem`s.

Owns names, defaults, limits and the text that documents them, all in one table. Pure: reads no file and no
environment. An unknown key or a wrong value is reported with its path and never fatal: the default is kept.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from lsp_server.own_actions import OwnAction, is_one_line, parse_own_actions

# Every entry of a list is looked for in a whole document or in every path.
LONGEST_ITEM = 500
# What stands for folders that make no sense: no document lies in it.
NO_FOLDER = ("",)
# More levels than the path of any setting has.
_DEEPEST = 8

Value: TypeAlias = bool | int | str | tuple[str, ...] | tuple[OwnAction, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One option that could not be used. `path` is dotted, as in the settings table."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Rule:
    """Where a setting stands in the options, what it may be, and what it is for.

    `by_folder`: it may differ between workspace folders. `needs_trust`: a workspace nobody trusts may not choose it.
    `by_project`: a project's own files may choose it once the project is trusted. `is_text`: any text of one line.
    `are_folders`: a list of folders of which no entry opens everything, so that a wrong value must open nothing.
    """

    path: str
    doc: str
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()
    are_actions: bool = False
    most_items: int = 256
    by_folder: bool = True
    needs_trust: bool = False
    by_project: bool = True
    is_text: bool = False
    are_folders: bool = False

    @property
    def meaning(self) -> str:
        """`doc`, with the limits of a number behind it."""
        return f"{self.doc} {self.least} to {self.most}." if self.most else self.doc


def _setting(default: Any, path: str, doc: str, **limits: Any) -> Any:
    """A field of `Settings` carrying its `Rule`; typed Any as `dataclasses.field` is."""
    return field(default=default, metadata={"rule": Rule(path, doc, **limits)})


def _where(default: Any, path: str, doc: str, **limits: Any) -> Any:
    """A setting that says to where documents go: nobody but the person may choose it, and for all folders alike."""
    return _setting(default, path, doc, by_folder=False, needs_trust=True, by_project=False, **limits)


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, resolved. Durations are milliseconds, sizes are characters or tokens as named."""

    enable: bool = _setting(True, "enable", "Offer anything at all.")
    disabled_languages: tuple[str, ...] = _setting(
        (), "disabledLanguages", "Language ids in which nothing is suggested while typing."
    )
    disabled_files: tuple[str, ...] = _setting(
        (), "disabledFiles", "Glob patterns (`*.txt`) of files in which nothing is suggested while typing."
    )
    inline: bool = _setting(True, "inlineCompletion.enable", "Offer ghost text.")
    inline_max_tokens: int = _setting(
        96, "inlineCompletion.maxTokens", "Longest ghost text, in tokens.", least=1, most=4096
    )
    inline_deadline_ms: int = _setting(
        6000,
        "inlineCompletion.deadlineMs",
        "After this time the best text so far is shown; 0 waits for the end.",
        most=600_000,
    )
    inline_debounce_ms: int = _setting(
        75,
        "inlineCompletion.debounceMs",
        "While keys come faster than this, only the last of them asks the engine; grows, up to 600, while the engine "
        "cannot keep up. 0 asks with every key.",
        most=10_000,
    )
    inline_alternatives: int = _setting(
        4,
        "inlineCompletion.alternatives",
        "How many different texts to offer who asks for ghost text.",
        least=1,
        most=8,
    )
    inline_alternatives_ms: int = _setting(
        1200,
        "inlineCompletion.alternativesMs",
        "So long after the first text its alternatives are waited for; those that come later are there for who asks "
        "again.",
        most=600_000,
    )
    in_comments: bool = _setting(True, "inlineCompletion.inComments", "Suggest inside comments and strings.")
    menu: bool = _setting(True, "completion.enable", "Offer one entry in the completion menu.")
    menu_max_tokens: int = _setting(32, "completion.maxTokens", "Longest menu entry, in tokens.", least=1, most=4096)
    menu_deadline_ms: int = _setting(
        1500, "completion.deadlineMs", "After this time the menu goes without the entry.", least=1, most=600_000
    )
    rewrite_max_tokens: int = _setting(
        512, "rewrite.maxTokens", "Longest rewritten selection, in tokens.", least=1, most=16_384
    )
    rewrite_deadline_ms: int = _setting(
        120_000, "rewrite.deadlineMs", "A rewrite that takes longer changes nothing; 0 waits.", most=3_600_000
    )
    rewrite_confirm: bool = _setting(
        True, "rewrite.confirm", "Where the editor can, have each change of a rewrite confirmed before it is applied."
    )
    hole_markers: tuple[str, ...] = _setting(
        ("<fill>", "...", "pass  # fill"),
        "holes.markers",
        "What a hole to be filled looks like. `...`, and a marker with a blank in it, must be alone in a body.",
        most_items=32,
    )
    own_actions: tuple[OwnAction, ...] = _setting(
        (),
        "actions",
        "Code actions of your own: a list of `{title, instruction, languages}`; without `languages` for all of them.",
        are_actions=True,
        needs_trust=True,
    )
    prefix_chars: int = _setting(
        4096, "context.prefixChars", "How much text before the cursor the engine sees.", most=1_000_000
    )
    suffix_chars: int = _setting(
        1024, "context.suffixChars", "How much text after the cursor the engine sees.", most=1_000_000
    )
    neighbour_tokens: int = _setting(
        160,
        "context.neighbourTokens",
        "How much of what is before the cursor, in tokens, may be imports and signatures from above and parts of other "
        "open files; 0 for none.",
        most=256,
    )
    secret_files: tuple[str, ...] = _setting(
        (), "privacy.secretFiles", "More glob patterns of files that must never reach the engine.", needs_trust=True
    )
    open_files: tuple[str, ...] = _setting(
        (),
        "privacy.openFiles",
        "Glob patterns of files that are open although they look like secrets or git ignores them.",
        needs_trust=True,
    )
    git_ignored: bool = _setting(
        False,
        "privacy.gitIgnored",
        "Suggest in files that git ignores, too. They never come into the context of another file.",
        needs_trust=True,
    )
    drafts: bool = _setting(False, "drafts", "Send `lacuna/draft` while a text is denoised (for plug-ins).")
    engine_url: str = _where(
        "",
        "engine.url",
        "Ask the engine at this address (`https://engine.example.org`, `http://127.0.0.1:8080/v1`) instead of one on "
        "this machine. The documents you work on are sent there.",
        is_text=True,
    )
    engine_api: str = _where(
        "auto",
        "engine.api",
        "What is spoken at `engine.url`: Lacuna's own protocol (`lacuna engine serve`), OpenAI's (vLLM, llama.cpp, "
        "Ollama), or whichever answers.",
        choices=("auto", "lacuna", "openai"),
    )
    engine_model: str = _where(
        "",
        "engine.model",
        "The model to ask for at `engine.url`; without a name the first that is offered.",
        is_text=True,
    )
    engine_token_file: str = _where(
        "",
        "engine.tokenFile",
        "A file that holds the token (API key) for `engine.url`, readable by you alone.",
        is_text=True,
    )
    engine_allow_folders: tuple[str, ...] = _where(
        (),
        "engine.allowFolders",
        "Folders whose documents may be sent to `engine.url`; no others are then. Without any, all documents may.",
        are_folders=True,
    )
    engine_timeout_ms: int = _where(
        30_000,
        "engine.timeoutMs",
        "Give up on `engine.url` when nothing comes from there for this long.",
        least=100,
        most=3_600_000,
    )
    position_encoding: str = _setting(
        "auto",
        "positionEncoding",
        "Count columns as agreed with the editor, or in UTF-16 units whatever it prefers.",
        choices=("auto", "utf-16"),
        by_folder=False,
    )


def rules() -> Iterator[tuple[str, Value, Rule]]:
    """(attribute, default, rule) of every setting, in the order of the table."""
    standard = Settings()
    for entry in dataclasses.fields(Settings):
        yield entry.name, getattr(standard, entry.name), entry.metadata["rule"]


def parse(options: object) -> tuple[Settings, list[Problem]]:
    """Settings from nested JSON options (None means none). Bad entries are reported and keep their default."""
    if options is None:
        return Settings(), []
    if not isinstance(options, Mapping):
        return Settings(), [Problem("lacuna", f"must be an object, not {_kind(options)}")]
    by_path = {rule.path: (name, default, rule) for name, default, rule in rules()}
    chosen: dict[str, Value] = {}
    problems: list[Problem] = []
    for path, raw in _leaves(options, frozenset(by_path)):
        if path not in by_path:
            problems.append(Problem(path, "unknown setting"))
            continue
        name, default, rule = by_path[path]
        value, fault = _checked(raw, default, rule)
        if fault and rule.are_folders:
            chosen[name] = NO_FOLDER
            problems.append(Problem(path, f"{fault}; no document is sent until that is mended"))
        elif fault:
            problems.append(Problem(path, f"{fault}; using {_shown(default)}"))
        else:
            chosen[name] = value
    return dataclasses.replace(Settings(), **chosen), problems  # type: ignore[arg-type]


def with_shared(own: Settings, shared: Settings) -> Settings:
    """A folder's settings, with those that cannot differ between folders as they are for all."""
    return dataclasses.replace(own, **{name: getattr(shared, name) for name, _, rule in rules() if not rule.by_folder})


def merge(below: object, above: object, depth: int = _DEEPEST) -> object:
    """`above` laid over `below`, key by key; anything that is not an object replaces what is below it.

    So does what lies deeper than `depth`: no setting does, and options may be nested as deep as JSON can be read.
    """
    if not depth or not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return below if above is None else above
    merged = dict(below)
    for key, value in above.items():
        merged[key] = merge(merged[key], value, depth - 1) if key in merged else value
    return merged


def markdown_table() -> str:
    """The settings as a Markdown table, as README shows it."""
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    lines += [f"| `{rule.path}` | `{_shown(default)}` | {rule.meaning} |" for _, default, rule in rules()]
    return "\n".join(lines) + "\n"


def _leaves(node: Mapping[Any, Any], known: frozenset[str], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        path = f"{above}{key}"
        inside = any(name.startswith(f"{path}.") for name in known)
        if inside and isinstance(value, Mapping):
            yield from _leaves(value, known, f"{path}.")
        elif inside and value is None:
            continue
        else:
            yield path, value


def _checked(raw: object, default: Value, rule: Rule) -> tuple[Value, str]:
    """(value, "") or (default, what is wrong). null stands for "not set" and gives the default."""
    if raw is None:
        return default, ""
    if isinstance(default, bool):
        return (raw, "") if isinstance(raw, bool) else (default, f"must be true or false, not {_kind(raw)}")
    if isinstance(default, int):
        return _checked_number(raw, default, rule)
    if isinstance(default, str):
        return _checked_text(raw, default) if rule.is_text else _checked_choice(raw, default, rule)
    if rule.are_actions:
        own_actions, fault = parse_own_actions(raw)
        return own_actions, fault
    return _checked_list(raw, default, rule)


def _checked_choice(raw: object, default: str, rule: Rule) -> tuple[str, str]:
    if isinstance(raw, str) and raw in rule.choices:
        return raw, ""
    return default, "must be one of " + ", ".join(rule.choices)


def _checked_text(raw: object, default: str) -> tuple[str, str]:
    """One line at most; blanks around it are never meant."""
    if not isinstance(raw, str):
        return default, f"must be a string, not {_kind(raw)}"
    if len(raw) > LONGEST_ITEM:
        return default, f"is longer than {LONGEST_ITEM} characters"
    text = raw.strip()
    return (text, "") if not text or is_one_line(text) else (default, "must be one line")


def _checked_list(raw: object, default: Value, rule: Rule) -> tuple[Value, str]:
    if not isinstance(raw, list | tuple) or not all(isinstance(item, str) for item in raw):
        return default, "must be a list of strings"
    if len(raw) > rule.most_items:
        return default, f"may have {rule.most_items} entries, not {len(raw)}"
    for number, item in enumerate(raw, start=1):
        if len(item) > LONGEST_ITEM:
            return default, f"entry {number} is longer than {LONGEST_ITEM} characters"
        if not is_one_line(item):
            return default, f"entry {number} must be one line with text in it"
        if rule.are_folders and not _is_whole_path(item):
            return default, f"entry {number} must be a whole path, or begin with ~/"
    return tuple(raw), ""


def _is_whole_path(item: str) -> bool:
    """Whether a folder can be found without knowing where the server was started. Looks up nothing."""
    path = Path(item)
    return path.is_absolute() or path.parts[:1] == ("~",)


def _checked_number(raw: object, default: int, rule: Rule) -> tuple[int, str]:
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        return default, f"must be a whole number, not {_kind(raw)}"
    # Lua has one kind of number, so Neovim may send 300.0 for 300. An int may be larger than any float.
    if isinstance(raw, float) and not raw.is_integer():
        return default, "must be a whole number"
    if not rule.least <= raw <= rule.most:
        return default, f"must lie between {rule.least} and {rule.most}"
    return int(raw), ""


def _kind(raw: object) -> str:
    names = {bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list"}
    return names.get(type(raw), "an object" if isinstance(raw, Mapping) else type(raw).__name__)


def _shown(default: Value) -> str:
    if isinstance(default, bool):
        return "true" if default else "false"
    if default == "":
        return '""'
    return json.dumps(default) if isinstance(default, tuple) else str(default)
