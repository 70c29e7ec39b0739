"""Plays the steps of a protocol case on its stage, and fails with the step that went otherwise than said."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tests.fakes import lsp_client as lsp
from tests.fakes import protocol_steps as steps
from tests.fakes.editor_page import Page
from tests.fakes.protocol_case import Case, substituted
from tests.fakes.protocol_checks import as_edit, check_answer, check_suggestions, edits_of, items_of, matches
from tests.fakes.protocol_parsing import round_of
from tests.fakes.protocol_processes import PROCESS_STEPS
from tests.fakes.protocol_requests import request_of
from tests.fakes.protocol_stage import Stage
from tests.fakes.raw_client import PATIENCE_S

HOME = "file:///w/"
# What a server is made of; how many more of a kind are taken for none.
PACKAGES = ("lsp_server.", "lsprotocol.", "pygls.")
FEW = 16


@dataclass(frozen=True)
class Asked:
    """A request on its way, and the document as it was then."""

    message: dict[str, Any]
    wanted: steps.Ask
    page: Page | None


@dataclass
class Player:
    """One editor of a stage, and what it has open."""

    stage: Stage
    client: lsp.LspClient
    pages: dict[str, Page] = field(default_factory=dict)
    kept: dict[str, Asked] = field(default_factory=dict)
    last: Any = None
    outbox: list[dict[str, Any]] | None = None
    ended: bool = False
    logs: list[steps.Log] = field(default_factory=list)
    mark: int = 0
    alive: Counter[str] = field(default_factory=Counter)

    async def play(self, step: steps.Step) -> None:
        """Take one step. Raises AssertionError, TimeoutError or ResponseFault where it goes wrong."""
        await _ACTS[type(step)](self, step)

    def uri(self, name: str) -> str:
        name = name.replace("$root", self.stage.root)
        return name if ":" in name else HOME + name

    def page(self, name: str) -> Page:
        return self.pages[self.uri(name)]

    def send(self, message: dict[str, Any]) -> None:
        if self.outbox is not None:
            self.outbox.append(message)
        else:
            self.client.send(message)

    # Documents

    async def open(self, step: steps.Open) -> None:
        uri = self.uri(step.uri)
        page = Page(step.text.replace("⇥", "\t") if step.followed else "", uri, step.version, self.stage.encoding)
        self.pages[uri] = page
        page.is_followed = step.followed
        text = page.text if step.followed else step.text * step.times
        item = {"uri": uri, "languageId": step.language, "version": step.version, "text": text}
        self.send(lsp.note("textDocument/didOpen", {"textDocument": item}))

    async def change(self, step: steps.Change) -> None:
        self.send(self.page(step.uri).replace(step.text, step.span))

    async def type(self, step: steps.Type) -> None:
        page = self.page(step.uri)
        for part in step.text if step.by_key else [step.text]:
            self.send(page.replace(part, (*page.cursor, *page.cursor)))

    async def back(self, step: steps.Back) -> None:
        self.send(self.page(step.uri).back(step.count))

    async def undo(self, step: steps.Undo) -> None:
        self.send(self.page(step.uri).undo())

    async def close(self, step: steps.Close) -> None:
        uri = self.uri(step.uri)
        self.pages.pop(uri, None)
        self.send(lsp.note("textDocument/didClose", {"textDocument": {"uri": uri}}))

    async def accept(self, step: steps.Accept) -> None:
        item, page = items_of(self.last)[step.item], self.page(step.uri)
        edit = as_edit(item)
        start, end = edit["range"]["start"], edit["range"]["end"]
        span = (start["line"], start["character"], end["line"], end["character"])
        self.send(page.replace(edit["newText"], span))
        command = item.get("command")
        if command is not None:
            params = {"command": command["command"], "arguments": command["arguments"]}
            await self.client.request("workspace/executeCommand", params)

    async def apply(self, step: steps.Apply) -> None:
        page, edits = self.page(step.uri), edits_of(self.last)
        assert edits is not None
        self.send(page.replace(page.with_edits(edits), None))

    async def text(self, step: steps.Text) -> None:
        page = self.page(step.uri)
        assert step.equals is None or page.text == step.equals, page.text
        assert step.cursor is None or page.cursor == step.cursor, page.cursor

    # Requests

    async def ask(self, step: steps.Ask) -> None:
        if step.action:
            await self._resolve(step)
            return
        for _ in range(step.times):
            asked = self._asked(step, *request_of(step, self.uri(step.uri), self.pages.get(self.uri(step.uri))))
        if not step.keep and self.outbox is None:
            await self._look(asked, step.wanted)

    async def _resolve(self, step: steps.Ask) -> None:
        """Resolve the code action of that kind; a kept one is sent and looked at later."""
        listed = steps.Ask("actions", steps.Wanted(), step.uri, step.at, step.span, step.trigger, None, step.context)
        method, params = request_of(listed, self.uri(step.uri), self.page(step.uri))
        offered = await self.client.request(method, params)
        chosen = next(item for item in offered if item["kind"].endswith(step.action))
        if step.stale:
            self.send(self.page(step.uri).replace(" ", (0, 0, 0, 0)))
        asked = self._asked(step, "codeAction/resolve", chosen)
        if not step.keep:
            await self._look(asked, step.wanted)

    def _asked(self, step: steps.Ask, method: str, params: Any) -> Asked:
        page = self.pages.get(self.uri(step.uri))
        params = substituted(params, {"root": self.stage.root})
        asked = Asked(self.client.call(method, params), step, deepcopy(page))
        if step.keep:
            self.kept[step.keep] = asked
        self.send(asked.message)
        return asked

    async def answer(self, step: steps.Answer) -> None:
        await self._look(self.kept[step.of], step.wanted)

    async def _look(self, asked: Asked, wanted: steps.Wanted) -> None:
        try:
            result = await self.client.answer(asked.message)
        except lsp.ResponseFault as fault:
            if fault.code in (wanted.codes or ()):
                return
            raise
        self.last = result
        page = asked.page if asked.page is not None and asked.page.is_followed else None
        if page is not None and asked.wanted.what == "ghost":
            check_suggestions(result, asked.wanted.at or page.cursor, page)
        # An edit is for the document as it is when it arrives, a suggestion for the one it was asked for.
        now = self.pages.get(self.uri(asked.wanted.uri)) if asked.wanted.what in ("rewrite", "resolve") else page
        check_answer(wanted, result, asked.message["params"], now)

    async def cancel(self, step: steps.Cancel) -> None:
        self.send(lsp.note("$/cancelRequest", {"id": self.kept[step.of].message["id"]}))

    async def together(self, step: steps.Together) -> None:
        self.outbox = []
        for each in step.steps:
            await self.play(each)
        messages, self.outbox = self.outbox, None
        self.client.send(*messages)

    async def repeat(self, step: steps.Repeat) -> None:
        for number in range(step.times):
            for turn in round_of(step, number):
                await self.play(turn.step)

    # The engine, the clock and what is heard

    async def engine(self, step: steps.Engine) -> None:
        seen = await (self.client.engine_asked(step.reached) if step.reached else self.client.engine())
        asked = seen["requests"]
        assert step.calls is None or len(asked) == step.calls, len(asked)
        assert step.fewest is None or len(asked) >= step.fewest, len(asked)
        assert step.most is None or len(asked) <= step.most, len(asked)
        assert step.cancelled is None or len(seen["cancelled"]) == step.cancelled, seen["cancelled"]
        assert step.started is None or seen["starts"] == step.started, seen["starts"]
        if asked and len(asked) > step.of:
            _check_request(step, asked[step.of])
        else:
            looked = (step.prefix, step.suffix, step.ends, step.starts, step.fields, step.shows, step.hides)
            assert all(value in (None, ()) for value in looked), "the engine was not asked"

    async def say(self, step: steps.Say) -> None:
        self.send(lsp.note(step.method, with_null(substituted(step.params, {"root": self.stage.root}))))

    async def release(self, step: steps.Release) -> None:
        self.client.notify("test/release")

    async def state(self, step: steps.State) -> None:
        self.client.notify("test/state", {"state": step.state, "message": step.message})

    async def hears(self, step: steps.Hears) -> None:
        heard: list[Any] = []
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await self.client.request("workspace/executeCommand", {"command": "lacuna.status"})
                heard += self.client.claim_all(step.method)
                if len(heard) >= step.times:
                    break
        assert step.at_least or len(heard) == step.times, heard
        assert all(step.part in str(message) for message in heard), heard

    async def configure(self, step: steps.Configure) -> None:
        if step.settings is not None:
            self.stage.settings = dict(step.settings)
        async with asyncio.timeout(PATIENCE_S):
            while self.stage.pulls < step.pulled:
                await self.client.engine()

    async def wait(self, step: steps.Pass) -> None:
        assert self.stage.clock is not None, "only a server in this process has a clock that can be moved"
        # What was sent before is to happen before.
        await self.client.engine()
        self.stage.clock.advance(step.seconds)

    async def left(self, step: steps.Left) -> None:
        status = await self.client.request("workspace/executeCommand", {"command": "lacuna.status"})
        assert (status["documents"], status["jobs"]) == (0, 0)
        gc.collect()
        names = (f"{type(item).__module__}.{type(item).__name__}" for item in gc.get_objects())
        alive = Counter(name for name in names if name.startswith(PACKAGES))
        # A few may stand in frames that are still alive, or in lists that forget what is oldest.
        grown = {name: count for name, count in (alive - self.alive).items() if count > FEW}
        assert not self.alive or not grown, grown
        self.alive = alive

    async def log(self, step: steps.Log) -> None:
        self.logs.append(step)

    async def finish(self) -> None:
        """End the session properly if the case did not end it, and check what holds for every session."""
        if not self.ended:
            assert await self.client.leave() == 0, self.client.log
        log = self.client.log.decode()
        for looked in self.logs:
            assert not looked.hides or looked.hides not in log
            assert looked.shows in log
            assert not looked.empty or log == ""
        if self.stage.setup.engine != "scripted":
            # A real engine's comings and goings are told in the log.
            assert all("Lacuna: " in line["message"] for line in self.client.claim_all("window/logMessage"))
        self.client.check()


def with_null(node: Any) -> Any:
    """JSON with null wherever a case says `(null)`."""
    if isinstance(node, dict):
        return {key: with_null(value) for key, value in node.items()}
    return None if node == "(null)" else node


def _check_request(step: steps.Engine, request: dict[str, Any]) -> None:
    prefix, suffix = request.get("prefix", ""), request.get("suffix", "")
    assert step.prefix is None or prefix == step.prefix, prefix
    assert step.suffix is None or suffix == step.suffix, suffix
    assert step.ends is None or prefix.endswith(step.ends), prefix
    assert step.starts is None or suffix.startswith(step.starts), suffix
    assert step.prefix_at_most is None or len(prefix) <= step.prefix_at_most, len(prefix)
    whole = str(request)
    assert all(part in prefix + suffix for part in step.shows), whole
    assert not [part for part in step.hides if part in whole], whole
    assert step.fields is None or matches(step.fields, request), whole


_ACTS: dict[type[Any], Callable[[Any, Any], Awaitable[None]]] = {
    steps.Open: Player.open,
    steps.Change: Player.change,
    steps.Type: Player.type,
    steps.Back: Player.back,
    steps.Undo: Player.undo,
    steps.Close: Player.close,
    steps.Accept: Player.accept,
    steps.Apply: Player.apply,
    steps.Text: Player.text,
    steps.Ask: Player.ask,
    steps.Answer: Player.answer,
    steps.Cancel: Player.cancel,
    steps.Together: Player.together,
    steps.Repeat: Player.repeat,
    steps.Engine: Player.engine,
    steps.Say: Player.say,
    steps.Release: Player.release,
    steps.State: Player.state,
    steps.Hears: Player.hears,
    steps.Configure: Player.configure,
    steps.Pass: Player.wait,
    steps.Left: Player.left,
    steps.Log: Player.log,
    **PROCESS_STEPS,
}


async def play(case: Case, on: Stage) -> None:
    """Play a case on its stage, and end the sessions it left."""
    players = [Player(on, client) for client in on.clients]
    for number, turn in enumerate(case.turns, start=1):
        try:
            await players[turn.editor].play(turn.step)
        except (AssertionError, TimeoutError, lsp.ResponseFault) as wrong:
            wrong.add_note(f"{case.label}, step {number}: {turn.step}")
            raise
    for player in players:
        await player.finish()
