"""Reads source files and their licences out of packages: `SourceFile`, `read_package`.

Archives are read member by member and never unpacked, so that no name in one can reach outside. Must not judge the
content of a file (`source_filter`) or fetch anything; what no permissive licence covers is left behind here.
"""

from __future__ import annotations

import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engine.training import licences
from engine.training.fetching import DEBIAN, DEBIAN_BINARY, NPM, PYPI, Source
from engine.training.source_filter import language_of_path

_MOST_BYTES = 1_000_000
_AR_MARK, _AR_HEADER = b"!<arch>\n", 60
_COPYRIGHT = re.compile(r"(usr/)?share/doc/[^/]+/copyright")
_DEBIAN_PART = re.compile(r"\.orig(?:-(?P<component>[\w-]+))?\.tar\.\w+$")


class PackageError(Exception):
    """A package gives nothing: broken, or its licence is not permissive. The message says which in one line."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a package, as it is there."""

    path: str
    data: bytes
    licence: str


def read_package(source: Source, archives: Sequence[Path]) -> Iterator[SourceFile]:
    """The source files under a permissive licence. Raises PackageError."""
    try:
        if source.registry == DEBIAN:
            yield from _read_debian(archives)
        elif source.registry == DEBIAN_BINARY:
            yield from _read_debian_binary(archives)
        elif source.registry in (PYPI, NPM):
            yield from _read_registry_package(source.registry, archives)
        else:
            yield from _read_standard_library(archives[0])
    except (OSError, EOFError, ValueError, tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error) as fault:
        raise PackageError(f"the package cannot be read: {fault}") from fault


def members(archive: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """(path inside, content) of the regular files `wanted` says yes to; a tar's one top folder is taken off."""
    if archive.is_dir():
        yield from _folder_members(archive, wanted)
    elif archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                if wanted(entry.filename) and entry.file_size <= _MOST_BYTES:
                    yield entry.filename, opened.read(entry)
    elif archive.suffix == ".deb":
        yield from _tar_members(_installed_files(archive), wanted)
    else:
        yield from _tar_members(io.BytesIO(archive.read_bytes()), wanted)


def _installed_files(archive: Path) -> io.BytesIO:
    """The data.tar inside a .deb, which is an `ar` archive: a mark, then 60 bytes of header before each member."""
    data = archive.read_bytes()
    place = len(_AR_MARK)
    while data.startswith(_AR_MARK) and place + _AR_HEADER <= len(data):
        name, size = data[place : place + 16].strip(), int(data[place + 48 : place + 58])
        place += _AR_HEADER
        if name.startswith(b"data.tar"):
            return io.BytesIO(data[place : place + size])
        place += size + size % 2
    raise PackageError("the package cannot be read: it holds no files")


def _tar_members(archive: io.BytesIO, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=archive, mode="r:*") as opened:
        for entry in opened:
            name = entry.name.removeprefix("./").partition("/")[2]
            if not entry.isfile() or entry.size > _MOST_BYTES:
                continue
            # Debian's own tar has no top folder but `debian` itself.
            name = entry.name.removeprefix("./") if entry.name.removeprefix("./").startswith("debian/") else name
            if name and wanted(name) and (stream := opened.extractfile(entry)) is not None:
                yield name, stream.read()


def _folder_members(folder: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if wanted(name) and path.is_file() and path.stat().st_size <= _MOST_BYTES:
            yield name, path.read_bytes()


def _is_source(path: str) -> bool:
    return language_of_path(path) is not None


def _is_licence_text(path: str) -> bool:
    return bool(re.match(r"(licen[cs]e|copying)\b", PurePosixPath(path).name, re.IGNORECASE))


def _read_standard_library(folder: Path) -> Iterator[SourceFile]:
    """Python's own library; packages installed beside it are not part of it."""
    texts = [data.decode("utf-8", "replace") for _, data in _folder_members(folder, lambda name: name == "LICENSE.txt")]
    licence = _permissive(licences.declared_by_text(text) for text in texts)
    foreign = ("site-packages", "dist-packages", "ensurepip", "lib2to3")
    for path, data in _folder_members(folder, lambda name: _is_source(name) and not name.startswith(foreign)):
        yield SourceFile(path, data, licence)


def _read_registry_package(registry: str, archives: Sequence[Path]) -> Iterator[SourceFile]:
    facts = re.compile(r"[^/]+\.dist-info/METADATA" if registry == PYPI else r"package\.json")
    for archive in archives:
        found = list(members(archive, lambda name: facts.fullmatch(name) is not None or _is_licence_text(name)))
        texts = [data.decode("utf-8", "replace") for name, data in found if _is_licence_text(name)]
        declared = [data.decode("utf-8", "replace") for name, data in found if facts.fullmatch(name)]
        if registry == PYPI:
            licence = _permissive(licences.declared_by_wheel(text, texts) for text in declared)
        else:
            licence = _permissive(licences.declared_by_npm(text) for text in declared)
        for path, data in members(archive, _is_source):
            yield SourceFile(path, data, licence)


def _read_debian_binary(archives: Sequence[Path]) -> Iterator[SourceFile]:
    """Where an installed file came from in the sources is not known, so all licences in them have to be permissive."""
    for archive in archives:
        facts = [data for _, data in members(archive, lambda name: _COPYRIGHT.fullmatch(name) is not None)]
        licence = _permissive(licences.declared_in_debian(data.decode("utf-8", "replace")) for data in facts)
        for path, data in members(archive, _is_source):
            yield SourceFile(path, data, licence)


def _read_debian(archives: Sequence[Path]) -> Iterator[SourceFile]:
    """Each file under the licence that debian/copyright gives it; those it gives another are left behind."""
    facts = [data for archive in archives for _, data in members(archive, lambda name: name == "debian/copyright")]
    declared = licences.debian_copyright(facts[0].decode("utf-8", "replace")) if facts else None
    if declared is None:
        raise PackageError("its debian/copyright is not machine-readable")
    refused: set[str] = set()
    kept = 0
    for archive in archives:
        for path, data in members(archive, _is_source):
            inside = _with_component(archive, path)
            licence = declared.licence_of(inside)
            if licence is None or not licences.is_permissive(licence):
                refused.add(licence or "none")
                continue
            kept += 1
            yield SourceFile(inside, data, licence)
    if not kept:
        raise PackageError(f"no permissive licence: {', '.join(sorted(refused)) or 'no sources in it'}")


def _with_component(archive: Path, path: str) -> str:
    """Debian lays a component's tar into a folder of the component's name."""
    found = _DEBIAN_PART.search(archive.name)
    component = found["component"] if found else None
    return f"{component}/{path}" if component else path


def _permissive(declared: Iterator[str | None]) -> str:
    """The one licence declared. Raises PackageError when there is none, or one that is not permissive."""
    licence = next(declared, None)
    if licence is None:
        raise PackageError("it declares no licence that can be read")
    if not licences.is_permissive(licence):
        raise PackageError(f"its licence is {licence[:100]}")
    return licence
