"""An editor that does anything an editor may do, in any order: every operation follows from a seed.

It is told nothing of how the server works. It holds its own texts (`EditorModel`), judges every answer by the version
it was asked for, and notes in `faults` whatever is not as the protocol or this server's promises have it. Operations go
out in bursts, without waiting for answers; between bursts it waits for some or for all of them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes import soak_replies as replies
from tests.fakes.lsp_actions import CONFIRMING
from tests.fakes.lsp_client import LspClient, ResponseFault
from tests.fakes.soak_documents import About, Desk, OpenText
from tests.fakes.soak_replies import place_of
from tests.fakes.soak_requests import Asker
from tests.fakes.soak_settings import QUICK, STEADY, Choices

ENCODINGS = ("utf-16", "utf-16", "utf-8", "utf-32")
ERROR_LEVEL = 1


def capabilities_for(chance: random.Random, encoding: str) -> dict[str, Any]:
    """What the editor says it can do: everything, or everything but what it is free to lack."""
    document = CONFIRMING["textDocument"]
    item = document["completion"]["completionItem"] | {"insertReplaceSupport": chance.random() < 0.5}
    completion: dict[str, Any] = {"completionItem": item}
    if chance.random() < 0.3:
        completion["completionList"] = {"itemDefaults": ["editRange", "insertTextFormat", "insertTextMode", "data"]}
    return CONFIRMING | {
        "general": {"positionEncodings": [encoding]},
        "textDocument": document | {"completion": completion},
        "workspace": CONFIRMING["workspace"]
        | {"configuration": chance.random() < 0.7, "workspaceFolders": True, "applyEdit": True},
        "experimental": {"lacuna": {"drafts": chance.random() < 0.3}},
    }


@dataclass(frozen=True)
class Pace:
    """How many questions may stay open after a burst, one choice at a time, and how often an edit is waited for."""

    open_after_burst: tuple[int, ...]
    patient_share: float


# A real engine takes a second for an answer, and most of what an editor does goes on meanwhile.
EAGER, BUSY = Pace((0, 0, 5, 40), 0.2), Pace((3, 10, 40, 40), 0.1)


class RandomEditor:
    """The operations and how often each comes; `done` counts them."""

    def __init__(self, client: LspClient, seed: int, patience_s: float, *, scripted: bool) -> None:
        self.chance = random.Random(seed)
        self.encoding = self.chance.choice(ENCODINGS)
        self.capabilities = capabilities_for(self.chance, self.encoding)
        self.client = client
        self.desk = Desk(client, self.chance, self.encoding)
        self.asker = Asker(client, self.desk, self.chance, patience_s)
        self.choices = Choices(client, self.chance, QUICK if scripted else STEADY)
        self.faults: list[str] = self.asker.faults
        self.done: Counter[str] = Counter()
        self.shown: Counter[str] = Counter()
        self._scripted = scripted
        self._pace = EAGER if scripted else BUSY
        # What was reported on each token of progress last.
        self._progress: dict[Any, str] = {}
        client.answers = {
            "workspace/configuration": self.choices.give,
            "workspace/applyEdit": self._asked_to_apply,
            "window/workDoneProgress/create": self._asked_for_progress,
            "client/registerCapability": lambda _params: None,
        }
        self._weights = self._operations()

    def _operations(self) -> dict[str, tuple[int, Callable[[], None]]]:
        asker, desk = self.asker, self.desk
        return {
            "edit": (30, desk.edit_any),
            "open": (6, desk.open_one),
            "close": (3, desk.close_one),
            "save": (1, desk.save),
            "rename": (1, desk.rename_one),
            "unreadable change": (1, desk.break_one),
            "notebook": (4, desk.change_book),
            "inline": (18, asker.inline),
            "type through": (5, self.type_through),
            "accept": (3, self.accept),
            "menu": (7, asker.menu),
            "resolve entry": (3, asker.resolve_entry),
            "actions": (7, asker.code_actions),
            "resolve action": (6, asker.resolve_action),
            "rewrite": (4, asker.rewrite),
            "fill holes": (3, asker.fill_holes),
            "apply": (3, self.apply_one),
            "cancel": (6, asker.cancel),
            "cancel progress": (1, lambda: asker.cancel_progress(list(self._progress)[-5:])),
            "configuration": (2, self.choices.push),
            "calm configuration": (2, self.choices.calm),
            "folders": (1, self.choices.change_folders),
            "closed document": (2, asker.about_a_closed_one),
            "malformed": (2, asker.malformed),
            "unknown": (2, asker.unknown),
            "status": (1, asker.status),
            "engine state": (1 if self._scripted else 0, self.move_engine),
        }

    async def operate(self, count: int) -> None:
        """Do `count` operations, in bursts."""
        names = list(self._weights)
        weights = [weight for weight, _ in self._weights.values()]
        while count > 0:
            for name in self.chance.choices(names, weights, k=min(count, self.chance.choice((1, 1, 3, 8, 20)))):
                self._weights[name][1]()
                self.done[name] += 1
                count -= 1
            await self.asker.settle(self.chance.choice(self._pace.open_after_burst))
            if self.chance.random() < self._pace.patient_share:
                count -= await self._edit_patiently()
            self.hear()

    def rush(self, count: int) -> None:
        """Operations without a look at any answer, of questions that the end of the session may cancel."""
        for _ in range(count):
            for ask in (self.asker.inline, self.asker.menu, self.asker.rewrite, self.desk.edit_any):
                ask()
        self.asker.expect_the_end()

    async def _edit_patiently(self) -> int:
        """Ask for an edit, wait for it, and apply it, as a person does who types nothing meanwhile."""
        ways = (("actions", "resolve action"), ("rewrite",), ("fill holes",))
        steps = (*self.chance.choice(ways), "apply")
        for name in steps:
            self._weights[name][1]()
            self.done[name] += 1
            await self.asker.settle()
        return len(steps)

    # What a person does with what was offered

    def _ghost(self) -> tuple[OpenText, tuple[int, int], dict[str, Any]] | None:
        """A suggestion that is still shown: its document has not moved since."""
        while self.asker.items:
            asked, item = self.asker.items.pop()
            if asked.about is not None and self.desk.is_current(asked.about):
                return asked.about.document, asked.about.place, item
        return None

    def type_through(self) -> None:
        """The first letters of a suggestion, one taken back at times, and the next question."""
        if (shown := self._ghost()) is None:
            return
        document, place, item = shown
        if place_of(item["range"]["start"]) != place:
            return
        letters = item["insertText"][: self.chance.randint(1, 4)]
        offset = document.model.offset_at(*place)
        self.desk.type_letters(document, place, letters)
        end = document.model.position_at(offset + len(letters))
        if self.chance.random() < 0.3:
            before = document.model.position_at(offset + len(letters) - 1)
            self.desk.edit(document, [(before, end, "")])
            end = before
        self.asker.inline_at(document, end, invoked=False, beside_menu=False)

    def accept(self) -> None:
        """Put a suggestion in, and tell that it was."""
        if (shown := self._ghost()) is None:
            return
        document, _, item = shown
        span = item["range"]
        self.desk.edit(document, [(place_of(span["start"]), place_of(span["end"]), item["insertText"])])
        command = {"command": item["command"]["command"], "arguments": item["command"]["arguments"]}
        self.client.send(self.client.call("workspace/executeCommand", command))

    def apply_one(self) -> None:
        """An edit that was resolved, if its document has not moved since."""
        while self.asker.edits:
            document, edit = self.asker.edits.pop()
            if self._apply(document, edit):
                return

    def _apply(self, document: OpenText | None, edit: dict[str, Any]) -> bool:
        (change,) = edit["documentChanges"]
        if document is None or self.desk.open.get(document.uri) is not document:
            return False
        if change["textDocument"]["version"] != document.version:
            return False
        parts = sorted(change["edits"], key=lambda part: place_of(part["range"]["start"]), reverse=True)
        spans = [(place_of(part["range"]["start"]), place_of(part["range"]["end"]), part["newText"]) for part in parts]
        if spans:
            self.desk.edit(document, spans)
        return True

    def move_engine(self) -> None:
        """The engine fails or leaves, and comes back at once or after a while."""
        for state in self.chance.choice((("failed", "ready"), ("off",), ("loading", "ready"), ("starting", "ready"))):
            self.client.notify("test/state", {"state": state, "message": f"it is {state}"})

    # What the server asks and tells

    def _asked_to_apply(self, params: Any) -> Any:
        uri = params["edit"]["documentChanges"][0]["textDocument"]["uri"]
        wild = self.chance.random()
        if wild < 0.1:
            return ResponseFault(-32603, "the editor is busy")
        if wild < 0.3:
            return {"applied": False, "failureReason": "the person said no"}
        document = self.desk.open.get(uri)
        if document is not None:
            about = About(document, min(document.shape))
            self.faults.extend(f"apply: {fault}" for fault in replies.edit_faults(params["edit"], about))
        return {"applied": self._apply(document, params["edit"])}

    def _asked_for_progress(self, _params: Any) -> Any:
        return ResponseFault(-32603, "no room") if self.chance.random() < 0.2 else None

    def hear(self) -> None:
        """Claim and judge what the server said of its own accord."""
        for method in {message["method"] for message in self.client.unclaimed}:
            for params in self.client.claim_all(method):
                self._hear(method, params)

    def _hear(self, method: str, params: Any) -> None:
        if method == "$/progress":
            self._hear_progress(params["token"], params["value"]["kind"])
        elif method == "lacuna/draft":
            self.faults += replies.draft_faults(params, self.desk.ever_open(params["uri"]))
        elif method in ("window/showMessage", "window/logMessage"):
            self.shown[params["message"][:70]] += 1
            if params["type"] <= ERROR_LEVEL:
                self.faults.append(f"an error is shown: {params['message']}")
        else:
            self.faults.append(f"nobody asked for {method}")

    def _hear_progress(self, token: Any, kind: str) -> None:
        before, self._progress[token] = self._progress.pop(token, ""), kind
        if kind not in {"": ("begin",), "end": ()}.get(before, ("report", "end")):
            self.faults.append(f"progress of {token}: {kind!r} after {before!r}")

    @property
    def unended(self) -> list[Any]:
        """Tokens whose progress was begun and never ended."""
        return [token for token, kind in self._progress.items() if kind != "end"]
