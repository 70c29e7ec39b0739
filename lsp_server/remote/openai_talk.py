"""A server that speaks OpenAI's API, being asked: requests out, a stream of events in, drafts and a result from it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from engine.protocol.errors import EngineError
from engine.protocol.lines import cut_at_lines
from engine.protocol.messages import Done, Draft, Facts, Fill, Filled, Rewrite, Stats, StatusReport, Stop
from lsp_server.remote.chat_prompts import rewrite_question
from lsp_server.remote.completion import Asking, Gap, Piece, Sampling, Wordings, piece_of
from lsp_server.remote.dialect import News, TryAgain
from lsp_server.remote.http_errors import is_passing, refusal_body, refused, retry_after_s, stream_failure
from lsp_server.remote.sse import EventDecoder, EventTooLargeError

if TYPE_CHECKING:
    import httpx

# No text anybody waits for is longer; a server that never ends its answer is cut off here.
LONGEST_TEXT = 1 << 20
_END = "[DONE]"
_OPEN_HOLE = "..."


@dataclass(slots=True)
class _Answer:
    """What has come of one text. Times are milliseconds since the request began."""

    began: float
    raw: str = ""
    text: str = ""
    stop: Stop = "end"
    pieces: int = 0
    first_ms: float = 0.0
    counts: Piece = Piece()  # noqa: RUF009 (frozen)

    @property
    def tokens(self) -> int:
        """As the server counts them, else the events that held text."""
        return self.counts.tokens or self.pieces


class OpenAITalk:
    """See `Talk`."""

    def __init__(self, client: httpx.AsyncClient, root: str, host: str, wordings: Wordings, facts: Facts) -> None:
        self._client = client
        self._root = root
        self._host = host
        self._wordings = wordings
        self.facts = facts

    async def report(self) -> StatusReport | None:
        """See `Talk.report`: the API has none."""
        return None

    async def ask(self, request: Fill | Rewrite, on_news: Callable[[News], None]) -> Done:
        """See `Talk.ask`. One text is made, however many alternatives are wanted."""
        began = perf_counter()
        if isinstance(request, Fill):
            return await self._fill(request, on_news, began)
        question = rewrite_question(request)
        asking = self._wordings.chat(question, Sampling(request.max_tokens, request.seed))
        answer = await self._answer(asking, _Hearing(request, on_news, 0, 0), began)
        return Done(request.id, answer.text, _stats(began, "chat", [answer]))

    async def _fill(self, request: Fill, on_news: Callable[[News], None], began: float) -> Done:
        """Hole by hole, each seeing what the holes in front of it became."""
        if request.constraints is not None:
            raise EngineError(
                "bad_request",
                f"{self._host} cannot promise what the text must obey",
                "leave the constraints out, or use Lacuna's own engine",
            )
        answers: list[_Answer] = []
        prefix = request.prefix
        islands = [hole.island for hole in request.further]
        # A hole to come is no empty text: joined over it, what is on its two sides would read as if it were whole.
        shown = [hole.island + (hole.draft or _OPEN_HOLE) for hole in request.further]
        lines = [request.max_lines, *(hole.max_lines for hole in request.further)]
        for number, max_lines in enumerate(lines):
            suffix = "".join(shown[number:]) + request.suffix
            gap = Gap(prefix, suffix, request.language, max_lines)
            asking = self._wordings.fill(gap, Sampling(request.max_tokens))
            answers.append(await self._answer(asking, _Hearing(request, on_news, max_lines, number), began))
            prefix += answers[-1].text + (islands[number] if number < len(islands) else "")
        further = tuple(Filled(answer.text, answer.stop) for answer in answers[1:])
        return Done(request.id, answers[0].text, _stats(began, self._wordings.fill_by, answers), further=further)

    async def _answer(self, asking: Asking, hearing: _Hearing, began: float) -> _Answer:
        """The text of one asking. At the deadline what has come so far, with `stop` saying so."""
        answer = _Answer(began)
        deadline_ms = hearing.request.deadline_ms
        left_s = deadline_ms / 1000 - (perf_counter() - began) if deadline_ms else None
        try:
            async with asyncio.timeout(left_s):
                await self._listen(asking, answer, hearing)
        except TimeoutError:
            answer.stop = "deadline"
        if answer.stop != "lines":
            answer.text = asking.finished(answer.raw)
            if (cut := cut_at_lines(answer.text, hearing.max_lines)) is not None:
                answer.text, answer.stop = cut, "lines"
        return answer

    async def _listen(self, asking: Asking, answer: _Answer, hearing: _Hearing) -> None:
        async with aclosing(self._pieces(asking)) as pieces:
            async for piece in pieces:
                if piece.prompt_tokens or piece.tokens:
                    answer.counts = piece
                if piece.finish:
                    answer.stop = "budget" if piece.finish == "length" else "end"
                if not piece.text:
                    continue
                answer.raw += piece.text
                answer.pieces += 1
                answer.first_ms = answer.first_ms or _ms_since(answer.began)
                if len(answer.raw) > LONGEST_TEXT:
                    answer.stop = "budget"
                    return
                answer.text = asking.text_of(answer.raw)
                cut = cut_at_lines(answer.text, hearing.max_lines)
                hearing.tell(answer.text if cut is None else cut, answer.pieces)
                if cut is not None:
                    # The rest is not wanted: leaving closes the stream, and the server stops.
                    answer.text, answer.stop = cut, "lines"
                    return

    async def _pieces(self, asking: Asking) -> AsyncGenerator[Piece, None]:
        """The pieces of an answer as they come. Closing this closes the connection's stream."""
        decoder, has_ended = EventDecoder(), False
        url = f"{self._root}{asking.path}"
        async with self._client.stream("POST", url, json=asking.body) as response:
            if response.status_code != 200:
                raise await self._refusal(response)
            async for chunk in response.aiter_bytes():
                try:
                    events = decoder.feed(chunk)
                except EventTooLargeError:
                    raise self._nonsense() from None
                for event in events:
                    if event.strip() == _END:
                        return
                    piece = self._piece(event)
                    has_ended = has_ended or bool(piece.finish)
                    yield piece
        if not has_ended:
            # Half an answer must not pass for a whole one.
            fault = EngineError("unreachable", f"{self._host} stopped in the middle of its answer", "ask again")
            raise TryAgain(fault)

    def _piece(self, event: str) -> Piece:
        try:
            said = json.loads(event)
        except (ValueError, RecursionError):
            raise self._nonsense() from None
        if not isinstance(said, dict):
            raise self._nonsense()
        if said.get("error"):
            raise stream_failure(said["error"], self._host)
        return piece_of(said)

    async def _refusal(self, response: httpx.Response) -> EngineError:
        body = await refusal_body(response)
        fault = refused(response.status_code, self._host, model=self._wordings.model, body=body)
        if is_passing(response.status_code) and fault.kind in ("overloaded", "unreachable"):
            return TryAgain(fault, retry_after_s(response.headers))
        return fault

    def _nonsense(self) -> EngineError:
        return EngineError(
            "bad_reply", f"{self._host} sent what makes no sense", "look at `engine.url` and `engine.api`"
        )


@dataclass(frozen=True, slots=True)
class _Hearing:
    """Who hears of one hole while it is made."""

    request: Fill | Rewrite
    on_news: Callable[[News], None]
    max_lines: int
    hole: int

    def tell(self, text: str, step: int) -> None:
        """What has come is final: such servers do not take back what they have sent."""
        if self.request.wants_drafts:
            steps = max(step, self.request.max_tokens)
            self.on_news(Draft(self.request.id, text, len(text), step, steps, self.hole))


def _stats(began: float, way: str, answers: list[_Answer]) -> Stats:
    first = answers[0]
    return Stats(
        route="causal",
        reason=f"remote: {way}",
        stop=first.stop,
        passes=sum(answer.pieces for answer in answers),
        tokens=sum(answer.tokens for answer in answers),
        prompt_tokens=sum(answer.counts.prompt_tokens for answer in answers),
        cached_tokens=sum(answer.counts.cached_tokens for answer in answers),
        ms_encode=0.0,
        ms_first_draft=first.first_ms,
        ms_total=_ms_since(began),
    )


def _ms_since(began: float) -> float:
    return (perf_counter() - began) * 1000
