"""Headless Chromium, driven over a pipe by its DevTools protocol: a page loaded from a file, keys, a look at its state.

No driver program and no port: the browser reads commands from descriptor 3 and writes answers to descriptor 4, JSON
messages ended by a zero byte (`--remote-debugging-pipe`).
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE_S = 60.0
REQUIRED = "LACUNA_CI"
"""Set by the gate: then a missing browser is a failure, not a reason to skip."""
_LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
KEYS = {" ": (" ", 32), "ArrowLeft": ("", 37), "ArrowRight": ("", 39), "Home": ("", 36), "End": ("", 35)}


def browser_path() -> str:
    """Where Chromium is. Fails in the gate and skips elsewhere when there is none."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        message = "no Chromium on the PATH; `apt-get install chromium` brings it"
        if os.environ.get(REQUIRED):
            pytest.fail(message)
        pytest.skip(message)
    return found


class Page:
    """One open page. `requests` are the addresses it asked for, `faults` what it said in vain: errors, refusals."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands = commands
        self._answers = answers
        self._buffer = b""
        self._number = 0
        self._session = ""
        self._loaded = False
        self.requests: list[str] = []
        self.faults: list[str] = []

    def open(self, address: str, *, dark: bool = False) -> None:
        """Attach to a tab, listen, load the address, wait until it has loaded."""
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])
        self._call("Emulation.setDeviceMetricsOverride", width=1300, height=900, deviceScaleFactor=1, mobile=False)
        self._loaded = False
        self._call("Page.navigate", url=address)
        while not self._loaded:
            self._take(self._read())

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page. Raises AssertionError when it throws."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press and let go of a key, as a person would."""
        text, code = KEYS.get(key, (key, ord(key.upper()[0])))
        pressed = {"key": key, "windowsVirtualKeyCode": code, "code": key}
        self._call("Input.dispatchKeyEvent", type="keyDown", text=text, **pressed)
        self._call("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def point(self, selector: str) -> None:
        """Move the mouse over the middle of an element, scrolled into view."""
        box = self.ask(
            f"(() => {{ const found = document.querySelector({json.dumps(selector)}); "
            "found.scrollIntoView({block: 'center'}); const box = found.getBoundingClientRect(); "
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        self._call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])

    def wait_for(self, expression: str) -> None:
        """Until the expression is true in the page. Raises AssertionError after a while."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.ask(expression):
            assert time.monotonic() < deadline, f"the page never came to {expression}"
            time.sleep(0.02)

    def accessibility(self) -> list[tuple[str, str]]:
        """(role, name) of what a screen reader is told."""
        nodes = self._call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]

    def screenshot(self, path: Path) -> None:
        """The whole page as a PNG, for a person to look at."""
        taken = self._call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._take(answer)

    def _take(self, event: dict[str, Any]) -> None:
        """Note what the browser tells without being asked."""
        told = event.get("params", {})
        match event.get("method"):
            case "Page.loadEventFired":
                self._loaded = True
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
            case "Runtime.exceptionThrown":
                self.faults.append(json.dumps(told["exceptionDetails"]))
            case "Log.entryAdded":
                self.faults.append(told["entry"]["text"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE_S)
            assert ready, "the browser does not answer"
            data = os.read(self._answers, 1 << 20)
            assert data, "the browser is gone"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        read: dict[str, Any] = json.loads(message)
        return read


@contextmanager
def browser(profile: Path) -> Iterator[Page]:
    """A browser of this test's own, with a new profile in a folder; gone afterwards."""
    to_browser, commands = map(_out_of_the_way, os.pipe())
    answers, from_browser = map(_out_of_the_way, os.pipe())
    options = [
        *("--headless", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run", "--disable-gpu"),
        # Root may not use the sandbox, and the page is one of ours; containers have a small /dev/shm.
        *("--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"),
    ]
    command = [sys.executable, "-c", _LAUNCH, str(to_browser), str(from_browser), browser_path(), *options]
    process = subprocess.Popen(
        command, pass_fds=(to_browser, from_browser), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Page(commands, answers)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        os.close(commands)
        os.close(answers)


def _out_of_the_way(descriptor: int) -> int:
    """The same pipe under a number that is not 3 or 4, which the browser's ends take."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved
