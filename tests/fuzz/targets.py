"""What is fuzzed: for each door that bytes from outside come through, what must hold whatever they are.

A target takes bytes and raises AssertionError, or whatever escapes, when a promise is broken. `seeds` are well-formed
inputs, from which mutations get further in than noise does. Run by hypothesis (`test_fuzz`) and, by hand, by atheris
(`python -m tests.fuzz.run`).
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.models.gguf_format import parse_header
from engine.models.safetensors_header import read_shapes
from engine.protocol import codec
from engine.protocol.errors import EngineError
from engine.protocol.framing import HEADER, read_frame
from engine.protocol.messages import PROTOCOL_VERSION, Cancel, Constraints, Fill, FurtherHole, Hello, Message, Rewrite
from lsp_server.document import Document
from lsp_server.frames import BrokenFraming, read_frames
from lsp_server.settings import merge, parse, rules
from lsp_server.tickets import brought_up, parse_ticket, ticket_for, to_data
from lsp_server.trail import Trail
from tests.fuzz.lsp_target import LSP_SEEDS, LspTarget

DOCUMENT = Document.open("file:///a.py", 3, "python", "def f():\r\n    return é\n🙂")


@dataclass(frozen=True)
class Target:
    """One door: what to do with bytes, and bytes that pass it."""

    run: Callable[[bytes], None]
    seeds: tuple[bytes, ...]


def run_codec(data: bytes) -> None:
    """Frames of the engine's socket: each a message that means the same written again, or a refusal."""
    stream = io.BytesIO(data)
    with contextlib.suppress(EngineError):
        while (payload := read_frame(stream)) is not None:
            for decode in (codec.decode_request, codec.decode_reply):
                _decode(decode, payload)


def _decode(decode: Callable[[bytes], Message], payload: bytes) -> None:
    try:
        message = decode(payload)
    except codec.BadMessageError:
        return
    again = decode(codec.encode(message)[HEADER.size :])
    # Compared as text: a NaN is not equal to itself.
    assert repr(again) == repr(message)


def run_ticket(data: bytes) -> None:
    """`CodeAction.data` as it comes back from an editor."""
    value = _json(data)
    ticket = parse_ticket(value)
    if ticket is None:
        return
    assert to_data(ticket) == value
    found = brought_up(ticket, DOCUMENT, Trail())
    assert found is None or 0 <= found.start < found.end <= DOCUMENT.length


def run_gguf(data: bytes) -> None:
    """A GGUF file's header: read, or a ValueError."""
    with contextlib.suppress(ValueError):
        header = parse_header(data)
        assert all(0 <= tensor.offset < len(data) for tensor in header.tensors.values())


def run_safetensors(data: bytes) -> None:
    """A safetensors file's header: shapes, or a ValueError."""
    with contextlib.suppress(ValueError):
        shapes = read_shapes(io.BytesIO(data), len(data))
        assert all(type(side) is int and side >= 0 for shape in shapes.values() for side in shape)


def run_settings(data: bytes) -> None:
    """Options as any client may send them, alone and laid over a project's own."""
    options = _json(data)
    for raw in (options, merge({"inlineCompletion": {"maxTokens": 5}, "holes": None}, options)):
        settings, problems = parse(raw)
        assert all(str(problem) for problem in problems)
        for name, default, rule in rules():
            value = getattr(settings, name)
            assert type(value) is type(default), name
            assert type(value) is not int or rule.least <= value <= rule.most, name


def run_lsp_frames(data: bytes) -> None:
    """The base protocol's framing: bodies of the length stated, or BrokenFraming."""

    async def read() -> None:
        reader = asyncio.StreamReader(1 << 16)
        reader.feed_data(data)
        reader.feed_eof()
        with contextlib.suppress(BrokenFraming):
            async for body in read_frames(reader):
                assert body in data

    asyncio.run(read())


def _json(data: bytes) -> Any:
    """The JSON in `data`; where there is none, its text, which is JSON as well."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")


def _gguf_seed() -> bytes:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    fields = [
        text("general.architecture") + struct.pack("<I", 8) + text("qwen2"),
        text("general.alignment") + struct.pack("<II", 4, 32),
        text("qwen2.rope.freq_base") + struct.pack("<If", 6, 1e6),
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("é"),
        text("tokenizer.ggml.token_type") + struct.pack("<IIQ3i", 9, 5, 3, 1, 1, 3),
        text("nested") + struct.pack("<IIQIQ2B", 9, 9, 1, 0, 2, 7, 8),
    ]
    tensors = [
        text("token_embd.weight") + struct.pack("<IQQIQ", 2, 4, 2, 0, 0),
        text("output_norm.weight") + struct.pack("<IQIQ", 1, 4, 1, 32),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(fields)) + b"".join(fields + tensors)
    return head.ljust(-(-len(head) // 32) * 32, b"\0") + bytes(64)


def _safetensors_seed(metadata: bool) -> bytes:
    header: dict[str, Any] = {"a.weight": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]}}
    if metadata:
        header["__metadata__"] = {"base_sha256": "0" * 8}
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(8)


def targets(servers_inputs: int = 500) -> dict[str, Target]:
    """Every target by name; the language server's begins anew after `servers_inputs` inputs."""
    requests: tuple[Message, ...] = (
        Hello(PROTOCOL_VERSION, "fuzz", "secret"),
        Fill("1", "python", "a", "b", wants_drafts=True, further=(FurtherHole("x"),), constraints=Constraints(1, 2)),
        Rewrite("2", "lua", "a", "b", "c", "shorter", seed=1),
        Cancel("1"),
    )
    ticket = to_data(ticket_for(DOCUMENT, 4, 7, "simplify", "Simplify."))
    options = {
        "enable": True,
        "inlineCompletion": {"maxTokens": 5, "debounceMs": 3.0, "enable": None},
        "holes": {"markers": ["<fill>", "..."]},
        "actions": [{"title": "a", "instruction": "b", "languages": ["c"]}],
        "positionEncoding": "utf-16",
    }
    return {
        "codec": Target(run_codec, tuple(map(codec.encode, requests))),
        "ticket": Target(run_ticket, (json.dumps(ticket).encode(),)),
        "gguf": Target(run_gguf, (_gguf_seed(),)),
        "safetensors": Target(run_safetensors, (_safetensors_seed(metadata=True), _safetensors_seed(metadata=False))),
        "settings": Target(run_settings, (json.dumps(options).encode(),)),
        "lsp_frames": Target(run_lsp_frames, (b"Content-Length: 2\r\nX: y\r\n\r\n{}content-length:1\n\n1",)),
        "lsp_messages": Target(LspTarget(servers_inputs), LSP_SEEDS),
    }
