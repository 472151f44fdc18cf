"""A real headless Chromium, driven by its DevTools protocol over two pipes.

`python -m tests.reports.browser` installs one where there is none: Debian's package
chromium-headless-shell. GPU_WEBHOOK_BROWSER names another; any Chromium or Chrome does.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests import debian

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
)
_PACKAGE = "chromium-headless-shell"
_FLAGS = (
    "--headless",
    "--no-sandbox",  # the page is ours; root, as in containers, gets no sandbox
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
_PATIENCE = 20  # seconds; a busy machine tells a page of a new scheme late
_MISSING = "no Chromium: run `make browser`, or name one in GPU_WEBHOOK_BROWSER"


def find() -> str | None:
    """The program, if there is one."""
    named = os.environ.get("GPU_WEBHOOK_BROWSER")
    return named or next((path for path in map(shutil.which, _NAMES) if path), None)


def install() -> None:
    """Install Debian's package."""
    if find():
        return
    debian.install([_PACKAGE])


class Browser:
    """One process; each page has a target of its own."""

    def __init__(self, profile: Path) -> None:
        program = find()
        assert program, _MISSING
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        # DevTools reads file descriptor 3 and writes 4.
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "browser", program, *_FLAGS, f"--user-data-dir={profile}"],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._number = 0
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Send a command and give its result; events that come meanwhile are kept."""
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        left = memoryview(json.dumps(message).encode() + b"\0")
        while left:
            left = left[os.write(self._to, left) :]
        while True:
            answer = self._read()
            if answer.get("id") != number:
                self.events.append(answer)
                continue
            assert "error" not in answer, (method, answer["error"])
            result: dict[str, Any] = answer["result"]
            return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self._from, 1 << 20)
            assert more, "the browser has gone"
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        read: dict[str, Any] = json.loads(message)
        return read


class Page:
    """One page, with all it asked the network for and all it complained about."""

    def __init__(self, browser: Browser, *, dark: bool = False, size: tuple[int, int]) -> None:
        self._browser = browser
        context = browser.call("Target.createBrowserContext")["browserContextId"]
        made = browser.call("Target.createTarget", url="about:blank", browserContextId=context)
        self.target = made["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        width, height = size
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.prefer(dark=dark)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def prefer(self, *, dark: bool, motion: bool = True) -> None:
        """What the system says of light and dark, and of animations."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        moving = {"name": "prefers-reduced-motion", "value": "" if motion else "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, moving])
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")

    def open(self, url: str) -> None:
        """Go there and wait until everything is loaded."""
        self.call("Page.navigate", url=url)
        self.run(
            "new Promise(done => document.readyState === 'complete' ? done()"
            " : addEventListener('load', () => done())).then(() => new Promise(setTimeout))"
        )

    def run(self, script: str) -> Any:
        """Give what the expression gives, as plain data."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def becomes(self, script: str, wanted: Any) -> None:
        """Wait until the expression gives what is wanted, for what the browser does in its time."""
        until = time.monotonic() + _PATIENCE
        while (seen := self.run(script)) != wanted:
            assert time.monotonic() < until, f"{script}: {seen!r}, not {wanted!r}"
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press and let go a key, as a person does."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = {"Enter": 13, "Escape": 27, "Tab": 9}.get(key, 0)
        more = {"text": text} if text else {}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, words: str) -> None:
        """Type where the focus is."""
        for key in words:
            self.press(key)

    def click(self, selector: str) -> None:
        """Click in the middle of the first element that fits; it must be visible there."""
        x, y = self.run(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect();"
            f" return [r.x + r.width / 2, r.y + r.height / 2]; }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, file: Path) -> None:
        """Write what can be seen as a PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    @property
    def requests(self) -> list[str]:
        """All that was asked of the network, the page itself among it."""
        return [each["request"]["url"] for each in self._said("Network.requestWillBeSent")]

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings on the console, what the policy refused, exceptions."""
        said = [
            *self._said("Log.entryAdded"),
            *self._said("Runtime.exceptionThrown"),
            *self._said("Runtime.consoleAPICalled"),
        ]
        return [json.dumps(each) for each in said]

    def _said(self, method: str) -> list[dict[str, Any]]:
        self.run("0")  # events come before the answer to what is asked after them
        return [
            each["params"]
            for each in self._browser.events
            if each["method"] == method and each.get("sessionId") == self._session
        ]


@contextmanager
def started() -> Iterator[Browser]:
    """Start a browser with a new profile."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        Browser(Path(profile)) as browser,
    ):
        yield browser


if __name__ == "__main__":
    install()
    sys.exit(None if find() else _MISSING)
