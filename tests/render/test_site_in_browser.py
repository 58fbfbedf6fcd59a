"""The documentation as a site, in Chromium where that is installed: nothing complains, all is read at every width."""

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.render.test_page_in_browser import CHROMIUM, Browser
from tests.test_docs import DOCS, loaded_module

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None or not DOCS.exists(), reason="Chromium or the documentation is not there"),
    pytest.mark.campaign,
]


class Silent(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and logs nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium = Browser(tmp_path_factory.mktemp("browser"))
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The pages of the site, path -> address."""
    pytest.importorskip("mkdocs")
    site: Path = tmp_path_factory.mktemp("site")
    loaded_module("build_site").build(site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        names = [str(path.relative_to(site)) for path in sorted(site.rglob("*.html"))]
        yield {name: f"http://127.0.0.1:{server.server_port}/{name}" for name in names}
        server.shutdown()


@pytest.mark.parametrize("width", [1280, 390])
def test_every_page_fits_and_complains_of_nothing(browser: Browser, pages: dict[str, str], width: int) -> None:
    cut = "[...document.querySelectorAll('pre > code')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    broken = "[...document.querySelectorAll('table code')].filter(e => e.getClientRects().length > 1).length"
    assert len(pages) > 40
    for name, address in pages.items():
        browser.open(address, width)
        assert browser.value("document.documentElement.scrollWidth") <= width, name
        assert browser.value(cut) == 0, name
        assert browser.value(broken) == 0, name
        assert browser.said() == [], name


def test_the_button_that_copies_covers_no_code(browser: Browser, pages: dict[str, str]) -> None:
    browser.open(pages["index.html"], 1280)
    overlap = """[...document.querySelectorAll('pre')].filter(block => {
        const button = block.parentElement.querySelector('button'), range = document.createRange()
        range.selectNodeContents(block.querySelector('code'))
        return button && Math.max(...[...range.getClientRects()].map(line => line.right))
            > button.getBoundingClientRect().left
    }).length"""
    assert browser.value("document.querySelectorAll('pre').length") > 5
    assert browser.value(overlap) == 0


def test_the_site_is_dark_where_the_system_is(browser: Browser, pages: dict[str, str]) -> None:
    light = []
    for dark in (False, True, False):
        browser.open(pages["index.html"], 390, dark=dark)
        colour = browser.value("getComputedStyle(document.body).backgroundColor")
        light.append(sum(map(int, colour.removeprefix("rgb(").removesuffix(")").split(","))) > 400)
    assert light == [True, False, True]


def test_keys_lead_through_a_page(browser: Browser, pages: dict[str, str]) -> None:
    browser.open(pages["index.html"], 1280)
    visited = set()
    for _ in range(12):
        for kind in ("keyDown", "keyUp"):
            browser.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        visited.add(browser.value("document.activeElement.outerHTML.slice(0, 200)"))
    assert len(visited) >= 10
    assert any('href="docs/' in element for element in visited)
