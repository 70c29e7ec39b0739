"""Which engine makes way for a newer one, and how."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lsp_server.engine_connection import EngineGone
from lsp_server.engine_upgrade import MOST_RETIRED, Upgrade, parts
from tests.fakes.fake_engine import FACTS


@pytest.mark.parametrize(
    ("found", "ours", "due"),
    [
        ("0.1.0", "0.2.0", True),
        ("0.9.9", "0.10.0", True),
        ("0.2.0", "0.2.0", False),
        ("0.2", "0.2.0", False),
        ("0.2.0", "0.2", False),
        ("0.3.0", "0.2.0", False),
        ("1.0.0rc1", "1.0.0", False),
        ("", "0.2.0", False),
        ("unknown", "0.2.0", False),
    ],
)
def test_only_an_older_engine_makes_way(found: str, ours: str, due: bool) -> None:
    assert Upgrade(ours).is_due(replace(FACTS, engine_version=found)) is due


def test_versions_compare_by_their_numbers() -> None:
    assert parts("0.10.0") > parts("0.9.12") > parts("0.9") == parts("0.9.0") > parts("dev") == ()


class _Gone:
    """A connection whose engine has left."""

    async def status(self) -> None:
        raise EngineGone()

    shutdown = status


@pytest.mark.asyncio
async def test_replacing_in_vain_is_given_up() -> None:
    upgrade = Upgrade("9.0")
    for _ in range(MOST_RETIRED):
        assert upgrade.is_due(FACTS)
        await upgrade.retire(_Gone())  # type: ignore[arg-type]
    assert not upgrade.is_due(FACTS)
