"""Where a remote engine may be, its token, and which documents may go there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.protocol.errors import EngineError
from lsp_server.document import Document
from lsp_server.privacy import explained, refusal
from lsp_server.remote.allowed import leaves_to, may_leave, notice_of_leaving
from lsp_server.remote.choice import EngineChoice, choice_of
from lsp_server.remote.endpoint import LONGEST_TOKEN, Endpoint, endpoint_of, host_of, leaves_for, read_token
from lsp_server.settings import Settings, parse
from lsp_server.settings_schema import vscode_configuration, vscode_restricted
from lsp_server.workspace import Workspace


@pytest.mark.parametrize(
    ("url", "address", "host", "stays"),
    [
        ("https://engine.example.org", "https://engine.example.org", "engine.example.org", False),
        ("https://engine.example.org:8443/v1/", "https://engine.example.org:8443/v1", "engine.example.org:8443", False),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1", "127.0.0.1:8080", True),
        ("http://localhost:11434", "http://localhost:11434", "localhost:11434", True),
        ("http://[::1]:8000", "http://[::1]:8000", "[::1]:8000", True),
        ("https://[2001:db8::1]/x", "https://[2001:db8::1]/x", "[2001:db8::1]", False),
        ("HTTPS://Engine.Example.ORG/V1", "https://engine.example.org/V1", "engine.example.org", False),
    ],
)
def test_addresses_that_can_be_used(url: str, address: str, host: str, stays: bool) -> None:
    endpoint = endpoint_of(EngineChoice(url))
    assert (endpoint.url, endpoint.host, endpoint.is_loopback) == (address, host, stays)
    assert bool(leaves_for(EngineChoice(url))) is not stays


@pytest.mark.parametrize(
    "url",
    [
        "http://engine.example.org",
        "http://10.0.0.5:8000",
        "http://127.0.0.1.example.org",
        "http://localhost.example.org",
        "http://engine.localhost:8000",
        "http://2130706433:8000",
        "http://0.0.0.0:8000",
        "ftp://engine.example.org",
        "engine.example.org:8000",
        "https://",
        "https://user:secret@engine.example.org",
        "https://token@engine.example.org",
        "https://engine.example.org/v1?key=secret",
        "https://engine.example.org/#x",
        "https://engine.example.org:99999",
        "https://engine .example.org",
        "https://[::1",
        "/etc/passwd",
    ],
)
def test_addresses_that_cannot(url: str) -> None:
    with pytest.raises(EngineError) as caught:
        endpoint_of(EngineChoice(url))
    assert caught.value.kind == "unsafe_address"
    assert caught.value.remedy
    # What an address may hold by mistake is shown to nobody.
    assert "secret" not in caught.value.message + caught.value.remedy
    assert host_of(EngineChoice(url))


URLS = st.text() | st.lists(
    st.sampled_from(
        ["http", "https", "://", "[", "]", "::1", "127.0.0.1", "@", ":", "8080", "/", "?", "#", "%", "x.y", " "]
    ),
    max_size=8,
).map("".join)


@given(URLS)
def test_any_text_is_an_address_that_is_safe_or_none(url: str) -> None:
    choice = EngineChoice(url or "x")
    assert host_of(choice)
    endpoint, kind = used(choice)
    if endpoint is None:
        assert (kind, leaves_for(choice)) == ("unsafe_address", "")
    else:
        assert endpoint.url.startswith("https://") or endpoint.is_loopback
        assert bool(leaves_for(choice)) is not endpoint.is_loopback
        assert "@" not in endpoint.url


def used(choice: EngineChoice) -> tuple[Endpoint | None, str]:
    """The endpoint of a choice, or why there is none."""
    try:
        return endpoint_of(choice), ""
    except EngineError as fault:
        return None, fault.kind


@given(st.text() | st.text().map(lambda path: f"file:///w/open/{path}") | URLS)
def test_any_text_is_a_document_that_may_leave_or_not(uri: str) -> None:
    settings = Settings(engine_url="https://engine.example.org", engine_allow_folders=("/w/open",))
    may = may_leave(uri, settings)
    assert may is False or "/w/open" in uri


def test_a_token_is_the_file_s_one_line_and_is_shown_nowhere(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("sk-abc123\n")
    file.chmod(0o600)
    endpoint = endpoint_of(EngineChoice("https://engine.example.org", token_file=str(file)))
    assert endpoint.token == "sk-abc123"
    assert "sk-abc123" not in repr(endpoint)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_that_others_can_read_is_refused_as_ssh_refuses_a_key(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text("sk-abc123")
    file.chmod(mode)
    with pytest.raises(EngineError) as caught:
        read_token(str(file))
    assert caught.value.kind == "unsafe_address"
    assert f"chmod 600 {file}" in caught.value.remedy
    assert "sk-abc123" not in f"{caught.value.message} {caught.value.remedy}"


def test_a_token_of_somebody_else_s_is_theirs_to_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a system's keeper of secrets puts there belongs to it, and may be readable by its group."""
    file = tmp_path / "token"
    file.write_text("sk-abc123")
    file.chmod(0o640)
    monkeypatch.setattr(os, "getuid", lambda: file.stat().st_uid + 1)
    assert read_token(str(file)) == "sk-abc123"


@pytest.mark.parametrize("raw", [b"", b"\n", b"two words", b"a\nb", b"a\r\nX-Other: b", b"\xff\xfe", b"x" * 5000])
def test_what_is_no_token_never_gets_into_a_header(tmp_path: Path, raw: bytes) -> None:
    assert len(b"x" * 5000) > LONGEST_TOKEN
    file = tmp_path / "token"
    file.write_bytes(raw)
    file.chmod(0o600)
    with pytest.raises(EngineError) as caught:
        read_token(str(file))
    assert caught.value.kind == "bad_token"


@pytest.mark.parametrize("name", ["missing", ".", "a\0b"])
def test_a_token_file_that_is_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(EngineError) as caught:
        read_token(f"{tmp_path}/{name}")
    assert caught.value.kind == "unsafe_address"


def there(folder: Path, *, url: str = "https://engine.example.org") -> Settings:
    return Settings(engine_url=url, engine_allow_folders=(str(folder),))


def test_documents_leave_from_the_named_folders_only(tmp_path: Path) -> None:
    allowed = tmp_path / "open"
    settings = there(allowed)
    assert may_leave((allowed / "a" / "b.py").as_uri(), settings)
    assert may_leave(f"vscode-notebook-cell:{allowed}/n.ipynb#W0s", settings)
    assert not may_leave((tmp_path / "opened" / "b.py").as_uri(), settings)
    assert not may_leave((allowed / ".." / "secret" / "b.py").as_uri(), settings)
    assert not may_leave(f"file://{allowed}/%2e%2e/secret/b.py", settings)
    assert not may_leave("untitled:Untitled-1", settings)
    assert not may_leave(f"git:{allowed}/b.py", settings)


def test_a_link_inside_a_named_folder_opens_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "open" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "way").symlink_to(tmp_path / "open")
    assert not may_leave((tmp_path / "open" / "link" / "b.py").as_uri(), there(tmp_path / "open"))
    assert may_leave((tmp_path / "open" / "b.py").as_uri(), there(tmp_path / "way"))


def test_without_a_url_or_folders_nothing_is_held_back(tmp_path: Path) -> None:
    assert may_leave("untitled:Untitled-1", there(tmp_path, url=""))
    assert may_leave("untitled:Untitled-1", Settings(engine_url="https://engine.example.org"))


def test_a_folder_that_is_no_absolute_path_opens_nothing(tmp_path: Path) -> None:
    settings = Settings(engine_url="https://engine.example.org", engine_allow_folders=("open", "~nobody-here/x"))
    assert not may_leave((tmp_path / "open" / "b.py").as_uri(), settings)


def test_a_document_elsewhere_is_refused_as_a_secret_is_and_the_reason_is_the_true_one(tmp_path: Path) -> None:
    document = Document.open((tmp_path / "b.py").as_uri(), 1, "python", "x = 1\n")
    assert refusal(document, there(tmp_path)) is None
    assert refusal(document, there(tmp_path / "open")) == "elsewhere"
    assert "engine.allowFolders" in explained("elsewhere")
    # The engine at a URL may well be on this machine.
    assert "another machine" not in explained("elsewhere")


def test_the_notice_names_host_and_folders() -> None:
    assert "engine.example.org" in notice_of_leaving("engine.example.org", Settings())
    assert "/w/app" in notice_of_leaving("h", Settings(engine_allow_folders=("/w/app",)))


@pytest.mark.parametrize("raw", [["/w/app", "src"], ["./src"], [""], ["~someone/x"], [3], "/w/app", {"a": 1}])
def test_folders_that_make_no_sense_are_told_and_open_nothing(raw: object) -> None:
    """Were the default kept, as for other settings, a slip of the pen would send every document away."""
    settings, problems = parse({"engine": {"url": "https://engine.example.org", "allowFolders": raw}})
    assert [problem.path for problem in problems] == ["engine.allowFolders"]
    assert "no document is sent" in problems[0].message
    assert not may_leave("file:///w/app/a.py", settings)
    assert leaves_to(settings) == ""


@pytest.mark.parametrize("raw", [["/w/app"], ["~"], ["~/work", "/w"], []])
def test_folders_are_whole_paths_or_begin_at_home(raw: list[str]) -> None:
    settings, problems = parse({"engine": {"url": "https://engine.example.org", "allowFolders": raw}})
    assert problems == []
    assert settings.engine_allow_folders == tuple(raw)
    assert leaves_to(settings) == "engine.example.org"
    assert not raw or may_leave((Path(raw[0]).expanduser() / "a.py").as_uri(), settings)


def test_a_host_of_one_word_has_its_port_behind_it() -> None:
    """In front of a sentence it would be taken for a word, and written with a large letter."""
    assert (
        endpoint_of(EngineChoice("https://gpubox/v1")).host == host_of(EngineChoice("https://gpubox")) == "gpubox:443"
    )
    assert endpoint_of(EngineChoice("http://localhost")).host == "localhost:80"
    assert endpoint_of(EngineChoice("https://gpubox/v1")).url == "https://gpubox/v1"


def test_neither_a_folder_nor_a_project_s_file_chooses_where_documents_go() -> None:
    workspace = Workspace()
    workspace.begin({"engine": {"url": "https://mine.example.org"}}, ["file:///w/app"])
    workspace.configure_folder("file:///w/app", {"engine": {"url": "https://theirs.example.org", "allowFolders": []}})
    assert workspace.settings_for("file:///w/app/a.py").engine_url == "https://mine.example.org"
    properties = vscode_configuration()["properties"]
    paths = [path for path in properties if path.startswith("lacuna.engine.")]
    assert len(paths) == 6
    assert {properties[path]["scope"] for path in paths} == {"machine"}
    assert set(paths) <= set(vscode_restricted())


def test_settings_of_the_engine_are_checked() -> None:
    settings, problems = parse(
        {"engine": {"url": " https://a.example.org ", "api": "soap", "timeoutMs": 1, "model": "a\nb", "tokenFile": 3}}
    )
    assert settings.engine_url == "https://a.example.org"
    assert [problem.path for problem in problems] == [
        "engine.api",
        "engine.timeoutMs",
        "engine.model",
        "engine.tokenFile",
    ]
    assert choice_of(settings) == EngineChoice("https://a.example.org")
    assert choice_of(Settings(engine_model="m")).is_local
