"""The parts a service is made of: the book of jobs, a client's stream, the configuration."""

from __future__ import annotations

import asyncio
import math
import socket

import pytest

from engine.config import DEFAULT_MODEL, EngineConfig, read_config
from engine.connection import SLOW_CLIENT_BYTES, STUCK_CLIENT_BYTES, Connection
from engine.ledger import MAX_JOBS_PER_CLIENT, Ledger
from engine.protocol.errors import FAILURE_KINDS, EngineError
from engine.protocol.last_words import read_last_words, write_last_words
from engine.protocol.messages import Cancelled, Draft, Failed

# The ledger


def test_a_job_has_one_final_reply() -> None:
    ledger = Ledger(0.0)
    ledger.open(1, "a")
    assert ledger.settle(1, Draft("a", "", 0, 1, 1), 1.0)
    assert ledger.settle(1, Cancelled("a"), 2.0)
    assert not ledger.settle(1, Cancelled("a"), 3.0)
    assert not ledger.settle(1, Failed("a", "internal", "", ""), 3.0)
    assert not ledger.settle(1, Draft("a", "", 0, 1, 1), 3.0)
    assert not ledger.settle(2, Cancelled("a"), 3.0)
    assert (ledger.done, ledger.cancelled, ledger.failed, ledger.running) == (0, 1, 0, 0)


def test_idleness_counts_from_the_last_answer() -> None:
    ledger = Ledger(10.0)
    assert ledger.idle_s(12.0) == 2.0
    ledger.open(1, "a")
    assert ledger.idle_s(100.0) == 0.0
    ledger.settle(1, Cancelled("a"), 100.0)
    assert ledger.idle_s(101.0) == 1.0
    assert ledger.idle_s(90.0) == 0.0


def test_the_limit_of_jobs_is_each_clients_own() -> None:
    ledger = Ledger(0.0)
    for number in range(MAX_JOBS_PER_CLIENT):
        assert not ledger.refusal(1, str(number))
        ledger.open(1, str(number))
    assert ledger.refusal(1, "more")
    assert not ledger.refusal(2, "more")


# A client's stream


def test_a_client_that_does_not_read_is_spared_drafts_and_then_let_go() -> None:
    async def scenario() -> None:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        connection = Connection(1, reader, writer)
        draft = Draft("a", "x" * 100_000, 0, 1, 1)
        for _ in range(50):
            connection.send(draft)
        kept = writer.transport.get_write_buffer_size()
        assert SLOW_CLIENT_BYTES < kept < SLOW_CLIENT_BYTES + 200_000
        failed = Failed("a", "internal", "y" * 8_000_000, "")
        for _ in range(STUCK_CLIENT_BYTES // 8_000_000 + 3):
            connection.send(failed)
        assert writer.is_closing()
        await connection.close()
        theirs.close()

    asyncio.run(scenario())


# Last words


@pytest.mark.parametrize("kind", sorted(FAILURE_KINDS))
def test_last_words_are_read_as_they_were_written(kind: str) -> None:
    line = write_last_words(EngineError(kind, "it\nis 'gone' é", 'do "this"'))
    assert "\n" not in line
    error = read_last_words(f"2026 ERROR {line}")
    assert error is not None
    assert (error.kind, error.message, error.remedy) == (kind, "it\nis 'gone' é", 'do "this"')


@pytest.mark.parametrize("line", ["", "engine failed:", "engine failed: {", "engine failed: []", "Traceback"])
def test_other_lines_are_no_last_words(line: str) -> None:
    assert read_last_words(line) is None


# The configuration


def test_the_defaults_are_those_of_the_dataclass() -> None:
    assert read_config({}, {}) == EngineConfig()
    assert EngineConfig().model == DEFAULT_MODEL


def test_options_go_before_the_environment() -> None:
    env = {"LACUNA_THREADS": "3", "LACUNA_DEVICE": "cuda:1", "LACUNA_ADAPTER": "off", "LACUNA_HOME": "/h"}
    config = read_config({"threads": "2", "device": None, "transport": "TCP", "idle_limit_s": 0.5}, env)
    wanted = EngineConfig(threads=2, device="cuda:1", adapter=False, transport="tcp", idle_limit_s=0.5)
    assert config == wanted


def test_as_many_threads_as_are_of_use_are_taken() -> None:
    assert read_config({"threads": 8}, {}, cores=2).threads == 8
    assert read_config({}, {"LACUNA_DEVICE": "CUDA"}).device == "cuda"
    assert read_config({}, {"LACUNA_HOLE_ORDER": "Top_down"}).hole_order == "top_down"


@pytest.mark.parametrize(
    ("options", "env", "says"),
    [
        ({"thread": 1}, {}, "thread is no setting"),
        ({"threads": "many"}, {}, "--threads must be a number"),
        ({"threads": -1}, {}, "--threads must be 0 or more"),
        ({"threads": 9}, {}, r"--threads must be at most 8 here \(4 for each core\), not 9"),
        ({}, {"LACUNA_THREADS": "9999"}, "LACUNA_THREADS must be at most 8"),
        ({}, {"LACUNA_DEVICE": "gpu9"}, "LACUNA_DEVICE must be auto, cpu, cuda or cuda:N, not 'gpu9'"),
        ({"device": "cuda:"}, {}, "--device must be"),
        ({"device": "cuda:-1"}, {}, "--device must be"),
        ({"idle_limit_s": math.nan}, {}, "--idle-limit-s must be 0 or more"),
        ({"idle_limit_s": "inf"}, {}, "--idle-limit-s must be 0 or more"),
        ({"transport": "pigeon"}, {}, "--transport must be one of auto, unix, tcp"),
        ({"model": " "}, {}, "--model must not be empty"),
        ({"hole_order": "upwards"}, {}, "--hole-order must be one of least_doubt, top_down"),
        ({}, {"LACUNA_ADAPTER": "perhaps"}, "LACUNA_ADAPTER must be on or off"),
        ({}, {"LACUNA_WINDOW_TOKENS": "1.5"}, "LACUNA_WINDOW_TOKENS must be a number"),
    ],
)
def test_a_wrong_setting_is_named(options: dict[str, object], env: dict[str, str], says: str) -> None:
    with pytest.raises(EngineError, match=says) as caught:
        read_config(options, env, cores=2)
    assert caught.value.kind == "bad_request"
