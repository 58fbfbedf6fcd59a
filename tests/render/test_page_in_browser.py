"""The page in Chromium, where that is installed: it loads nothing, nothing complains, and it is as wide as a phone."""

import base64
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dpcalc.engine.ask import ask
from dpcalc.render import Asked
from dpcalc.render.page import render_html
from dpcalc.report import Report
from tests.render.test_check_reports import ALL, EPSILON, HELD, case
from tests.render.test_page import QUESTION, RUN

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
PATIENCE = 60.0  # seconds without an answer, after which the browser hangs


class Browser:
    """Chromium without a window, spoken to by pipes: JSON messages that end in a zero byte (its DevTools protocol)."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        (theirs, self._out), (self._in, replies) = os.pipe(), os.pipe()
        options = f"--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir={folder}"
        line = f'exec "$0" {options} --remote-debugging-pipe about:blank 3<&{theirs} 4>&{replies}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, CHROMIUM], pass_fds=(theirs, replies), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        os.close(replies)
        self._rest, self._number, self.events = b"", 0, list[dict[str, Any]]()
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = ""
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    _session = ""

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result; events that come before are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (reply := self._next()).get("id") != self._number:
            self.events.append(reply)
        assert "error" not in reply, reply
        return dict(reply["result"])

    def wait(self, event: str) -> None:
        """Wait for an event that was not there when it was last waited for."""
        while not any(each.get("method") == event for each in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], PATIENCE)
            assert ready, "the browser hangs"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser ended"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def value(self, expression: str) -> Any:
        """Return what an expression of JavaScript is."""
        return self.ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def open(self, page: Path | str, width: int, *, dark: bool = False, media: str = "screen") -> None:
        """Show a page, a file or an address, at a width."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[feature])
        self.ask("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        self.wait("Page.loadEventFired")

    def said(self) -> list[dict[str, Any]]:
        """Return what the page complained of, or printed."""
        said = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [each for each in self.events if each.get("method") in said]

    def close(self) -> None:
        """End the browser."""
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


LONG = "x" * 5000
HOSTILE = case(
    EPSILON, name="<script>alert(1)</script>" + LONG, file=LONG, gates=[HELD._replace(text=LONG)], warnings=[LONG]
)
SEVERAL = Report("check", (*ALL.cases, HOSTILE))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    reports = {"check": SEVERAL, "query": Report("rdp", (ask("rdp", RUN, QUESTION),))}
    for name, report in reports.items():
        (folder / f"{name}.html").write_text(render_html(report, Asked(typed=("rdp", LONG))), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in reports}


OPEN = "document.querySelectorAll('details').forEach(each => { each.open = true })"


@pytest.mark.parametrize("name", ["check", "query"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_fits_and_loads_nothing(browser: Browser, pages: dict[str, Path], name: str, width: int) -> None:
    browser.open(pages[name], width)
    browser.value(OPEN)
    picture = base64.b64decode(browser.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"])
    assert picture.startswith(b"\x89PNG")
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value("document.compatMode") == "CSS1Compat"
    assert browser.value("document.querySelectorAll('script').length") == 0
    loaded = [e["params"]["request"]["url"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    assert loaded == [pages[name].as_uri()]
    assert browser.said() == []


def test_the_style_is_used_in_both_themes(browser: Browser, pages: dict[str, Path]) -> None:
    colours = []
    for dark in (False, True):
        browser.open(pages["query"], 1280, dark=dark)
        colours.append(browser.value("getComputedStyle(document.body).backgroundColor"))
    assert colours == ["rgb(246, 247, 249)", "rgb(16, 21, 27)"]


def test_folded_cases_are_printed(browser: Browser, pages: dict[str, Path]) -> None:
    height = "document.querySelector('details:not([open])').getBoundingClientRect().height"
    browser.open(pages["check"], 1280)
    folded = browser.value(height)
    browser.open(pages["check"], 1280, media="print")
    assert browser.value(height) > folded + 100
    pages_printed = base64.b64decode(browser.ask("Page.printToPDF")["data"])
    assert pages_printed.startswith(b"%PDF")
