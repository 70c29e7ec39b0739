"""Settings an editor pushes, or gives when it is asked, in a long run: some right, some wrong, some no settings at all.

Below them lie those that keep a run going: `QUICK` with a scripted engine, `STEADY` with a real one.
"""

from __future__ import annotations

import random
from typing import Any

from tests.fakes.lsp_client import LspClient, ResponseFault
from tests.fakes.soak_texts import FOLDERS

QUICK: dict[str, Any] = {
    "inlineCompletion": {"debounceMs": 5, "deadlineMs": 250},
    "completion": {"deadlineMs": 250},
    "rewrite": {"deadlineMs": 4000},
}
STEADY: dict[str, Any] = {
    "inlineCompletion": {"deadlineMs": 3000},
    "rewrite": {"deadlineMs": 10_000, "maxTokens": 96},
}
RIGHT: tuple[dict[str, Any], ...] = (
    {},
    {"inlineCompletion": {"debounceMs": 0}},
    {"inlineCompletion": {"inComments": False, "alternatives": 2}},
    {"completion": {"enable": False}},
    {"inlineCompletion": {"enable": False}},
    {"context": {"prefixChars": 100, "suffixChars": 0, "neighbourTokens": 0}},
    {"drafts": True},
    {"disabledLanguages": ["python"], "disabledFiles": ["*.txt"]},
    {"privacy": {"openFiles": [".env*"]}, "rewrite": {"confirm": False, "maxTokens": 64}},
    {"holes": {"markers": ["<fill>", "value"]}},
    {"actions": [{"title": "Mine", "instruction": "do it"}]},
    {"enable": False},
)
WRONG: tuple[Any, ...] = (
    {"nonsense": 1},
    {"inlineCompletion": {"debounceMs": "soon"}},
    {"inlineCompletion": 5},
    {"context": {"prefixChars": -1}},
    {"actions": [{"title": 1}]},
    {"holes": {"markers": "x"}},
    [1],
    "text",
)


class Choices:
    """The editor's settings: what it pushes, and what it answers when the server asks for them."""

    def __init__(self, client: LspClient, chance: random.Random, base: dict[str, Any]) -> None:
        self.base = base
        self._client = client
        self._chance = chance
        self._folders = list(FOLDERS[:1])

    def _one(self) -> Any:
        above: Any = self._chance.choice(RIGHT if self._chance.random() < 0.75 else WRONG)
        if not isinstance(above, dict):
            return above
        sections = {name: self.base.get(name, {}) | above[name] for name in above if isinstance(above[name], dict)}
        return self.base | above | sections

    def push(self) -> None:
        """Alone, inside an object of all sections, or only a hint that something changed."""
        shape, one = self._chance.random(), self._one()
        if shape < 0.2:
            one = self._chance.choice((None, {}, [1]))
        elif shape < 0.6:
            one = {"lacuna": one, "other": {"x": 1}}
        self._client.notify("workspace/didChangeConfiguration", {"settings": one})

    def calm(self) -> None:
        """Back to settings under which everything works."""
        self._client.notify("workspace/didChangeConfiguration", {"settings": {"lacuna": self.base | {"enable": True}}})

    def give(self, params: Any) -> Any:
        """The answer to `workspace/configuration`."""
        wild = self._chance.random()
        if wild < 0.1:
            return ResponseFault(-32603, "no configuration today")
        if wild < 0.2:
            return [None] * len(params["items"])
        return [self._one() for _ in params["items"]]

    def change_folders(self) -> None:
        """A folder comes or goes; the last one may go, too."""
        absent = [folder for folder in FOLDERS if folder not in self._folders]
        if absent and (not self._folders or self._chance.random() < 0.6):
            folder = self._chance.choice(absent)
            self._folders.append(folder)
            event = {"added": [{"uri": folder, "name": "new"}], "removed": []}
        else:
            folder = self._folders.pop(self._chance.randrange(len(self._folders)))
            event = {"added": [], "removed": [{"uri": folder, "name": "old"}]}
        self._client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
