"""The questions an editor asks in a long run, right and wrong ones, and which answers each may have.

A question is sent as it is made; `Asker.settle` waits for answers and judges them. What came of them (suggestions,
entries, actions) is what later operations accept, resolve and apply.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.fakes import soak_replies as replies
from tests.fakes.editor_model import EditorModel
from tests.fakes.lsp_client import LspClient, ResponseFault
from tests.fakes.lsp_messages import area, place
from tests.fakes.soak_documents import About, Desk, OpenText
from tests.fakes.soak_texts import INSTRUCTIONS, a_place, a_span

CANCELLED, CONTENT_MODIFIED = -32800, -32801
# An edit ends when its text changes, and when a newer one of the same document is asked for.
MAY_END = frozenset({CANCELLED, CONTENT_MODIFIED})
INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32600, -32601, -32602

# What may become of an action's ticket on its way.
DAMAGE: tuple[dict[str, Any], ...] = ({"end": 10**9}, {"start": -1}, {"version": None}, {"action": "made up"}, {"x": 1})

Judge = Callable[[Any, About], Iterator[str]]


@dataclass
class Asked:
    """One question on its way. `codes` are the errors it may end with; with `must_fail` it has to."""

    kind: str
    message: dict[str, Any]
    about: About | None
    judge: Judge | None = None
    codes: frozenset[int] = frozenset()
    must_fail: bool = False
    may_be_cancelled: bool = False
    sent_at: float = 0.0
    result: Any = None


class Asker:
    """Everything asked so far: `faults` found, `latencies` in seconds and `counts` of outcomes by kind of question."""

    def __init__(self, client: LspClient, desk: Desk, chance: random.Random, patience_s: float) -> None:
        self.client = client
        self.faults: list[str] = []
        self.latencies: dict[str, list[float]] = defaultdict(list)
        self.counts: Counter[str] = Counter()
        self.items: deque[tuple[Asked, dict[str, Any]]] = deque(maxlen=12)
        self.entries: deque[dict[str, Any]] = deque(maxlen=12)
        self.actions: deque[tuple[Asked, dict[str, Any]]] = deque(maxlen=24)
        self.edits: deque[tuple[OpenText, dict[str, Any]]] = deque(maxlen=12)
        self._answered: list[Asked] = []
        self._running: dict[int | str, tuple[Asked, asyncio.Task[None]]] = {}
        self._desk = desk
        self._chance = chance
        self._patience_s = patience_s
        self._named = 0

    # The way of a question

    def ask(self, asked: Asked) -> None:
        """Send it, and judge what comes."""
        asked.sent_at = time.perf_counter()
        self.client.send(asked.message)
        self._running[asked.message["id"]] = (asked, asyncio.create_task(self._follow(asked)))

    def call(self, method: str, params: Any) -> dict[str, Any]:
        """A request; one in eight has a string for its id."""
        if self._chance.random() < 0.125:
            self._named += 1
            return self.client.call(method, params, f"q-{self._named}")
        return self.client.call(method, params)

    async def _follow(self, asked: Asked) -> None:
        try:
            asked.result = await self.client.answer(asked.message, self._patience_s)
        except ResponseFault as fault:
            self.counts[f"{asked.kind} {fault.code}"] += 1
            may_be = asked.codes | ({CANCELLED} if asked.may_be_cancelled else set())
            if fault.code not in may_be:
                self._blame(asked, f"answered with {fault}")
        except TimeoutError:
            self._blame(asked, "not answered")
        else:
            self.counts[f"{asked.kind} {'nothing' if _is_empty(asked.result) else 'ok'}"] += 1
            self._judge(asked)
        self.latencies[asked.kind].append(time.perf_counter() - asked.sent_at)
        del self._running[asked.message["id"]]

    def _judge(self, asked: Asked) -> None:
        if asked.must_fail:
            self._blame(asked, f"not refused but answered with {asked.result!r:.80}")
        try:
            for fault in asked.judge(asked.result, asked.about) if asked.judge and asked.about else ():
                self._blame(asked, fault)
        except (KeyError, TypeError, ValueError) as error:
            self._blame(asked, f"the answer has another shape ({error!r}): {asked.result!r:.200}")
        self._answered.append(asked)

    def _blame(self, asked: Asked, fault: str) -> None:
        self.faults.append(f"{asked.kind} {asked.message['id']}: {fault}")

    @property
    def count(self) -> int:
        """Questions without an answer yet."""
        return len(self._running)

    def expect_the_end(self) -> None:
        """Whatever is on its way may be answered as cancelled from here on."""
        for asked, _ in self._running.values():
            asked.may_be_cancelled = True

    async def settle(self, most: int = 0) -> None:
        """Wait until at most `most` questions are open, then take in what came, in the order asked."""
        while len(self._running) > most:
            await asyncio.wait([task for _, task in self._running.values()], return_when=asyncio.FIRST_COMPLETED)
        done, self._answered = sorted(self._answered, key=lambda asked: asked.sent_at), []
        for asked in done:
            self._take_in(asked)

    def _take_in(self, asked: Asked) -> None:
        if asked.about is None or _is_empty(asked.result):
            return
        document, result = asked.about.document, asked.result
        if asked.kind == "inline":
            self.items.extend((asked, item) for item in result["items"])
        elif asked.kind == "menu":
            self.entries.extend(result["items"])
        elif asked.kind == "actions":
            self.actions.extend((asked, action) for action in result if "data" in action)
        elif asked.kind in ("resolve action", "rewrite"):
            edit = result if asked.kind == "rewrite" else result.get("edit")
            self.edits.extend([(document, edit)] if edit else [])

    # Completions

    def inline(self) -> None:
        """Ghost text somewhere, by itself or by a key, now and then beside a menu."""
        document, chance = self._desk.any(), self._chance
        if document is None:
            return
        where = a_place(chance, document.model)
        self.inline_at(document, where, invoked=chance.random() < 0.25, beside_menu=chance.random() < 0.15)

    def inline_at(self, document: OpenText, where: tuple[int, int], *, invoked: bool, beside_menu: bool) -> None:
        """Ghost text at one place."""
        where = document.model.position_at(document.model.offset_at(*where)) if self._chance.random() < 0.5 else where
        context: dict[str, Any] = {"triggerKind": 1 if invoked else 2}
        chosen = None
        if beside_menu:
            line, end = document.model.position_at(document.model.offset_at(*where))
            span = area((line, self._chance.randint(0, end)), (line, end))
            chosen = context["selectedCompletionInfo"] = {
                "range": span,
                "text": self._chance.choice(("value", "x", "")),
            }
        pulled = document.model.position_at(document.model.offset_at(*where))
        about = About(document, document.version, pulled, chosen)
        params = place(document.uri, *where) | {"context": context}
        message = self.call("textDocument/inlineCompletion", params)
        self.ask(Asked("inline", message, about, replies.inline_faults))

    def menu(self) -> None:
        """The menu somewhere."""
        if (document := self._desk.any()) is None:
            return
        where = a_place(self._chance, document.model)
        pulled = document.model.position_at(document.model.offset_at(*where))
        message = self.call("textDocument/completion", place(document.uri, *where))
        self.ask(Asked("menu", message, About(document, document.version, pulled), replies.menu_faults))

    def resolve_entry(self) -> None:
        """The documentation of an entry that came before, of whatever version."""
        if self.entries:
            message = self.call("completionItem/resolve", self._chance.choice(self.entries))
            self.ask(Asked("resolve entry", message, None))

    # Edits

    def code_actions(self) -> None:
        """What can be done with a selection, or by itself."""
        if (document := self._desk.any()) is None:
            return
        span = area(*a_span(self._chance, document.model))
        fault = {"range": area(*a_span(self._chance, document.model)), "message": "x is not defined", "severity": 1}
        context: dict[str, Any] = {"diagnostics": [fault] * self._chance.choice((0, 0, 1, 12))}
        if self._chance.random() < 0.3:
            context["only"] = [self._chance.choice(("quickfix", "refactor", "refactor.rewrite", "source", "made.up"))]
        if self._chance.random() < 0.5:
            context["triggerKind"] = self._chance.choice((1, 2))
        params = {"textDocument": {"uri": document.uri}, "range": span, "context": context}
        about = About(document, document.version)
        self.ask(Asked("actions", self.call("textDocument/codeAction", params), about, replies.actions_faults))

    def resolve_action(self) -> None:
        """The edit of an action that came before; one whose document has not moved since, if there is any."""
        if not self.actions:
            return
        fresh = [each for each in self.actions if self._desk.is_current(each[0].about)]
        asked, action = self._chance.choice(fresh or list(self.actions))
        codes = MAY_END
        if self._chance.random() < 0.4:
            argument = {"title": action["title"], "ticket": action["data"]}
            params = {"command": "lacuna.apply", "arguments": [argument]}
            self.ask(Asked("apply", self.call("workspace/executeCommand", params), None, codes=codes))
            return
        if self._chance.random() < 0.1:
            damage = self._chance.choice(
                ({"end": 10**9}, {"start": -1}, {"version": None}, {"action": "made up"}, {"x": 1})
            )
            action = action | {"data": action["data"] | damage}
        message = self.call("codeAction/resolve", action)
        self.ask(Asked("resolve action", message, asked.about, replies.resolved_faults, codes))

    def rewrite(self) -> None:
        """The command, sometimes for a version that is none, on nothing, or on a range that ends before it begins."""
        if (document := self._desk.any()) is None:
            return
        start, end = a_span(self._chance, document.model)
        instruction = self._chance.choice(INSTRUCTIONS)
        argument: dict[str, Any] = {"uri": document.uri, "range": area(start, end), "instruction": instruction}
        if self._chance.random() < 0.3:
            argument["version"] = document.version + self._chance.choice((0, 0, -1, 7))
        is_nothing = end < start or document.model.offset_at(*start) == document.model.offset_at(*end)
        codes = MAY_END | {INVALID_PARAMS} if is_nothing else MAY_END
        params = self._with_token({"command": "lacuna.rewrite", "arguments": [argument]})
        about = About(document, document.version)
        message = self.call("workspace/executeCommand", params)
        self.ask(Asked("rewrite", message, about, replies.edit_faults, codes, must_fail=is_nothing))

    def fill_holes(self) -> None:
        """One place, or two apart from each other."""
        if (document := self._desk.any()) is None:
            return
        model, length = document.model, len(document.model.text)
        spots = [model.position_at(self._chance.randint(0, length)) for _ in range(4)]
        first, second, third, last = sorted(spots)
        spans = [area(first, second), area(third, last)]
        if self._chance.random() < 0.6 or len({first, second, third, last}) < 4:
            spans = [area(first, last)]
        head: dict[str, Any] = {"uri": document.uri}
        params = self._with_token({"textDocument": head, "ranges": spans})
        message = self.call("lacuna/fillHoles", params)
        about = About(document, document.version)
        self.ask(Asked("fill holes", message, about, replies.holes_faults, MAY_END))

    def _with_token(self, params: dict[str, Any]) -> dict[str, Any]:
        """With a token for progress, in half of all cases; one that nobody used before."""
        self._named += 1
        token = self._chance.choice((None, None, f"progress {self._named}", 1_000_000 + self._named))
        return params if token is None else params | {"workDoneToken": token}

    # What should not be asked

    def about_a_closed_one(self) -> None:
        """Nothing is known of a document that is not open."""
        uri = self._chance.choice(self._desk.closed)
        if uri in self._desk.open:
            return
        context: dict[str, Any] = {"context": {"triggerKind": 2}}
        params = place(uri, 0, 0) | context
        self.ask(Asked("closed", self.call("textDocument/inlineCompletion", params), _nowhere(), _nothing))

    def malformed(self) -> None:
        """Params that make no sense are refused as such."""
        wrong: Any = self._chance.choice((None, [1], "x", {}, {"textDocument": {"uri": 5}}, place("file:///a", 0, -1)))
        methods = ("inlineCompletion", "completion", "codeAction")
        message = self.call(f"textDocument/{self._chance.choice(methods)}", wrong)
        self._refused("malformed", message, INVALID_PARAMS)

    def unknown(self) -> None:
        """What nobody ever heard of."""
        if self._chance.random() < 0.5:
            self._refused("unknown", self.call("made/up", {"jsonrpc": "2.0"}), METHOD_NOT_FOUND)
            return
        self.client.notify(self._chance.choice(("made/up", "$/up", "workspace/didCreateFiles")), {"a": [None]})
        params = {
            "command": self._chance.choice(("lacuna.rewrite", "lacuna.apply", "made.up")),
            "arguments": [{"x": 1}],
        }
        self._refused("unknown", self.call("workspace/executeCommand", params), INVALID_PARAMS)

    def _refused(self, kind: str, message: dict[str, Any], code: int) -> None:
        self.ask(Asked(kind, message, None, codes=frozenset({code}), must_fail=True))

    def status(self) -> None:
        """How the server is."""
        params = {"command": "lacuna.status", "arguments": [{"jsonrpc": "2.0", "id": 1, "method": "x"}]}
        self.ask(Asked("status", self.call("workspace/executeCommand", params), None))

    # Cancelling

    def cancel(self) -> None:
        """A question that runs, one that is answered, or one that never was."""
        running = [asked for asked, _ in self._running.values() if not asked.must_fail]
        if running and self._chance.random() < 0.8:
            asked = self._chance.choice(running)
            asked.may_be_cancelled = True
            self.client.cancel(asked.message)
        else:
            self.client.notify("$/cancelRequest", {"id": self._chance.choice((1, 5, 10**9, "q-1", "never", None))})

    def cancel_progress(self, tokens: list[Any]) -> None:
        """The button of a progress bar, of whatever edit it is."""
        for asked, _ in self._running.values():
            asked.may_be_cancelled |= asked.kind in ("rewrite", "fill holes", "resolve action", "apply")
        token = self._chance.choice([*tokens, "never", 7])
        self.client.notify("window/workDoneProgress/cancel", {"token": token})


def _is_empty(result: Any) -> bool:
    return result is None or result == [] or (isinstance(result, dict) and result.get("items") == [])


def _nowhere() -> About:
    return About(OpenText("", "", 0, EditorModel("", "utf-16")), 0)


def _nothing(result: Any, _about: About) -> Iterator[str]:
    if result is not None:
        yield f"something about a document that is not open: {result!r:.80}"
