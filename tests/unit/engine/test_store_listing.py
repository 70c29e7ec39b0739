"""Models whose files and digests are learned from the hub when they are pulled: a small hub stands in for it."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path

import pytest

from engine.cli.models import status_of
from engine.paths import Paths
from engine.protocol.errors import EngineError
from engine.store import Entry, PullError, Registry, Store
from engine.store.hub_listing import Listing, hub_listing
from engine.store.progress import SourceError
from engine.store.registry import HubSpec, ModelFile
from engine.store.sources import Fetch
from tests.fakes.model_sources import digest_of

SPEC = HubSpec("owner/model")
COMMIT = "c0ffee" * 6 + "abcd"
WEIGHTS = b"weights of a model" * 100
CONFIG = b'{"model_type": "sdar"}'
NAME = "listed-model"


@dataclass
class Hub:
    """A repository: `large` files have a SHA-256 there, `small` ones git's digest; `served` overrides a content."""

    large: dict[str, bytes] = field(default_factory=lambda: {"model.safetensors": WEIGHTS})
    small: dict[str, bytes] = field(default_factory=lambda: {"config.json": CONFIG, "modeling_evil.py": b"print(1)"})
    served: dict[str, bytes] = field(default_factory=dict)
    status: int = 200
    asked: list[str] = field(default_factory=list)
    address: str = ""

    def environ(self) -> dict[str, str]:
        return {**os.environ, "HF_ENDPOINT": self.address, "HF_HUB_OFFLINE": "0"}

    def info(self) -> bytes:
        siblings = [
            {"rfilename": name, "size": len(data), "blobId": "0" * 40, "lfs": lfs_of(data)}
            for name, data in self.large.items()
        ]
        siblings += [
            {"rfilename": name, "size": len(data), "blobId": git_digest(data)} for name, data in self.small.items()
        ]
        return json.dumps({"id": SPEC.repository, "sha": COMMIT, "siblings": siblings}).encode()

    def answer(self, path: str) -> bytes | None:
        self.asked.append(path)
        if path.startswith("/api/models/"):
            return self.info()
        name = path.rsplit("/", 1)[-1]
        return self.served.get(name, self.small.get(name, self.large.get(name)))


def lfs_of(data: bytes) -> dict[str, object]:
    return {"sha256": digest_of(data), "size": len(data), "pointerSize": 130}


def git_digest(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = hub.answer(self.path.split("?")[0]) if hub.status == 200 else b"{}"
            self.send_response(hub.status if body is not None else 404)
            body = body or b""
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        hub.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield hub
        server.shutdown()
        thread.join()


def listed(hub: Hub) -> Listing:
    return hub_listing(hub.environ(), 20)(SPEC)


def fault(hub: Hub) -> SourceError:
    with pytest.raises(SourceError) as caught:
        listed(hub)
    return caught.value


def test_the_hub_tells_the_files_a_loader_reads_each_with_its_digest(hub: Hub) -> None:
    found = listed(hub)
    assert found.revision == COMMIT
    assert set(found.files) == {
        ModelFile("model.safetensors", len(WEIGHTS), digest_of(WEIGHTS)),
        ModelFile("config.json", len(CONFIG), digest_of(CONFIG)),
    }


def test_code_and_pickles_are_neither_listed_nor_asked_for(hub: Hub) -> None:
    hub.large["pytorch_model.bin"] = b"\x80\x02"
    hub.large["sub/model.safetensors"] = b"elsewhere"
    assert {file.name for file in listed(hub).files} == {"model.safetensors", "config.json"}
    assert not [path for path in hub.asked if path.endswith((".py", ".bin"))]


def test_a_small_file_that_is_not_the_one_listed_is_refused(hub: Hub) -> None:
    hub.served["config.json"] = b'{"model_type": "other"}'
    assert (fault(hub).cause, "config.json" in fault(hub).reason) == ("wrong_digest", True)


def test_a_repository_of_pickles_alone_is_refused(hub: Hub) -> None:
    hub.large = {"pytorch_model.bin": b"\x80\x02"}
    assert "no safetensors" in fault(hub).reason


@pytest.mark.parametrize(("status", "cause"), [(404, "not_found"), (401, "not_found"), (500, "not_found")])
def test_a_hub_that_refuses_is_told_apart_from_none(hub: Hub, status: int, cause: str) -> None:
    hub.status = status
    assert fault(hub).cause == cause


def test_no_hub_is_no_network() -> None:
    nowhere = {**os.environ, "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0"}
    with pytest.raises(SourceError) as caught:
        hub_listing(nowhere, 20)(SPEC)
    assert caught.value.cause == "no_network"
    with pytest.raises(SourceError, match="HF_HUB_OFFLINE"):
        hub_listing({**nowhere, "HF_HUB_OFFLINE": "1"})(SPEC)


LISTING = Listing(COMMIT, (ModelFile("model.safetensors", len(WEIGHTS), digest_of(WEIGHTS)),))


class Bringing:
    """Brings the weights, or something else."""

    label = "bringing"
    copies = 1

    def __init__(self, content: bytes = WEIGHTS) -> None:
        self.content = content
        self.entries: list[Entry] = []

    def fetch(self, job: Fetch) -> None:
        job.part.write_bytes(self.content)


def store(home: Path, answer: Listing | SourceError = LISTING, source: Bringing | None = None) -> Store:
    source = source or Bringing()
    entry = Entry(NAME, "masked", "a model of the hub", "none", loadable=True, sources=(SPEC,))

    def ask(spec: HubSpec) -> Listing:
        assert spec == SPEC
        if isinstance(answer, SourceError):
            raise answer
        return answer

    def opened(known: Entry) -> list[Bringing]:
        source.entries.append(known)
        return [source]

    return Store(Paths.below(home), Registry((entry,), NAME), open_sources=opened, list_files=ask)


def test_before_it_is_pulled_a_model_of_the_hub_is_loadable_and_absent(tmp_path: Path) -> None:
    known = store(tmp_path)
    assert status_of(known, known.find(NAME)) == "not here"
    for ask in (known.path, known.verify, known.locate):
        with pytest.raises(EngineError, match="is not on this machine") as caught:
            ask(NAME)
        assert caught.value.kind == "model_missing"


def test_pulling_records_the_digests_and_the_commit(tmp_path: Path) -> None:
    source = Bringing()
    known = store(tmp_path, source=source)
    path = known.pull(NAME)
    assert (path / "model.safetensors" if path.is_dir() else path).read_bytes() == WEIGHTS
    assert source.entries[0].sources == (HubSpec("owner/model", COMMIT),)
    assert known.find(NAME).files == LISTING.files
    assert status_of(known, known.find(NAME)) == "here"
    later = store(tmp_path, SourceError("no_network", "no route"))
    assert later.path(NAME) == path


def test_bytes_that_are_not_those_listed_are_not_kept(tmp_path: Path) -> None:
    known = store(tmp_path, source=Bringing(b"something else"))
    with pytest.raises(PullError) as caught:
        known.pull(NAME)
    assert caught.value.cause == "wrong_digest"
    assert status_of(known, known.find(NAME)) == "not here"


def test_weights_that_changed_since_the_pull_are_refused(tmp_path: Path) -> None:
    known = store(tmp_path)
    path = known.pull(NAME)
    file = path / "model.safetensors" if path.is_dir() else path
    file.write_bytes(b"x" * len(WEIGHTS))
    with pytest.raises(EngineError, match="wrong digest") as caught:
        known.locate(NAME)
    assert caught.value.kind == "model_corrupt"


def test_without_the_hub_nothing_is_fetched_and_the_way_out_is_named(tmp_path: Path) -> None:
    known = store(tmp_path, SourceError("no_network", "no route"))
    with pytest.raises(PullError, match="no route") as caught:
        known.pull(NAME)
    assert (caught.value.cause, "lacuna models add" in caught.value.remedy) == ("no_network", True)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_removing_forgets_the_listing_too(tmp_path: Path) -> None:
    known = store(tmp_path)
    known.pull(NAME)
    known.remove(NAME)
    assert known.find(NAME).files == ()


@pytest.mark.parametrize("text", ["", "{}", '{"revision": "a", "files": [{"name": "../x", "size": 1, "sha256": "a"}]}'])
def test_a_damaged_listing_counts_as_none(tmp_path: Path, text: str) -> None:
    known = store(tmp_path)
    (tmp_path / "models" / NAME).mkdir(parents=True)
    (tmp_path / "models" / NAME / "files.json").write_text(text)
    assert known.find(NAME).files == ()
    assert status_of(known, changed(known.find(NAME))) == "not here"
