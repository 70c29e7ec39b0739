"""The page of `lacuna trace` in headless Chromium: it plays, by mouse and keyboard, and lets no text become markup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.trace.page import render
from tests.fakes.browser import REQUIRED, Page, browser, browser_path
from tests.fakes.traces import HOSTILE, recording

STATUS = "document.getElementById('status').textContent"
CANVAS = "document.getElementById('canvas').textContent"
TOKEN = "document.getElementById('token').textContent"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture
def address(tmp_path: Path) -> str:
    path = tmp_path / "page.html"
    path.write_text(render(recording()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(tmp_path: Path, address: str) -> Iterator[Page]:
    with browser(tmp_path / "profile") as opened:
        opened.open(address)
        yield opened
        assert opened.faults == []
        assert opened.requests == [address], "the page asked for something"
        assert opened.ask("document.title").startswith("a</script>")


def states(page: Page) -> list[str]:
    return list(page.ask("[...document.querySelectorAll('#canvas [data-number]')].map((one) => one.classList[1])"))


def test_it_plays_to_the_end_by_itself(page: Page) -> None:
    assert page.ask(STATUS) == "Step 1 of 3: 1 settled (1 new), 2 open, mean entropy 1.25 nats."
    page.ask("document.getElementById('speed').value = '50'")
    page.press(" ")
    page.wait_for(
        f"{STATUS}.startsWith('Step 3 of 3') && !document.getElementById('play').textContent.includes('Pause')"
    )
    assert states(page) == ["settled", "settled", "locked", "changing", "new"]
    pressed = "document.getElementById('play').getAttribute('aria-pressed')"
    page.ask("document.getElementById('speed').value = '1000'")
    page.press(" ")
    assert page.ask(pressed) == "true"
    page.press(" ")
    assert page.ask(pressed) == "false"
    assert not page.ask(STATUS).startswith("Step 3 of 3"), "playing at the end begins again"


def test_keys_go_where_they_say(page: Page) -> None:
    for key, step in (
        ("ArrowRight", 2),
        ("ArrowRight", 3),
        ("ArrowRight", 3),
        ("ArrowLeft", 2),
        ("Home", 1),
        ("End", 3),
    ):
        page.press(key)
        assert page.ask(STATUS).startswith(f"Step {step} of 3"), key
    assert page.ask("document.getElementById('step').value") == "3"
    assert page.ask("location.hash") == "#gap=1&step=3"
    page.ask("document.getElementById('step').focus()")
    page.press("ArrowLeft")
    assert page.ask(STATUS).startswith("Step 2 of 3"), "the slider steps once by its own key"


def test_a_token_under_the_pointer_tells_about_itself(page: Page) -> None:
    page.point("#canvas [data-number='0']")
    page.wait_for(f"{TOKEN}.includes('Probability 97 %')")
    assert '"pass"' in page.ask(TOKEN)
    page.press("ArrowRight")
    page.press(".")
    assert "guessed and not kept" in page.ask(TOKEN)
    assert "Named by masks" in page.ask(TOKEN)
    page.press("n")
    shown = page.ask("getComputedStyle(document.querySelector('#canvas [data-number=\"0\"]'), '::after').content")
    assert shown == '"97 %"'


def test_text_is_text(page: Page) -> None:
    page.press("ArrowRight")
    assert HOSTILE in page.ask(CANVAS)
    assert page.ask(CANVAS).count(HOSTILE) == 2
    assert page.ask("document.getElementById('result').textContent") == HOSTILE
    assert page.ask("document.querySelectorAll('b, #canvas script').length") == 0


def test_states_differ_without_colour(page: Page) -> None:
    page.press("ArrowRight")
    looks = page.ask(
        "[...document.querySelectorAll('#canvas [data-number]')].map((one) => { const look = getComputedStyle(one); "
        "return [look.fontWeight, look.fontStyle, look.textDecorationLine, look.textDecorationStyle, look.outlineStyle]"
        ".join(); })"
    )
    settled, refused, new, noise = looks
    assert len({settled, refused, new, noise}) == 4
    assert "line-through" in refused
    assert "wavy" in new, "a token below 50 % is underlined so"


def test_screen_readers_are_told(page: Page) -> None:
    told = page.accessibility()
    for role, name in (
        ("slider", "Step"),
        ("button", "Step forward"),
        ("button", "First step"),
        ("checkbox", "Numbers"),
    ):
        assert (role, name) in told
    assert ("image", "Mean entropy over 3 steps: first 1.25, last 0.10, highest 1.25 nats") in told
    assert ("status", "") in told
    assert not [one for one in told if one[0] in ("button", "slider", "combobox", "checkbox") and not one[1]]


def test_gaps_can_be_chosen_and_one_without_steps_is_no_trouble(page: Page) -> None:
    choice = "document.getElementById('gap')"
    page.ask(f"{choice}.value = '1'; {choice}.dispatchEvent(new Event('change'))")
    assert page.ask(STATUS) == "The engine took no step here."
    assert page.ask(CANVAS) == "xy"
    assert "nothing" in page.ask("document.getElementById('facts').textContent")
    page.press("ArrowRight")
    page.press(" ")
    page.press(".")
    page.wait_for("!document.getElementById('play').textContent.includes('Pause')")


def test_an_address_names_a_step_and_darkness_is_followed(page: Page, address: str) -> None:
    light = page.ask(BACKGROUND)
    page.requests.clear()
    page.open(f"{address}#gap=1&step=2", dark=True)
    assert page.ask(STATUS).startswith("Step 2 of 3")
    assert page.ask(BACKGROUND) != light
    page.open(f"{address}#gap=x&step=-4")
    assert page.ask(STATUS).startswith("Step 1 of 3")
    page.requests[:] = page.requests[:1]


def test_a_missing_browser_is_a_failure_in_the_gate_and_a_reason_to_skip_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="apt-get install chromium"):
        browser_path()
    monkeypatch.delenv(REQUIRED)
    with pytest.raises(pytest.skip.Exception, match="no Chromium"):
        browser_path()
