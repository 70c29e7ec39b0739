"""The catalogue of code actions: their kinds, titles and prepared instructions, and which of them suit a selection.

Pure. Holds no positions and no tickets; what a person adds in the settings comes in as `OwnAction`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from unicodedata import category

from lsp_server.own_actions import OwnAction

REWRITE_KIND = "refactor.rewrite.lacuna"
FIX_KIND = "quickfix.lacuna"

# The command of an action, for clients that cannot resolve one.
APPLY = "lacuna.apply"

FILL, FILL_HOLES, COMMENT, FIX, OWN = "fill", "fill_holes", "comment", "fix", "own"
DOCSTRING, COMPLETE_BODY = "docstring", "complete_body"

_LONGEST_TITLE = 60
_COMMENT_MARKS = " #/*-;%<>!"
_LONGEST_PROBLEM = 500
# Unicode's control characters and surrogates.
_UNSHOWN = {"Cc", "Cs"}


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do with a text. An empty `instruction` fills it from its surroundings."""

    name: str
    title: str
    instruction: str = ""

    @property
    def kind(self) -> str:
        """The LSP code action kind."""
        return FIX_KIND if self.name == FIX else f"{REWRITE_KIND}.{self.name}"


FILL_SELECTION = Action(FILL, "Fill selection from surroundings")

PREPARED = (
    Action(
        DOCSTRING,
        "Add docstring",
        "Add a concise docstring to every function and class that has none. Change nothing else.",
    ),
    Action(
        "type_hints",
        "Add type hints",
        "Add type hints to all parameters and return values. Keep the behaviour exactly as it is.",
    ),
    Action(
        "simplify",
        "Simplify",
        "Simplify this code. Keep its behaviour and its public names exactly as they are.",
    ),
    Action(
        "error_handling",
        "Add error handling",
        "Handle the errors that this code can run into. Keep what it does with valid input exactly as it is.",
    ),
    Action(
        COMPLETE_BODY,
        "Complete body",
        "Write the missing body of every function that is empty or only a stub. Change nothing else.",
    ),
)

NAMES = frozenset({FILL, FILL_HOLES, COMMENT, FIX, OWN, *(action.name for action in PREPARED)})
KINDS = (
    FIX_KIND,
    *(f"{REWRITE_KIND}.{name}" for name in (FILL, FILL_HOLES, COMMENT, OWN)),
    *(action.kind for action in PREPARED),
)

# Text and data have neither functions nor behaviour.
_NO_CODE = frozenset(
    {
        *("plaintext", "markdown", "restructuredtext", "latex", "git-commit"),
        *("json", "jsonc", "yaml", "toml", "ini", "xml", "html", "css", "scss", "less"),
    }
)
# Languages whose types are written by hand and may be left out.
_TYPED_AT_WILL = frozenset({"python", "php", "typescript", "typescriptreact"})
_LONE_WORD = re.compile(r"\s*\w+\s*")


def prepared_for(language: str, selected: str, *, is_unfinished: bool) -> list[Action]:
    """The prepared actions that make sense for a selection in this language: none for blanks or prose.

    `is_unfinished` says that a body is to be written there (see `stubs`). There is nothing to a lone name but that.
    """
    if not selected.strip() or language in _NO_CODE:
        return []
    unfit = {"type_hints"} if language not in _TYPED_AT_WILL else set()
    if _LONE_WORD.fullmatch(selected):
        unfit |= {action.name for action in PREPARED} - {COMPLETE_BODY}
    if not is_unfinished:
        unfit.add(COMPLETE_BODY)
    return [action for action in PREPARED if action.name not in unfit]


def own_for(language: str, own: Sequence[OwnAction]) -> list[Action]:
    """The actions of a person's settings for this language."""
    return [
        Action(OWN, _one_line(action.title), action.instruction)
        for action in own
        if not action.languages or language in action.languages
    ]


def fix_for(message: str, code: str) -> Action:
    """The quick fix of a diagnostic that says `message` about the text `code`."""
    problem = _shortened(_one_line(message), _LONGEST_PROBLEM)
    place = _one_line(code)
    where = f" at `{place}`" if 0 < len(place) <= _LONGEST_TITLE and "`" not in place else ""
    return Action(FIX, f"Fix: {_shortened(problem, _LONGEST_TITLE)}", f"Fix this problem{where}: {problem}")


def following(instruction: str) -> Action:
    """The action of an instruction that a person wrote into the text as a comment."""
    return Action(COMMENT, f"Rewrite: {_shortened(_one_line(instruction), _LONGEST_TITLE)}", instruction)


def writing(comment: str) -> Action:
    """The action of an instruction comment with no code to be about: it asks for new text in its place."""
    return Action(COMMENT, f"Write: {_shortened(_one_line(comment).strip(_COMMENT_MARKS), _LONGEST_TITLE)}")


def fill_holes(count: int) -> Action:
    """The action that fills `count` holes."""
    return Action(FILL_HOLES, "Fill 1 hole" if count == 1 else f"Fill {count} holes")


def is_wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether a client that asked for `only` these kinds wants `kind`; kinds are dotted hierarchies."""
    return only is None or any(kind == wanted or kind.startswith(f"{wanted}.") for wanted in only if wanted)


def _one_line(text: str) -> str:
    """`text` as a title can show it: without line ends, control characters and halves of surrogate pairs."""
    return " ".join("".join(" " if category(char) in _UNSHOWN else char for char in text).split())


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
