"""Headless Chromium over its DevTools protocol: opens a page, evaluates in it, and hears all that it asks and says."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.support import need

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
START_S = 60.0
WAIT_S = 30.0


class Tab:
    """One page. `requests` are the addresses that it asked for, `said` is what it wrote to the console."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._ids = itertools.count(1)
        self.requests: list[str] = []
        self.said: list[str] = []
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command of the protocol."""
        number = next(self._ids)
        self._connection.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._connection.recv(timeout=WAIT_S))
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])
            self._hear(message)

    def open(self, url: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Opens an address in a window of this size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Waits until an expression is true."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            if self.value(expression):
                return
            time.sleep(0.1)
        raise AssertionError(f"not true within {WAIT_S:g} s: {expression}; the page says {self.text()!r}")

    def text(self) -> str:
        """The text that is seen."""
        return str(self.value("document.body.innerText"))

    def picture(self, path: Path) -> None:
        """A picture of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _hear(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message["method"]:
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Runtime.consoleAPICalled":
                self.said.append(" ".join(str(one.get("value", "")) for one in parameters["args"]))
            case "Runtime.exceptionThrown":
                self.said.append(str(parameters["exceptionDetails"]))
            case "Log.entryAdded":
                self.said.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")


@contextmanager
def chromium() -> Iterator[Tab]:
    """A browser with one tab, in a profile of its own. Skips where there is no Chromium."""
    program = need.tool("chromium")
    profile = Path(tempfile.mkdtemp())
    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with connect(_address(profile, process), max_size=None, ping_interval=None) as connection:
            yield Tab(connection)
    finally:
        process.terminate()
        process.wait(WAIT_S)
        shutil.rmtree(profile, ignore_errors=True)


def _address(profile: Path, process: subprocess.Popen[bytes]) -> str:
    """The web socket of the first tab; Chromium writes its port into the profile."""
    from http.client import HTTPConnection

    end = time.monotonic() + START_S
    while time.monotonic() < end:
        assert process.poll() is None, f"Chromium ended with {process.returncode}"
        file = profile / "DevToolsActivePort"
        if file.exists() and (lines := file.read_text().split()):
            client = HTTPConnection("127.0.0.1", int(lines[0]), timeout=WAIT_S)
            client.request("GET", "/json/list")
            tabs = json.loads(client.getresponse().read())
            client.close()
            pages = [tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"]
            if pages:
                return str(pages[0])
        time.sleep(0.1)
    raise AssertionError("Chromium did not open its DevTools port")
