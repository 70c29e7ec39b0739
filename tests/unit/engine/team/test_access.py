"""Who may use a team's engine, how much of it, and what it can be told at its start."""

from __future__ import annotations

import contextlib
import hmac
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config import EngineConfig
from engine.protocol.address import is_loopback
from engine.protocol.errors import EngineError
from engine.team.access import TokenBook, bearer, digest_of, new_entry
from engine.team.batch_limits import BatchLimits
from engine.team.options import TeamOptions
from engine.team.quotas import Quota, QuotaBook


def test_a_token_leads_to_its_user_and_no_other_text_does() -> None:
    first, entry = new_entry("ada")
    second, other = new_entry("bob@example.org")
    book = TokenBook.parse(f"# the team\n{entry}  # laptop\n\n{other}\n")
    assert (book.user_of(first), book.user_of(second)) == ("ada", "bob@example.org")
    assert book.users == ("ada", "bob@example.org")
    for wrong in ("", first[:-1], first + "x", digest_of(first), "ada", entry):
        assert book.user_of(wrong) is None
    assert first not in entry


def test_a_user_may_have_several_tokens_at_a_time() -> None:
    (old, first), (new, second) = new_entry("ada"), new_entry("ada")
    book = TokenBook.parse(f"{first}\n{second}\n")
    assert [book.user_of(token) for token in (old, new)] == ["ada", "ada"]
    assert book.users == ("ada",)


def test_every_digest_is_compared_whoever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [new_entry(f"user{number}") for number in range(5)]
    book = TokenBook.parse("\n".join(entry for _, entry in made))
    compared: list[str] = []
    real = hmac.compare_digest

    def noting(left: str, right: str) -> bool:
        compared.append(left)
        return real(left, right)

    monkeypatch.setattr(hmac, "compare_digest", noting)
    for token in (made[0][0], made[4][0], "nobody's"):
        compared.clear()
        book.user_of(token)
        assert len(compared) == 5


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "names nobody"),
        ("# only words\n", "names nobody"),
        ("ada secret\n", "line 1"),
        ("\nada sha256:" + "0" * 63, "line 2"),
        ("ada sha256:" + "G" * 64, "line 1"),
        ("../ada sha256:" + "0" * 64, "line 1"),
        ("ada and sha256:" + "0" * 64, "line 1"),
    ],
)
def test_a_tokens_file_with_a_fault_is_refused_by_its_line(text: str, fault: str) -> None:
    with pytest.raises(EngineError, match=fault) as refused:
        TokenBook.parse(text)
    assert "lacuna engine token" in refused.value.remedy


@given(st.text(max_size=60))
def test_any_text_is_refused_or_read_as_a_tokens_file(text: str) -> None:
    with contextlib.suppress(EngineError):
        assert TokenBook.parse(text).users
    assert TokenBook((("ada", digest_of("x")),)).user_of(text + "x") == (None if text else "ada")


@pytest.mark.parametrize("name", ["", " ada", "a b", "-x", "x" * 65, "a#b", "é"])
def test_what_is_no_user_s_name_gets_no_token(name: str) -> None:
    with pytest.raises(EngineError, match="no name"):
        new_entry(name)


@pytest.mark.parametrize(
    ("header", "token"), [("Bearer abc", "abc"), ("Bearer  abc ", "abc"), ("bearer abc", ""), ("Basic x", ""), ("", "")]
)
def test_the_token_of_a_header(header: str, token: str) -> None:
    assert bearer(header) == token


def test_a_user_has_so_many_jobs_at_once_and_others_are_not_touched() -> None:
    book = QuotaBook(Quota(jobs_at_once=2, jobs_a_minute=0))
    assert [book.begin("ada", 0.0) for _ in range(2)] == [None, None]
    refused = book.begin("ada", 0.0)
    assert refused is not None
    assert "2 jobs of ada" in refused.why
    assert book.begin("bob", 0.0) is None
    assert (book.running, book.busy_users) == (3, 2)
    book.end("ada")
    assert book.begin("ada", 0.0) is None


def test_a_user_has_so_many_jobs_a_minute_and_is_told_how_long_to_wait() -> None:
    book = QuotaBook(Quota(jobs_at_once=0, jobs_a_minute=6))
    for _ in range(6):
        assert book.begin("ada", 100.0) is None
        book.end("ada")
    refused = book.begin("ada", 101.0)
    assert refused is not None
    assert refused.retry_s == 9
    assert book.begin("ada", 101.0 + refused.retry_s) is None
    assert book.begin("ada", 101.0 + refused.retry_s) is not None
    # A refusal costs nothing, and a clock that is turned back gives nothing.
    assert book.begin("ada", 50.0) is not None


@given(st.lists(st.floats(0, 30), max_size=60))
def test_no_more_jobs_begin_than_the_rate_allows(pauses: list[float]) -> None:
    book, now, begun = QuotaBook(Quota(0, 30)), 0.0, 0
    for pause in pauses:
        now += pause
        begun += book.begin("ada", now) is None
    assert begun <= 30 + now * 30 / 60 + 1e-6


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.9.9.9"])
def test_this_machine_may_be_served_without_tls(host: str) -> None:
    assert is_loopback(host)
    assert TeamOptions(host=host).url.startswith("http://")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_beyond_this_machine_there_is_only_tls(host: str) -> None:
    with pytest.raises(EngineError, match="read along"):
        TeamOptions(host=host)
    with pytest.raises(EngineError, match="read along"):
        TeamOptions(host=host, certificate=Path("c.pem"))
    assert TeamOptions(host=host, certificate=Path("c.pem"), key=Path("k.pem")).url.startswith("https://")


@pytest.mark.parametrize(
    "wrong",
    [
        {"replicas": (0, 1)},
        {"replicas": (3, 2)},
        {"limits": BatchLimits(canvases=0)},
        {"limits": BatchLimits(window_s=-1.0)},
        {"limits": BatchLimits(window_s=float("nan"))},
        {"engines": ()},
        {"engines": (EngineConfig(), EngineConfig())},
        {"key": Path("k.pem")},
    ],
)
def test_options_that_do_not_fit_are_refused_with_a_way_out(wrong: dict[str, object]) -> None:
    with pytest.raises(EngineError) as refused:
        TeamOptions(**wrong)  # type: ignore[arg-type]
    assert refused.value.kind == "bad_request"
    assert refused.value.remedy
