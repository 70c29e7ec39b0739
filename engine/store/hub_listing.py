"""Which files a hub repository holds and what their digests are: asked once, when a model is pulled, and kept.

The hub states the SHA-256 of large files. Of small ones it states git's own digest, so they are read here, checked
against that, and their SHA-256 is computed. From then on the digests decide, wherever the bytes come from. Nothing that
could be run is ever listed, let alone fetched.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.store.formats import BESIDE_WEIGHTS
from engine.store.progress import SourceError
from engine.store.registry import HubSpec, ModelFile, SourceSpec

LISTING_S = 60.0
SMALL_BYTES = 32 << 20
_WEIGHTS = ".safetensors"


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a repository at one commit, each with its digest."""

    revision: str
    files: tuple[ModelFile, ...]

    @classmethod
    def read(cls, file: Path) -> Listing | None:
        """What `write` kept; None when there is nothing that can be read."""
        try:
            table = json.loads(file.read_text(encoding="utf-8"))
            files = (ModelFile(_plain(str(f["name"])), int(f["size"]), str(f["sha256"])) for f in table["files"])
            return cls(str(table["revision"]), tuple(files))
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def write(self, file: Path) -> None:
        """Keep it at `file`, in one step. Raises OSError."""
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f"{file.name}.{os.getpid()}.part")
        part.write_text(json.dumps(asdict(self), indent=1), encoding="utf-8")
        part.replace(file)


List = Callable[[HubSpec], Listing]
"""Asks for a repository's files. Raises SourceError."""


def hub_listing(environ: Mapping[str, str], limit_s: float = LISTING_S) -> List:
    """The listing as the hub gives it; gives up after `limit_s` seconds, whatever hangs."""

    def ask(spec: HubSpec) -> Listing:
        if environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
            raise SourceError("no_network", "skipped, HF_HUB_OFFLINE is set")
        answer: list[Listing | SourceError] = []

        def question() -> None:
            try:
                answer.append(_ask(spec, environ.get("HF_ENDPOINT"), limit_s))
            except SourceError as fault:
                answer.append(fault)

        # A name's resolution cannot be given a time limit: the thread is left behind, as the hub's probe is.
        thread = threading.Thread(target=question, daemon=True)
        thread.start()
        thread.join(limit_s)
        found = answer[0] if answer else SourceError("no_network", f"no answer within {limit_s:.0f} s")
        if isinstance(found, SourceError):
            raise found
        return found

    return ask


def _ask(spec: HubSpec, endpoint: str | None, limit_s: float) -> Listing:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    try:
        api = HfApi(endpoint=endpoint)
        found = api.model_info(spec.repository, revision=spec.revision, files_metadata=True, timeout=limit_s)
        revision = found.sha or spec.revision
        wanted = [file for file in found.siblings or () if _is_wanted(file.rfilename)]
        files = tuple(_file(HubSpec(spec.repository, revision), file, endpoint, limit_s) for file in wanted)
    except HfHubHTTPError as fault:
        status = getattr(fault.response, "status_code", "nothing")
        raise SourceError("not_found", f"{spec.repository} cannot be listed: it answered {status}") from fault
    except SourceError:
        raise
    except Exception as fault:
        raise SourceError("no_network", f"no route ({type(fault).__name__})") from fault
    if not any(file.name.endswith(_WEIGHTS) for file in files):
        raise SourceError("not_found", f"{spec.repository} holds no safetensors weights")
    return Listing(revision, files)


def _is_wanted(name: str) -> bool:
    return "/" not in name and (name.endswith(_WEIGHTS) or name in BESIDE_WEIGHTS)


def _file(spec: HubSpec, file: Any, endpoint: str | None, limit_s: float) -> ModelFile:
    name = _plain(file.rfilename)
    if file.lfs is not None:
        return ModelFile(name, int(file.lfs.size), str(file.lfs.sha256))
    if file.size is None or file.size > SMALL_BYTES or not file.blob_id:
        raise SourceError("failed", f"the hub states no digest of {name}")
    content = _content(spec, name, endpoint, limit_s)
    # Git's object id: SHA-1 over a header and the bytes. It only ties the bytes to the listing; SHA-256 is kept.
    if hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() != file.blob_id:
        raise SourceError("wrong_digest", f"{name} is not the file the hub lists")
    return ModelFile(name, len(content), hashlib.sha256(content).hexdigest())


def _content(spec: HubSpec, name: str, endpoint: str | None, limit_s: float) -> bytes:
    from huggingface_hub import get_token, hf_hub_url

    url = hf_hub_url(spec.repository, name, revision=spec.revision, endpoint=endpoint)
    token = get_token()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  # huggingface_hub's address
    with urllib.request.urlopen(request, timeout=limit_s) as reply:  # noqa: S310
        content: bytes = reply.read(SMALL_BYTES + 1)
    return content


def _plain(name: str) -> str:
    """`name` if it is that of a file in the model's own folder. Raises ValueError."""
    if not name or Path(name).name != name or name in {".", ".."}:
        raise ValueError(f"{name!r} is no plain file name")
    return name


def pinned(sources: Sequence[SourceSpec], revision: str) -> tuple[SourceSpec, ...]:
    """The same sources, those of the hub at one commit."""
    return tuple(HubSpec(s.repository, revision) if isinstance(s, HubSpec) else s for s in sources)
