"""The login in a browser, and what Dagster's pages offer to whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from falcon_assets.features.logins.operations import AddUser
from falcon_assets.operations.installation import open_installation
from falcon_assets.settings import Settings
from falcon_assets.surface.front.app import open_front
from tests.features.logins.fronts import PASSWORD, as_admin
from tests.processes import free_port
from tests.surface.front.conftest import serving, write_location
from tests.surface.pages.browser import Browser, browsing
from tests.surface.pages.test_browser import AXE, PHONE, TABLET, axe

pytestmark = pytest.mark.soak
ROLES = [{"role": "viewer", "users": ["eve"]}, {"role": "launcher", "users": ["lea"]}]
MATERIALIZE = "[...document.querySelectorAll('button')].find((one) => one.textContent.startsWith('Materialize'))"
"""Its text ends with an ellipsis for assets with partitions."""


@pytest.fixture(scope="module")
def address(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port, folder = free_port(), tmp_path_factory.mktemp("front")
    file = folder / "logins.yaml"
    file.write_text(yaml.safe_dump({"url": f"http://localhost:{port}", "roles": ROLES, "passwords": {}}))
    workspace = write_location(settings, folder)
    with open_installation(settings) as installation:
        for name in ("eve", "lea"):
            as_admin(installation, AddUser(name=name, password=PASSWORD))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with open_front(replace(settings, logins=file), workspace) as app, serving(app, port):
            yield f"http://localhost:{port}"


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with browsing(tmp_path / "browser") as found:
        yield found


def log_in(browser: Browser, name: str, password: str) -> None:
    browser.see("document.querySelector('[name=name]').focus()")
    browser.write(name)
    browser.see("document.querySelector('[name=password]').focus()")
    browser.write(password)
    browser.press("Enter", 13)


def test_who_logs_in_comes_to_the_page_that_was_asked_for(address: str, browser: Browser) -> None:
    asset = "/assets/primary/free"
    browser.open(address + asset)
    assert browser.see("location.pathname") == "/falcon/login"
    for size, scheme in ((TABLET, "light"), (PHONE, "dark")):
        browser.show_as(*size, scheme)
        assert browser.see("document.body.scrollWidth <= window.innerWidth")
    assert browser.complaints == []
    log_in(browser, "eve", "wrong horse battery")
    browser.settle(lambda: browser.see("document.querySelector('[role=alert]')?.textContent.length > 0"))
    log_in(browser, "eve", PASSWORD)
    browser.settle(lambda: browser.see("location.pathname") == asset)

    browser.show_as(*TABLET, "light")
    browser.settle(lambda: browser.see(f"{MATERIALIZE} !== undefined"))
    assert browser.see(f"{MATERIALIZE}.disabled")  # eve is a viewer
    browser.open(f"{address}/falcon/login")
    browser.see("document.querySelector('form').submit()")
    browser.settle(lambda: browser.see("document.querySelector('[name=password]') !== null"))
    browser.open(address + asset)
    log_in(browser, "lea", PASSWORD)
    browser.settle(lambda: browser.see("location.pathname") == asset)
    browser.settle(lambda: browser.see(f"{MATERIALIZE}?.disabled === false"))  # lea is a launcher


def test_the_login_is_accessible(address: str, browser: Browser) -> None:
    browser.tell("Page.setBypassCSP", enabled=True)  # or the checks could not be loaded
    browser.open(address)
    browser.see(f"{axe()}; 1")
    assert browser.see(AXE) == []
