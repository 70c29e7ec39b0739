"""Which documents stay away from the engine."""

from __future__ import annotations

import pytest

from lsp_server.document import Document
from lsp_server.privacy import DENSE_FROM_CHARS, HUGE_CHARS, explained, is_secret, refusal, typing_refusal
from lsp_server.settings import Settings


@pytest.mark.parametrize(
    "path",
    [
        "/w/.env",
        "/w/.env.local",
        "/w/prod.env",
        "/w/.ENV",
        "/w/id_rsa",
        "/w/id_ed25519.pub",
        "/w/x.pem",
        "/w/.dev.vars",
        "/w/secrets.yml",
        "/w/secrets.yaml",
        "/home/me/.ssh/config",
        "/home/me/.aws/credentials",
        "/w/%2Eenv",
        "/c%3A/w/.env",
        "/w/terraform.tfvars",
    ],
)
def test_secrets_are_known_by_name(path: str) -> None:
    assert is_secret(f"file://{path}", Settings())
    assert is_secret(f"vscode-remote://ssh{path}", Settings())


@pytest.mark.parametrize(
    "uri",
    [
        "file:///w/a.py",
        "file:///w/env.py",
        "file:///w/environment.ts",
        "file:///w/.env/lib/a.py",
        "untitled:Untitled-1",
        "vscode-notebook-cell:/x.ipynb#W0",
        "file:///",
        "",
    ],
)
def test_ordinary_files_are_no_secrets(uri: str) -> None:
    assert not is_secret(uri, Settings())


def test_users_add_and_remove_patterns() -> None:
    settings = Settings(secret_files=("*.customer.json", "vault/*"), open_files=(".env.example",))
    assert is_secret("file:///w/a.customer.json", settings)
    assert is_secret("file:///w/vault/deep/a.py", settings)
    assert not is_secret("file:///w/.env.example", settings)
    assert is_secret("file:///w/.env", settings)
    # What the user called secret stays secret.
    both = Settings(secret_files=(".env.example",), open_files=(".env.example",))
    assert is_secret("file:///w/.env.example", both)


def document(text: str, uri: str = "file:///w/a.py", language: str = "python") -> Document:
    return Document.open(uri, 1, language, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("x" * 300, None),
        ("x = 1\n" * 100_000, None),
        ("x" * 30_000, "dense"),
        (("y" * 300 + "\r") * 100, "dense"),
        ("x = 1\n" * 1_700_000, "huge"),
    ],
)
def test_big_and_dense_texts_are_left_alone(text: str, expected: str | None) -> None:
    assert refusal(document(text), Settings()) == expected


def test_a_language_or_file_turned_off_can_still_be_rewritten() -> None:
    settings = Settings(disabled_languages=("markdown",), disabled_files=("*.txt", "docs/*"))
    notes = document("# a", "file:///w/a.md", "markdown")
    letter = document("a", "file:///w/docs/a.py")
    assert (typing_refusal(notes, settings), refusal(notes, settings)) == ("language off", None)
    assert (typing_refusal(letter, settings), refusal(letter, settings)) == ("file off", None)
    assert typing_refusal(document("a"), settings) is None


@pytest.mark.parametrize(
    ("pattern", "path", "is_off"),
    [
        ("*.txt", "/w/a/b.txt", True),
        ("*.TXT", "/w/b.Txt", True),
        ("*.txt", "/w/b.txt.py", False),
        ("docs/*", "/w/docs/deep/a.py", True),
        ("docs/*", "/w/mydocs/a.py", False),
        ("src/**/a.py", "/w/src/a.py", True),
        ("src/**/a.py", "/w/src/deep/a.py", True),
        ("/w/docs/*", "/w/docs/a.py", True),
        ("", "/w/a.py", False),
    ],
)
def test_files_are_turned_off_by_globs(pattern: str, path: str, is_off: bool) -> None:
    found = typing_refusal(document("a", f"file://{path}"), Settings(disabled_files=(pattern,)))
    assert (found == "file off") is is_off


def test_a_secret_is_one_whatever_else_is_turned_off() -> None:
    settings = Settings(disabled_files=("*.txt",))
    assert typing_refusal(document("a", "file:///w/.env"), settings) == "secret"


def test_a_person_is_told_the_reason_that_holds() -> None:
    dense = document("x" * (DENSE_FROM_CHARS + 1))
    huge = document("x\n" * (HUGE_CHARS // 2 + 1))
    for asked, part in ((document("a", "file:///w/.env"), "secret"), (dense, "lines"), (huge, "10,000,000")):
        refused = refusal(asked, Settings())
        assert refused is not None
        others = {"secret", "lines", "10,000,000"} - {part}
        assert part in explained(refused)
        assert not any(other in explained(refused) for other in others)
