"""The clients are called with time limits and read for what they say; nothing is fetched twice."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.training.fetching import Fetcher, FetchError, Source, catalogue, run_command

WHEEL = Source("pypi", "demo", frozenset({"python"}))


class Client:
    """Stands for pip, npm and apt-get: leaves files where it is run and remembers how."""

    def __init__(self, leaves: Sequence[str] = (), code: int = 0, says: str = "") -> None:
        self.leaves, self.code, self.says = leaves, code, says
        self.commands: list[Sequence[str]] = []

    def __call__(self, command: Sequence[str], folder: Path, timeout_s: float) -> subprocess.CompletedProcess[str]:
        assert timeout_s > 0
        self.commands.append(command)
        for name in self.leaves:
            (folder / name).write_text("", encoding="utf-8")
        return subprocess.CompletedProcess(command, self.code, "", self.says)


def test_a_package_is_fetched_once(tmp_path: Path) -> None:
    client = Client(["demo-1.0.whl", "demo-1.0.whl.asc"])
    fetcher = Fetcher(tmp_path, client)
    assert [path.name for path in fetcher.fetch(WHEEL)] == ["demo-1.0.whl"]
    assert fetcher.fetch(WHEEL) == Fetcher(tmp_path, client).fetch(WHEEL)
    assert len(client.commands) == 1
    assert client.commands[0][1:4] == ("-m", "pip", "download")


def test_half_a_download_is_not_a_package(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="connection lost"):
        Fetcher(tmp_path, Client(["half.whl"], 1, "connection lost")).fetch(WHEEL)
    found = Fetcher(tmp_path, Client(["demo-1.0.whl"])).fetch(WHEEL)
    assert [path.name for path in found] == ["demo-1.0.whl"]


def test_a_scoped_name_stays_in_its_folder(tmp_path: Path) -> None:
    client = Client(["query-core-5.tgz"])
    found = Fetcher(tmp_path, client).fetch(Source("npm", "@tanstack/query-core", frozenset({"typescript"})))
    assert found[0].parent == tmp_path / "npm" / "tanstack_query-core"
    assert "--ignore-scripts" in client.commands[0]


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (Client([], 1, "ERROR: first\nERROR: no such package\n"), "no such package"),
        (Client([], 1, "GET https://registry.test/demo: 404"), "GET the registry 404"),
        (Client([], 3), "exit status 3"),
        (Client(["readme.txt"]), "exit status 0"),
    ],
)
def test_what_cannot_be_had_says_why(tmp_path: Path, client: Client, message: str) -> None:
    with pytest.raises(FetchError, match=message):
        Fetcher(tmp_path, client).fetch(WHEEL)


def test_sources_of_debian_are_listed_apart_from_the_machines_own(tmp_path: Path) -> None:
    settings = tmp_path / "etc"
    (settings / "sources.list.d").mkdir(parents=True)
    (settings / "sources.list").write_text("deb http://debian.test/debian stable main\n", encoding="utf-8")
    (settings / "sources.list.d" / "debian.sources").write_text("Types: deb\nURIs: x\n", encoding="utf-8")
    (settings / "sources.list.d" / "other.sources").write_text("Types: deb\nURIs: y\n", encoding="utf-8")
    client = Client(["zlib_1.orig.tar.gz"])
    fetcher = Fetcher(tmp_path / "packages", client, settings)
    fetcher.fetch(Source("debian", "zlib", frozenset({"c"})))
    fetcher.fetch(Source("debian", "lz4", frozenset({"c"})))
    assert [command[-1] for command in client.commands] == ["update", "zlib", "lz4"]
    parts = tmp_path / "packages" / "apt" / "parts"
    listed = {path.name: path.read_text(encoding="utf-8") for path in parts.iterdir()}
    assert listed == {
        "main.list": "deb-src http://debian.test/debian stable main\n",
        "debian.sources": "Types: deb-src\nURIs: x\n",
    }


def test_without_the_list_of_sources_nothing_is_asked(tmp_path: Path) -> None:
    fetcher = Fetcher(tmp_path, Client([], 100, "E: no network"), tmp_path)
    with pytest.raises(FetchError, match="the list of source packages: E: no network"):
        fetcher.fetch(Source("debian", "zlib", frozenset({"c"})))


def test_a_client_that_is_missing_slow_or_silent_is_named(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="no-such-client-here is not installed"):
        run_command(["no-such-client-here"], tmp_path, 5)
    with pytest.raises(FetchError, match=r"sh did not finish within 0 s"):
        run_command(["sh", "-c", "read forever < /dev/zero"], tmp_path, 0.2)
    assert run_command(["cat"], tmp_path, 5).stdout == ""


def test_the_catalogue_covers_at_least_eight_languages() -> None:
    sources = catalogue()
    languages = set().union(*(source.languages for source in sources))
    assert {"python", "javascript", "typescript", "go", "rust", "java", "c", "cpp"} <= languages
    assert len({(source.registry, source.package) for source in sources}) == len(sources)


def test_only_the_languages_asked_for_are_fetched() -> None:
    chosen = catalogue(languages=["go", "lua"])
    assert chosen
    assert set().union(*(source.languages for source in chosen)) == {"go", "lua"}
    with pytest.raises(ValueError, match="no source for cobol: the catalogue has c, cpp"):
        catalogue(languages=["cobol", "go"])


@pytest.mark.parametrize("text", ["[pypi]\npython = [", "[conda]\npython = ['a']\n"])
def test_a_catalogue_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sources.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"sources\.toml"):
        catalogue(path)


def test_one_library_is_one_project_in_every_registry() -> None:
    names = ["librust-serde-json-dev", "rust-serde-json", "serde_json"]
    assert {Source("debian", name, frozenset()).project for name in names} == {"serde-json"}
    assert Source("npm", "@tanstack/query-core", frozenset()).project == "query-core"
