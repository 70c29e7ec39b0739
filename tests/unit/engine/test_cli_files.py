"""`lacuna fill` and `lacuna rewrite` before any engine is asked: reading, locating, refusing, writing back."""

from __future__ import annotations

import stat
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from engine.cli.main import cli
from engine.cli.source_file import language_id, read_source


def invoke(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, list(arguments))
    return done.exit_code, done.output


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_text("x = 1\ny = 2\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["fill"], "no hole"),
        (["fill", "--at", "9:1"], "lines 1 to 3"),
        (["fill", "--at", "1:0"], "columns from 1"),
        (["fill", "--at", "one:2"], "LINE:COL"),
        (["fill", "--at", "3"], "LINE:COL"),
        (["rewrite", "--lines", "2:1", "--instruction", "x"], "lines 1 to 3"),
        (["rewrite", "--lines", "1:9", "--instruction", "x"], "lines 1 to 3"),
        (["rewrite", "--lines", "3:3", "--instruction", "x"], "nothing to rewrite"),
        (["rewrite", "--lines", "1:2", "--instruction", " "], "says nothing"),
        (["rewrite", "--lines", "1:2"], "instruction"),
        (["fill", "--max-tokens", "0"], "max-tokens"),
    ],
)
def test_a_wrong_call_is_status_2_and_says_what_is_wrong(file: Path, arguments: list[str], words: str) -> None:
    command, *options = arguments
    status, output = invoke(command, str(file), *options)
    assert status == 2
    assert words in output
    assert file.read_text() == "x = 1\ny = 2\n"


def test_standard_input_cannot_be_written_back() -> None:
    status, output = invoke("fill", "-", "--write", "--at", "1:1")
    assert status == 2
    assert "standard input" in output


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"caf\xe9 = 1\n"])
def test_what_is_not_utf_8_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(data)
    status, output = invoke("fill", str(path), "--at", "1:1")
    assert status == 1
    assert "UTF-8" in output


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.py", tmp_path):
        status, output = invoke("fill", str(path), "--at", "1:1")
        assert status == 1
        assert "cannot read" in output


def test_line_ends_marks_and_modes_survive_writing(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"\xef\xbb\xbfx = 1\r\ny = 2\rz = 3\n")
    path.chmod(0o750)
    link = tmp_path / "link.py"
    link.symlink_to(path)
    source = read_source(str(link), None)
    assert source.document.text == "x = 1\r\ny = 2\rz = 3\n"
    source.write(source.document.text.replace("2", "4"))
    assert path.read_bytes() == b"\xef\xbb\xbfx = 1\r\ny = 4\rz = 3\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert link.is_symlink()
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.py", "link.py"]


@pytest.mark.parametrize("change", ["edited", "gone", "read-only"])
def test_a_file_that_may_not_be_overwritten_is_left_as_it_is(tmp_path: Path, change: str) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    source = read_source(str(path), None)
    if change == "edited":
        path.write_text("x = 1\ny = 2\n")
    elif change == "gone":
        path.unlink()
    else:
        path.chmod(0o444)
    before = {item.name: item.read_bytes() for item in tmp_path.iterdir()}
    with pytest.raises(click.ClickException):
        source.write("x = 2\n")
    assert {item.name: item.read_bytes() for item in tmp_path.iterdir()} == before


def test_a_file_with_two_names_keeps_both(tmp_path: Path) -> None:
    path, other = tmp_path / "a.py", tmp_path / "b.py"
    path.write_text("x = 1\n")
    other.hardlink_to(path)
    read_source(str(path), None).write("x = 2\n")
    assert other.read_text() == "x = 2\n"


@pytest.mark.parametrize("name", [".env", "id_rsa", "server.pem"])
def test_secrets_need_to_be_asked_for_by_a_word(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("KEY=1\n")
    status, output = invoke("fill", str(tmp_path / name), "--at", "1:1")
    assert status == 1
    assert "--secret" in output


def test_places_count_characters_from_one(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text('s = "🙂"\nb\n', encoding="utf-8")
    source = read_source(str(path), None)
    assert source.offset_at(1, 7) == 6
    assert source.offset_at(1, 99) == 7
    assert source.line_span(1, 2) == (0, 9)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.py", "python"),
        ("a.ts", "typescript"),
        ("a.tsx", "typescriptreact"),
        ("a.js", "javascript"),
        ("a.go", "go"),
        ("a.rs", "rust"),
        ("a.sh", "shellscript"),
        ("a.c", "c"),
        ("a.cpp", "cpp"),
        ("a.cs", "csharp"),
        ("a.md", "markdown"),
        ("a.unknown-kind", "plaintext"),
    ],
)
def test_the_language_comes_from_the_name(name: str, expected: str) -> None:
    assert language_id(Path(name), "") == expected
    assert language_id(None, "") == "plaintext"
