"""A pull: sources in order, judged by digest, alone under the lock, and never half a file in use."""

from __future__ import annotations

import errno
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock

from engine.protocol.errors import EngineError
from engine.store import Entry, PullError, PullProgress
from engine.store.registry import ModelFile
from engine.store.sources import Source
from tests.fakes.model_sources import (
    CONTENT,
    FILE,
    NAME,
    BrokenDiskSource,
    FailingSource,
    GoodSource,
    ResumingSource,
    SlowSource,
    digest_of,
    small_entry,
    small_store,
)


def files_below(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def failed_pull(home: Path, *sources: Source, free: int = 1 << 40) -> PullError:
    with pytest.raises(PullError) as caught:
        small_store(home, sources, free=free).pull(NAME)
    assert not (home / "models" / NAME / FILE).exists()
    assert FILE + ".part" not in files_below(home)
    return caught.value


def test_a_good_source_is_enough(tmp_path: Path) -> None:
    path = small_store(tmp_path, [GoodSource()]).pull(NAME)
    assert path.read_bytes() == CONTENT
    assert files_below(tmp_path) == {FILE, FILE + ".stamp.json", NAME + ".lock"}


def test_the_second_pull_fetches_nothing(tmp_path: Path) -> None:
    source = GoodSource()
    store = small_store(tmp_path, [source])
    assert store.pull(NAME) == store.pull(NAME)
    assert source.fetches == 1


def test_the_next_source_is_tried_and_the_first_fault_is_told(tmp_path: Path) -> None:
    reports: list[PullProgress] = []
    store = small_store(tmp_path, [FailingSource(), GoodSource()])
    store.pull(NAME, progress=reports.append)
    skipped = [report for report in reports if report.stage == "skipped"]
    assert [report.message for report in skipped] == ["failing: no route"]
    assert reports[-1].stage == "done"


def test_wrong_bytes_are_removed_and_the_next_source_is_tried(tmp_path: Path) -> None:
    wrong, good = GoodSource(content=b"x" * len(CONTENT), label="wrong"), GoodSource()
    assert small_store(tmp_path, [wrong, good]).pull(NAME).read_bytes() == CONTENT
    assert good.fetches == 1


def test_only_wrong_bytes_is_a_wrong_digest(tmp_path: Path) -> None:
    error = failed_pull(tmp_path, GoodSource(content=CONTENT[:-1]))
    assert (error.cause, error.kind) == ("wrong_digest", "model_corrupt")
    assert "the file was removed" in error.message
    assert f"{len(CONTENT) - 1} bytes instead of {len(CONTENT)}" in error.message


def test_no_network_names_every_source_and_the_way_without_one(tmp_path: Path) -> None:
    error = failed_pull(tmp_path, FailingSource(label="hub"), FailingSource(label="index", reason="timed out"))
    assert (error.cause, error.kind) == ("no_network", "model_missing")
    assert "hub: no route; index: timed out" in error.message
    assert f"lacuna models pull {NAME} --from PATH" in error.remedy


def test_a_model_without_sources_says_so(tmp_path: Path) -> None:
    assert "it has no source" in failed_pull(tmp_path).message


def test_space_is_checked_before_anything_is_fetched(tmp_path: Path) -> None:
    source = GoodSource(copies=2)
    error = failed_pull(tmp_path, source, free=1000)
    assert (error.cause, error.kind) == ("no_space", "no_space")
    assert source.fetches == 0
    assert "2 times the file" in error.message
    assert "LACUNA_HOME" in error.remedy


def test_no_space_is_the_first_thing_to_put_right(tmp_path: Path) -> None:
    full = BrokenDiskSource(OSError(errno.ENOSPC, "No space left on device"))
    error = failed_pull(tmp_path, FailingSource(), full)
    assert error.cause == "no_space"


def test_another_disk_fault_is_said_as_the_system_says_it(tmp_path: Path) -> None:
    error = failed_pull(tmp_path, BrokenDiskSource(OSError(errno.EIO, "Input/output error", "disk")))
    assert error.cause == "failed"
    assert "Input/output error" in error.message


def test_a_cancelled_pull_leaves_nothing_that_looks_finished(tmp_path: Path) -> None:
    source, cancel = SlowSource(), threading.Event()
    store = small_store(tmp_path, [source, GoodSource()])
    with ThreadPoolExecutor(1) as pool:
        pulling = pool.submit(store.pull, NAME, cancel=cancel)
        assert source.halfway.wait(10)
        cancel.set()
        with pytest.raises(PullError) as caught:
            pulling.result(10)
    assert caught.value.cause == "interrupted"
    assert files_below(tmp_path / "models" / NAME) == set()


def test_an_interrupted_pull_goes_on_from_what_it_kept(tmp_path: Path) -> None:
    store = small_store(tmp_path, [ResumingSource()], entry=small_entry(b"abc"))
    for _ in range(2):
        with pytest.raises(PullError, match="interrupted"):
            store.pull(NAME)
    assert store.pull(NAME).read_bytes() == b"abc"


def test_wrong_bytes_are_not_resumed_from(tmp_path: Path) -> None:
    """What a source had kept when the whole turned out wrong is thrown away with it."""
    kept = tmp_path / "models" / NAME / "unfinished" / "resuming" / "kept"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"ZZ")
    store = small_store(tmp_path, [ResumingSource()], entry=small_entry(b"abc"))
    with pytest.raises(PullError, match="not those of the model"):
        store.pull(NAME)
    assert not kept.exists()


def test_the_second_of_two_pulls_waits_and_finds_the_file(tmp_path: Path) -> None:
    slow, second = SlowSource(), GoodSource(label="second")
    waiting = threading.Event()

    def note(report: PullProgress) -> None:
        if report.stage == "waiting" and report.message:
            waiting.set()

    with ThreadPoolExecutor(2) as pool:
        first_pull = pool.submit(small_store(tmp_path, [slow]).pull, NAME)
        assert slow.halfway.wait(10)
        second_pull = pool.submit(small_store(tmp_path, [second]).pull, NAME, progress=note)
        assert waiting.wait(10)
        slow.go_on.set()
        assert first_pull.result(10) == second_pull.result(10)
    assert second.fetches == 0


def test_waiting_can_be_cancelled(tmp_path: Path) -> None:
    store, cancel = small_store(tmp_path, [GoodSource()]), threading.Event()
    (tmp_path / "models").mkdir()
    with FileLock(str(tmp_path / "models" / f"{NAME}.lock")), ThreadPoolExecutor(1) as pool:

        def stop_when_waiting(report: PullProgress) -> None:
            if report.stage == "waiting":
                cancel.set()

        with pytest.raises(PullError, match="interrupted"):
            pool.submit(store.pull, NAME, progress=stop_when_waiting, cancel=cancel).result(10)


def test_a_damaged_file_is_fetched_again(tmp_path: Path) -> None:
    source = GoodSource()
    store = small_store(tmp_path, [source])
    store.pull(NAME).write_bytes(b"damaged")
    reports: list[PullProgress] = []
    assert store.pull(NAME, progress=reports.append).read_bytes() == CONTENT
    assert any("damaged and has been removed" in report.message for report in reports)


def test_a_model_of_a_later_version_is_refused_plainly(tmp_path: Path) -> None:
    source = GoodSource()
    store = small_store(tmp_path, [source], entry=small_entry(loadable=False))
    with pytest.raises(EngineError, match="later version") as caught:
        store.pull(NAME)
    assert caught.value.kind == "model_unsupported"
    assert source.fetches == 0


def test_a_file_without_a_digest_is_never_fetched(tmp_path: Path) -> None:
    source = GoodSource()
    entry = Entry(NAME, "hybrid", "a model", "none", True, files=(ModelFile(FILE, len(CONTENT), None),))
    with pytest.raises(PullError, match=r"digest of small\.gguf is not known"):
        small_store(tmp_path, [source], entry=entry).pull(NAME)
    assert source.fetches == 0


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    with pytest.raises(PullError, match="cannot be written") as caught:
        small_store(tmp_path, [GoodSource()]).pull(NAME)
    assert "LACUNA_HOME" in caught.value.remedy


def test_all_files_of_a_model_are_fetched(tmp_path: Path) -> None:
    files = (ModelFile("a.bin", None, digest_of(CONTENT)), ModelFile("b.bin", None, digest_of(CONTENT)))
    entry = Entry(NAME, "hybrid", "two files", "none", True, files=files)
    folder = small_store(tmp_path, [GoodSource()], entry=entry).pull(NAME)
    assert folder == tmp_path / "models" / NAME
    assert [(folder / file.name).read_bytes() == CONTENT for file in files] == [True, True]


def test_a_named_path_is_the_only_source(tmp_path: Path) -> None:
    other = GoodSource()
    (tmp_path / "usb").mkdir()
    (tmp_path / "usb" / FILE).write_bytes(CONTENT)
    store = small_store(tmp_path / "home", [other])
    assert store.pull(NAME, source=tmp_path / "usb").read_bytes() == CONTENT
    assert (other.fetches, (tmp_path / "usb" / FILE).exists()) == (0, True)


def test_a_wrong_file_of_a_person_is_left_alone_and_they_are_told(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(b"x" * len(CONTENT))
    with pytest.raises(PullError, match="your file is untouched") as caught:
        small_store(tmp_path / "home").pull(NAME, source=wrong)
    assert wrong.read_bytes() == b"x" * len(CONTENT)
    assert caught.value.cause == "wrong_digest"
    assert f"`lacuna models pull {NAME}` fetches it" in caught.value.remedy


def test_an_interrupted_copy_promises_nothing_it_does_not_keep(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    (tmp_path / FILE).write_bytes(CONTENT)
    with pytest.raises(PullError, match="interrupted") as caught:
        small_store(tmp_path / "home").pull(NAME, source=tmp_path / FILE, cancel=cancel)
    assert "from its start" in caught.value.remedy
    assert files_below(tmp_path / "home" / "models" / NAME) == set()


def test_counts_carry_size_speed_and_time_left(tmp_path: Path) -> None:
    reports: list[PullProgress] = []
    small_store(tmp_path, [GoodSource()]).pull(NAME, progress=reports.append)
    counted = [report for report in reports if report.stage == "downloading"]
    assert counted[0].total == len(CONTENT)
    assert counted[0].message == "downloading small.gguf from good"
