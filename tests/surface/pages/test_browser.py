"""The pages in a browser: nothing is complained about, everybody can use them, and they do what they should."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from falcon_assets.operations.installation import Installation
from falcon_assets.settings import Settings
from falcon_assets.surface.served import open_served
from tests.operations.opening import OpenAt
from tests.surface.pages.browser import Browser, browsing
from tests.surface.pages.served import serving
from tests.surface.pages.test_pages import LINKS, filled

AXE = """axe.run(document, { resultTypes: ["violations"] }).then((found) => found.violations.map(
  (one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200) + " " + node.failureSummary)]))"""
TABLET, PHONE = (1200, 800), (390, 800)


@pytest.fixture
def installation(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    yield from filled(open_at, write_entities)


@pytest.fixture
def address(installation: Installation, settings: Settings) -> Iterator[str]:
    with open_served() as served, serving(served) as found:
        yield found


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with browsing(tmp_path / "browser") as found:
        yield found


def axe() -> str:
    """The checks of accessibility, which a person without a mouse or without eyes would make."""
    root = subprocess.run(["npm", "root", "--global"], capture_output=True, text=True, check=True).stdout.strip()
    script = Path(root, "axe-core", "axe.min.js")
    assert script.exists(), "install axe-core: npm install --global axe-core"
    return script.read_text()


@pytest.mark.soak
def test_every_page_is_without_complaints_and_accessible(address: str, browser: Browser) -> None:
    script, wrong = axe(), {}
    for link in LINKS:
        for (width, height), scheme in ((TABLET, "light"), (PHONE, "dark")):
            browser.show_as(width, height, scheme)
            browser.open(address + link)
            assert browser.see("window.owned") is None, link
            assert browser.see("document.body.scrollWidth <= window.innerWidth"), (link, width)
            browser.see(f"{script}; 1")
            if found := browser.see(AXE):
                wrong[link, scheme] = found
    assert wrong == {}, "\n".join(map(str, wrong.items()))
    assert browser.complaints == []


@pytest.mark.soak
def test_a_cell_a_form_and_the_keyboard(address: str, browser: Browser) -> None:
    browser.show_as(*TABLET, "light")
    browser.open(f"{address}/falcon/instances?start=2013-01-01T00:00Z&steps=24&name=make")
    box = browser.see(
        "(({x, y, width}) => [x, y, width])(document.querySelector('.cells .SUCCEEDED').getBoundingClientRect())"
    )
    browser.click(box[0] + box[2] / 2, box[1] + 5)  # the second of three hours
    browser.settle(lambda: browser.see("location.pathname") == "/falcon/instance")
    assert browser.see("new URLSearchParams(location.search).get('instance')") == "2013-01-01T01:00Z"
    wait = "document.querySelector('.tree')?.textContent.includes('SUCCEEDED')"
    browser.settle(lambda: browser.see(wait))

    browser.open(f"{address}/falcon/entity/edit")
    browser.see("document.querySelector('textarea').focus()")
    browser.write("nonsense: [ ")
    browser.settle(lambda: browser.see("document.querySelector('#checked').textContent.includes('line ')"))
    assert browser.see("document.activeElement.tagName") == "TEXTAREA"

    browser.open(f"{address}/falcon/")
    browser.press("Tab", 9)
    assert browser.see("document.activeElement.className") == "skip"
    for _ in range(3):
        browser.press("Tab", 9)
    assert browser.see("document.activeElement.textContent") == "Entities"
    browser.press("Enter", 13)
    browser.settle(lambda: browser.see("location.pathname") == "/falcon/entities")
    assert browser.complaints == []
