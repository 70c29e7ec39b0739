"""The configurations that the README shows start the server, and set what it knows."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest

from lsp_server.settings import Settings, parse
from tests.editors.configurations import COMMAND, shown


def helix() -> tuple[list[str], Any]:
    server = tomllib.loads(shown("Helix", "toml"))["language-server"]["lacuna"]
    return [server["command"], *server["args"]], server["config"]


def sublime() -> tuple[list[str], Any]:
    client = json.loads(shown("Sublime Text", "json"))["clients"]["lacuna"]
    return client["command"], client["initializationOptions"]


def zed() -> tuple[list[str], Any]:
    server = json.loads(shown("Zed", "json"))["lsp"]["pylsp"]
    return [server["binary"]["path"], *server["binary"]["arguments"]], server["initialization_options"]


@pytest.mark.parametrize("configuration", [helix, sublime, zed])
def test_a_configuration_starts_the_server_and_sets_what_it_knows(configuration: Any) -> None:
    command, options = configuration()
    assert command == [COMMAND, "lsp"]
    settings, problems = parse(options)
    assert problems == []
    assert settings != Settings()


def test_what_the_readme_does_not_show_is_missed() -> None:
    with pytest.raises(ValueError, match="shows no toml"):
        shown("Zed", "toml")
