"""Servers that speak OpenAI's API (vLLM, llama.cpp, Ollama and others): greeted, and asked how they fill gaps."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.protocol.errors import EngineError
from engine.protocol.messages import Facts
from lsp_server.remote.completion import FillBy, Wordings
from lsp_server.remote.dialect import Talk
from lsp_server.remote.endpoint import Endpoint
from lsp_server.remote.fim_templates import template_of
from lsp_server.remote.http_errors import is_passing, refused
from lsp_server.remote.openai_talk import OpenAITalk

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)

LARGEST_REPLY = 1 << 20
# A window nobody tells of is taken to be as large as the smallest in use.
UNKNOWN_WINDOW = 4096

# Of the names of models in one message, and from where on a name is told without the path in front of it.
NAMES_CHARS = 400
_LONG_NAME = 60

# A server that knows what a suffix is reads it: so many words cannot be fewer tokens than the prompt alone.
_PROBE_SUFFIX = "\n" + " ".join(f"word{number}" for number in range(40)) + "\n"
_PROBE_TOKENS = 40


@dataclass(frozen=True, slots=True)
class OpenAI:
    """See `Dialect`."""

    async def greet(self, client: httpx.AsyncClient, endpoint: Endpoint) -> Talk:
        """See `Dialect.greet`. Asks for the models, and then for one token of a gap to learn how gaps are filled."""
        root = root_of(endpoint.url)
        status, listed = await _json(client, "GET", f"{root}/v1/models")
        if status != 200:
            raise refused(status, endpoint.host, body=_said(listed))
        entry = _chosen(listed, endpoint)
        model, maker = str(entry["id"]), str(entry.get("owned_by") or "")
        fill_by = await _fill_by(client, root, endpoint.host, model, maker)
        wordings = Wordings(model, fill_by, template_of(model), _chat_extras(maker))
        log.info("%s serves an OpenAI API; gaps are filled by %s", endpoint.host, fill_by)
        facts = Facts(
            model=_file_name(model) or model,
            family=f"openai ({fill_by})",
            device=endpoint.host,
            precision="unknown",
            adapter="",
            window_tokens=_window(entry),
            threads=0,
            forward_ms=(),
            engine_version=maker or "unknown",
            pid=0,
        )
        return OpenAITalk(client, root, endpoint.host, wordings, facts)


def root_of(url: str) -> str:
    """The address without the `/v1` that most people write behind it."""
    return url.removesuffix("/v1")


def _chosen(listed: object, endpoint: Endpoint) -> Mapping[str, Any]:
    """The model that is wanted, or the first. Raises EngineError: bad_reply, model_missing."""
    data = listed.get("data") if isinstance(listed, Mapping) else None
    if not isinstance(data, list):
        raise EngineError(
            "bad_reply", f"{endpoint.host} does not speak OpenAI's API", "look at `engine.url` and `engine.api`"
        )
    models = [entry for entry in data if isinstance(entry, Mapping) and isinstance(entry.get("id"), str)]
    if endpoint.model:
        # A name may be listed with more in front or behind: `org/name`, `name:latest`, a file's path.
        for match in (_is_same, _is_tail):
            for entry in models:
                if match(entry["id"], endpoint.model):
                    return entry
    elif models:
        return models[0]
    raise EngineError(
        "model_missing",
        f"{endpoint.host} does not serve the model",
        f"set `engine.model` to one of: {_names([entry['id'] for entry in models])}",
    )


def _names(listed: Sequence[str]) -> str:
    """As many names as a message has room for, each whole, since it is to be copied; of a path the file's name."""
    shown: list[str] = []
    room = NAMES_CHARS
    for name in (each if len(each) <= _LONG_NAME else _file_name(each) for each in listed):
        if len(name) + 2 <= room and name.isprintable():
            shown.append(name)
            room -= len(name) + 2
    rest = len(listed) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if shown and rest else "") or ("a shorter name" if rest else "none")


def _file_name(listed: str) -> str:
    return listed.replace("\\", "/").rsplit("/", 1)[-1]


def _is_same(listed: str, wanted: str) -> bool:
    return listed == wanted


def _is_tail(listed: str, wanted: str) -> bool:
    name = _file_name(listed)
    return wanted in (name, name.partition(":")[0], listed.partition(":")[0], name.removesuffix(".gguf"))


def _window(entry: Mapping[str, Any]) -> int:
    """vLLM tells it as `max_model_len`, llama.cpp in `meta`."""
    meta = entry.get("meta")
    told = entry.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, Mapping) else None)
    return told if isinstance(told, int) and told > 0 else UNKNOWN_WINDOW


def _chat_extras(maker: str) -> dict[str, Any]:
    """Thinking aloud before a small edit costs seconds. Only these two take the member; others refuse it."""
    return {"chat_template_kwargs": {"enable_thinking": False}} if maker in ("vllm", "llamacpp") else {}


async def _fill_by(client: httpx.AsyncClient, root: str, host: str, model: str, maker: str) -> FillBy:
    """The best way to fill a gap that the server has. Each is tried, since the API's names promise nothing.

    llama.cpp and others take a suffix and say nothing of ignoring it, so the tokens they read are counted. Raises
    EngineError when the server cannot be asked at the moment.
    """
    if maker == "llamacpp":
        body = {"input_prefix": "x = ", "input_suffix": "\n", "n_predict": 1, "temperature": 0}
        status, reply = await _json(client, "POST", f"{root}/infill", body)
        _require_answer(status, reply, host)
        if status == 200:
            return "infill"
    body = {"model": model, "prompt": "x = ", "suffix": _PROBE_SUFFIX, "max_tokens": 1, "temperature": 0}
    status, reply = await _json(client, "POST", f"{root}/v1/completions", body)
    _require_answer(status, reply, host)
    usage = reply.get("usage") if isinstance(reply, Mapping) else None
    read = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
    if status == 200 and isinstance(read, int) and read >= _PROBE_TOKENS:
        return "suffix"
    # A route that is there refuses the suffix (vLLM: 400); one that is not there is not found.
    has_completions = status in (200, 400, 422)
    return "template" if has_completions and template_of(model) is not None else "chat"


def _require_answer(status: int, reply: object, host: str) -> None:
    """That a server cannot answer now says nothing of what it can do. (What it cannot do at all, some say with 500.)

    Raises EngineError.
    """
    if status == 401 or (is_passing(status) and status != 500):
        raise refused(status, host, body=_said(reply))


def _said(reply: object) -> bytes:
    """A reply's words, to be searched for what kind of failure it is."""
    return str(reply).encode("utf-8", "replace")


async def _json(
    client: httpx.AsyncClient, method: str, url: str, body: Mapping[str, Any] | None = None
) -> tuple[int, object]:
    """Status and JSON of a short reply; None for one that is no JSON, or is too large to be meant."""
    async with client.stream(method, url, json=body) as response:
        raw = bytearray()
        async for chunk in response.aiter_bytes():
            raw += chunk
            if len(raw) > LARGEST_REPLY:
                return response.status_code, None
    try:
        return response.status_code, json.loads(raw)
    except (ValueError, RecursionError):
        return response.status_code, None
