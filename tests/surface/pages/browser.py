"""Chromium, driven by its own protocol: what it shows, and what it complains about."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.waiting import wait_until


@dataclass
class Browser:
    """One tab. ``complaints`` are errors on the console, violations of the policy, and exceptions."""

    socket: ClientConnection
    complaints: list[str] = field(default_factory=list)
    _number: int = 0
    _loaded: bool = False

    def tell(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        self.socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv(timeout=60))
            if message.get("id") == self._number:
                assert "error" not in message, message
                return message["result"]
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        method, said = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{said['entry'].get('url', '')}: {said['entry']['text']}")
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(said["exceptionDetails"])[:1000])
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "assert"):
            self.complaints.append(json.dumps(said["args"])[:1000])

    def open(self, url: str) -> None:
        """Waits until it is loaded, with the parts that come after it."""
        self._loaded = False
        assert not self.tell("Page.navigate", url=url).get("errorText")
        self.settle(lambda: self._loaded)

    def settle(self, condition: Any) -> None:
        wait_until(lambda: self.see("document.readyState === 'complete'") and condition())
        wait_until(lambda: not self.see("document.querySelectorAll('.htmx-request, [aria-busy=true]').length"))

    def see(self, expression: str) -> Any:
        """The value of an expression in the page; of a promise, what it becomes."""
        found = self.tell("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def show_as(self, width: int, height: int, scheme: str) -> None:
        self.tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.tell("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key: str, code: int) -> None:
        text = {"text": "\r"} if key == "Enter" else {}
        self.tell("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, windowsVirtualKeyCode=code, **text)
        self.tell("Input.dispatchKeyEvent", type="keyUp", key=key, code=key, windowsVirtualKeyCode=code)

    def write(self, text: str) -> None:
        self.tell("Input.insertText", text=text)

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.tell("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def browsing(home: Path) -> Iterator[Browser]:
    found = [path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))]
    assert found, "this test needs Chromium: apt-get install chromium"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={home}"]
    command = [found[0], *flags, "--remote-debugging-port=0", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            port_file = home / "DevToolsActivePort"
            wait_until(lambda: port_file.exists() and port_file.read_text().count("\n"))
            port = port_file.read_text().splitlines()[0]

            def tab() -> str:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as answer:
                    tabs = [one for one in json.load(answer) if one["type"] == "page"]
                return str(tabs[0]["webSocketDebuggerUrl"]) if tabs else ""

            with connect(wait_until(tab), max_size=None, compression=None) as socket:
                browser = Browser(socket)
                for domain in ("Page", "Runtime", "Log"):
                    browser.tell(f"{domain}.enable")
                yield browser
        finally:
            process.terminate()
