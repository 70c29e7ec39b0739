"""Files come out of every kind of package with the licence that covers them, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.training.extraction import PackageError, read_package
from engine.training.fetching import Source
from engine.training.source_filter import language_of_content, language_of_path, refusal
from tests.fakes.packages import COPYRIGHT, module, write_deb, write_debian, write_npm, write_tar, write_wheel

PYTHON = Source("pypi", "demo", frozenset({"python"}))
NPM = Source("npm", "demo", frozenset({"javascript"}))
DEBIAN = Source("debian", "demo", frozenset({"c"}))


def paths(source: Source, *archives: Path) -> list[str]:
    return [file.path for file in read_package(source, archives)]


def test_a_wheel_gives_its_modules(tmp_path: Path) -> None:
    files = {"demo/a.py": module("a"), "demo/tests/test_a.py": module("t"), "demo/data.json": "{}", "demo/_pb2.py": "x"}
    found = list(read_package(PYTHON, [write_wheel(tmp_path / "demo.whl", files)]))
    assert [(file.path, file.licence) for file in found] == [("demo/a.py", "MIT")]
    assert found[0].data.decode() == module("a")


def test_an_npm_package_gives_its_sources_not_its_builds(tmp_path: Path) -> None:
    files = dict.fromkeys(("src/a.js", "dist/a.js", "a.min.js", "types.d.ts", "src/b.ts", "test/a.js"), "x")
    assert paths(NPM, write_npm(tmp_path / "demo.tgz", files)) == ["src/a.js", "src/b.ts"]


@pytest.mark.parametrize("licence", ["GPL-3.0", "UNLICENSED", None, 3])
def test_a_licence_that_is_not_permissive_gives_nothing(tmp_path: Path, licence: object) -> None:
    with pytest.raises(PackageError, match="licence"):
        paths(NPM, write_npm(tmp_path / "demo.tgz", {"src/a.js": "x"}, licence))


def test_a_package_without_its_facts_gives_nothing(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match="declares no licence"):
        paths(NPM, write_tar(tmp_path / "demo.tgz", {"package/src/a.js": "x"}))


def test_debian_files_have_each_their_own_licence(tmp_path: Path) -> None:
    files = {"src/a.c": "int a;", "src/borrowed/b.c": "int b;"}
    found = list(read_package(DEBIAN, write_debian(tmp_path, files)))
    assert [(file.path, file.licence) for file in found] == [("src/a.c", "Expat")]


def test_debian_packages_of_prose_or_copyleft_give_nothing(tmp_path: Path) -> None:
    prose = write_debian(tmp_path / "a", {"a.c": "int a;"}, "Free to use.")
    with pytest.raises(PackageError, match="not machine-readable"):
        paths(DEBIAN, *prose)
    copyleft = write_debian(tmp_path / "b", {"a.c": "int a;"}, COPYRIGHT.replace("Expat", "GPL-3"))
    with pytest.raises(PackageError, match="no permissive licence: GPL-3"):
        paths(DEBIAN, *copyleft)


def test_an_installed_package_gives_files_only_when_all_its_licences_are_permissive(tmp_path: Path) -> None:
    source = Source("debian_binary", "demo", frozenset({"ruby"}))
    clean = COPYRIGHT.replace("GPL-2+", "Apache-2.0") + "\nFiles: debian/*\nCopyright: x\nLicense: GPL-3\n"
    deb = write_deb(tmp_path / "demo.deb", {"usr/lib/ruby/a.rb": "x"}, clean)
    found = list(read_package(source, [deb]))
    assert [(file.path, file.licence) for file in found] == [("lib/ruby/a.rb", "Expat and Apache-2.0")]
    with pytest.raises(PackageError, match=r"its licence is GPL-2\+"):
        paths(source, write_deb(tmp_path / "demo.deb", {"usr/lib/ruby/a.rb": "x"}, COPYRIGHT))


def test_a_broken_deb_is_one_message(tmp_path: Path) -> None:
    deb = write_deb(tmp_path / "demo.deb", {"usr/lib/ruby/a.rb": "x"}, COPYRIGHT)
    whole = deb.read_bytes()
    for data in (b"", b"!<arch>\n", whole[:70], whole[:200], whole[:-300], b"!<arch>\n" + b"x" * 60):
        deb.write_bytes(data)
        with pytest.raises(PackageError, match="cannot be read"):
            paths(Source("debian_binary", "demo", frozenset({"ruby"})), deb)


@pytest.mark.parametrize("name", ["demo.whl", "demo.tgz", "demo.tar.xz"])
@pytest.mark.parametrize("data", [b"", b"no archive", b"PK\x03\x04broken", b"\x1f\x8bbroken", b"\xfd7zXZ\x00broken"])
def test_a_broken_archive_is_one_message(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(PackageError, match="cannot be read"):
        paths(PYTHON, path)


def test_a_cut_archive_is_one_message(tmp_path: Path) -> None:
    path = write_npm(tmp_path / "demo.tgz", {"src/a.js": module("a", 400)})
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(PackageError, match="cannot be read"):
        paths(NPM, path)


def test_names_that_lead_outside_are_only_names(tmp_path: Path) -> None:
    path = write_npm(tmp_path / "in" / "demo.tgz", {"../../../escaped.js": "x"})
    assert paths(NPM, path) == ["../../../escaped.js"]
    assert [item.name for item in tmp_path.iterdir()] == ["in"]


def test_the_standard_library_leaves_installed_packages_alone(tmp_path: Path) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "a.py").write_text("x", encoding="utf-8")
    (tmp_path / "bisect.py").write_text("x", encoding="utf-8")
    source = Source("standard_library", "python", frozenset({"python"}))
    with pytest.raises(PackageError, match="declares no licence"):
        paths(source, tmp_path)
    (tmp_path / "LICENSE.txt").write_text("PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2", encoding="utf-8")
    assert paths(source, tmp_path) == ["bisect.py"]


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a.py", "python"),
        ("src/Main.java", "java"),
        ("a/b.cc", "cpp"),
        ("a.h", "c"),
        ("a.d.ts", None),
        ("a/tests/b.py", None),
        ("test_a.py", None),
        ("a_test.go", None),
        ("a.min.js", None),
        ("README.md", None),
        ("vendor/a.go", None),
    ],
)
def test_languages_by_name(path: str, language: str | None) -> None:
    assert language_of_path(path) == language


def test_languages_by_content() -> None:
    assert language_of_content("c", "#pragma once\nnamespace a {\n") == "cpp"
    assert language_of_content("c", "int a;\n") == "c"
    assert language_of_content("javascript", "/** @flow strict */") == "flow"


LONG = module("a", 60)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (LONG.encode(), None),
        (LONG.replace("\n", "\r\n").encode(), None),
        (LONG.replace("total", "tötal😀").encode(), None),
        (b"", "size"),
        (b"x = 1\n", "size"),
        (b"x = 1\n" * 40_000, "size"),
        (LONG.encode("utf-16"), "not UTF-8"),
        (LONG.replace("total", "tötal").encode("latin-1"), "not UTF-8"),
        (LONG.replace("total", "to\0tal").encode(), "not text"),
        (LONG.replace("\n", "\r").encode(), "not text"),
        (LONG.replace("\n", ";").encode(), "minified or data"),
        (b"# Code generated by a tool. DO NOT EDIT.\n" + LONG.encode(), "generated"),
        (b"var _a = _interopRequireDefault(b);\n" + LONG.encode(), "transpiled"),
        (b"  0x12, 0x13, 0x14,\n" * 100, "data"),
    ],
)
def test_content_that_is_no_use_is_refused(data: bytes, reason: str | None) -> None:
    assert refusal(data) == reason
