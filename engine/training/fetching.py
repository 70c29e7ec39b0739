"""Brings packages from the registries this machine is set up for: `Source`, `catalogue`, `Fetcher`.

Owns the calls of pip, npm and apt-get, each with a time limit, and the folder of downloaded packages: one that is
there already is not fetched again. Must not open packages (`extraction`) or name an address: the clients know theirs.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CATALOGUE = Path(__file__).with_name("corpus_sources.toml")
STANDARD_LIBRARY, PYPI, NPM, DEBIAN, DEBIAN_BINARY = "standard_library", "pypi", "npm", "debian", "debian_binary"

_REGISTRIES = (STANDARD_LIBRARY, PYPI, NPM, DEBIAN, DEBIAN_BINARY)
_TIMEOUT_S = 240.0
_APT_FILES = ("sources.list", "sources.list.d/debian.sources", "sources.list.d/ubuntu.sources")

Runner = Callable[[Sequence[str], Path, float], "subprocess.CompletedProcess[str]"]


class FetchError(Exception):
    """A package cannot be had; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Source:
    """A package and the languages it is read for."""

    registry: str
    package: str
    languages: frozenset[str]

    @property
    def project(self) -> str:
        """What the split goes by: the same library has one name in all registries."""
        name = self.package.rsplit("/", 1)[-1].lower().replace("_", "-")
        return re.sub(r"^(librust|rust|ruby|php|lua|golang-github|golang-golang|golang|node)-|-java$|-dev$", "", name)


def catalogue(path: Path = CATALOGUE, languages: Collection[str] = ()) -> tuple[Source, ...]:
    """The sources listed in a TOML file: registry → language → packages. All languages when none are named.

    Raises ValueError for a file of another form and for a language the catalogue does not have.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise ValueError(f"the catalogue {path} cannot be read: {fault}") from fault
    if unknown := sorted(set(tables) - set(_REGISTRIES)):
        raise ValueError(f"{path}: unknown registry {', '.join(unknown)}; it may be one of {', '.join(_REGISTRIES)}")
    listed: dict[tuple[str, str], set[str]] = {}
    for registry, packages_of in tables.items():
        for language, packages in packages_of.items():
            for package in packages:
                listed.setdefault((registry, package), set()).add(language)
    known = sorted(set().union(*listed.values()))
    if missing := sorted(set(languages) - set(known)):
        raise ValueError(f"no source for {', '.join(missing)}: the catalogue has {', '.join(known)}")
    wanted = set(languages or known)
    chosen = ((registry, package, frozenset(spoken & wanted)) for (registry, package), spoken in listed.items())
    return tuple(Source(*parts) for parts in chosen if parts[2])


def run_command(command: Sequence[str], folder: Path, timeout_s: float) -> subprocess.CompletedProcess[str]:
    """Run without a shell and without input. Raises FetchError when it is missing or too slow."""
    try:
        return subprocess.run(
            command,
            cwd=folder,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as fault:
        raise FetchError(f"{command[0]} is not installed") from fault
    except subprocess.TimeoutExpired as fault:
        raise FetchError(f"{command[0]} did not finish within {timeout_s:.0f} s") from fault


class Fetcher:
    """Keeps packages below `folder`, one folder each."""

    def __init__(self, folder: Path, run: Runner = run_command, apt_settings: Path = Path("/etc/apt")) -> None:
        self._folder = folder.resolve()
        self._run = run
        self._apt_settings = apt_settings

    def fetch(self, source: Source) -> tuple[Path, ...]:
        """The archives of the package, or the folder of the standard library. Raises FetchError."""
        if source.registry == STANDARD_LIBRARY:
            return (Path(sysconfig.get_paths()["stdlib"]),)
        target = self._folder / source.registry / source.package.replace("/", "_").replace("@", "")
        if found := _archives(target):
            return found
        # Half a download must not be taken for a package next time: only what came whole gets the final name.
        part = target.with_name(f"{target.name}.part")
        for old in (part, target):
            shutil.rmtree(old, ignore_errors=True)
        part.mkdir(parents=True)
        done = self._run(self._command(source), part, _TIMEOUT_S)
        if done.returncode != 0 or not _archives(part):
            raise FetchError(_last_line(done.stderr) or _last_line(done.stdout) or f"exit status {done.returncode}")
        part.rename(target)
        return _archives(target)

    def _command(self, source: Source) -> Sequence[str]:
        if source.registry == PYPI:
            only = ("--no-deps", "--only-binary", ":all:", "--quiet", "--disable-pip-version-check")
            return (sys.executable, "-m", "pip", "download", *only, source.package)
        if source.registry == NPM:
            return ("npm", "pack", "--ignore-scripts", "--silent", source.package)
        if source.registry == DEBIAN_BINARY:
            return ("apt-get", "--quiet", "-o", "APT::Sandbox::User=root", "download", source.package)
        return ("apt-get", *self._apt_options, "--quiet", "source", "--download-only", source.package)

    @cached_property
    def _apt_options(self) -> Sequence[str]:
        """Options that make apt-get know source packages, with lists of its own beside the machine's.

        Made once; the machine's settings name the registries, and nothing of the machine is changed.
        """
        own = self._folder / "apt"
        (own / "parts").mkdir(parents=True, exist_ok=True)
        (own / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        named = [self._apt_settings / name for name in _APT_FILES]
        for path in filter(Path.is_file, named):
            text = re.sub(r"^(Types:).*$", r"\1 deb-src", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            text = re.sub(r"^deb(?=\s)", "deb-src", text, flags=re.MULTILINE)
            (own / "parts" / path.name.replace("sources.list", "main.list")).write_text(text, encoding="utf-8")
        options = {
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": str(own / "parts"),
            "Dir::State::Lists": str(own / "lists"),
            "Dir::Cache": str(own / "cache"),
            "APT::Sandbox::User": "root",
        }
        flags = tuple(part for name, value in options.items() for part in ("-o", f"{name}={value}"))
        done = self._run(("apt-get", *flags, "--quiet", "update"), own, _TIMEOUT_S)
        if done.returncode != 0:
            raise FetchError(f"the list of source packages: {_last_line(done.stderr)}")
        return flags


def _archives(folder: Path) -> tuple[Path, ...]:
    """What was downloaded, without signatures and half files."""
    if not folder.is_dir():
        return ()
    names = (".whl", ".deb", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2")
    return tuple(sorted(path for path in folder.iterdir() if path.name.endswith(names)))


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return re.sub(r"https?://\S+", "the registry", lines[-1])[:200] if lines else ""
