"""Logins by a real provider of OpenID Connect: npm's oidc-provider."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
import requests

from tests.features.logins.fronts import Front, Fronts
from tests.features.logins.fronts import fronts as fronts  # noqa: PLC0414 - a fixture
from tests.processes import free_port, listens
from tests.waiting import wait_until

pytestmark = pytest.mark.soak
_SERVER = """
const [, , place, settings] = process.argv;
const {default: Provider} = await import(place);
const {port, callback} = JSON.parse(settings);
const findAccount = (_, id) => ({accountId: id, claims: () => ({
  sub: id, preferred_username: id.split(".")[0], groups: ["staff"],
})});
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{client_id: "falcon", client_secret: "of-the-client", redirect_uris: [callback]}],
  claims: {openid: ["sub"], profile: ["preferred_username", "groups"]},
  pkce: {required: () => true},
  findAccount,
});
provider.listen(port);
"""


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Its declaration, and the port at which the front has to be."""
    modules = subprocess.run(["npm", "root", "--global"], check=True, capture_output=True, text=True).stdout.strip()
    place = Path(modules, "oidc-provider", "lib", "index.js")
    assert place.exists(), "install it: npm install --global oidc-provider"
    folder, port, front_port = tmp_path_factory.mktemp("oidc"), free_port(), free_port()
    program = folder / "server.mjs"
    program.write_text(_SERVER)
    callback = f"http://localhost:{front_port}/falcon/login/oidc/callback"
    settings = json.dumps({"port": port, "callback": callback})
    (folder / "secret").write_text("of-the-client")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(["node", program, str(place), settings], stdout=log, stderr=log)
        try:
            wait_until(lambda: listens(port), 60, what=str(folder / "log"))
            secret = {"file": str(folder / "secret")}
            oidc = {"issuer": f"http://127.0.0.1:{port}", "client_id": "falcon", "client_secret": secret}
            yield {"port": front_port, "oidc": oidc}
        finally:
            server.terminate()
            server.wait()


@pytest.fixture
def front(fronts: Fronts, provider: dict[str, Any]) -> Iterator[Front]:
    with fronts(**provider) as found:
        yield found


def answer_of_provider(front: Front, name: str, place: str = "/") -> str:
    """Goes to the provider, logs in and consents there; the URL that it sends the browser back to."""
    begun = front.get("/falcon/login/oidc", params={"next": place})
    assert begun.status_code == 303, begun.text
    asked = parse_qs(urlsplit(begun.headers["location"]).query)
    assert (asked["code_challenge_method"], asked["response_type"]) == (["S256"], ["code"])
    assert {*asked} >= {"code_challenge", "state", "nonce"}
    browser, url = requests.Session(), begun.headers["location"]
    for _ in range(20):
        answer = browser.get(url, allow_redirects=False, timeout=30)
        if answer.status_code == 200:  # one of its forms
            prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
            action = re.search(r'action="([^"]+)"', answer.text)
            assert prompt and action, answer.text
            fields = {"prompt": prompt[1], "login": name, "password": "any"}
            answer = browser.post(urljoin(url, action[1]), data=fields, allow_redirects=False, timeout=30)
        url = urljoin(url, answer.headers["location"])
        if url.startswith(front.url):
            return url.removeprefix(front.url)
    raise AssertionError(url)


def test_a_login_by_a_provider(front: Front) -> None:
    back = front.get(answer_of_provider(front, "ann", "/runs?state=failed"))
    assert (back.status_code, back.headers["location"]) == (303, "/runs?state=failed")
    assert front.get().json() == ["ann", ["staff"], "ADMIN", "oidc"]
    assert front.audit() == [("ann", "login", "done")]


def test_an_answer_counts_once_and_in_the_browser_that_asked(front: Front) -> None:
    answer = answer_of_provider(front, "ann")
    stranger = front.anew()
    assert stranger.get(answer).status_code == 403
    stranger.get("/falcon/login/oidc")
    assert stranger.get(answer).status_code == 403  # another state
    attempt = front.session.cookies["falcon_login"]
    assert front.get(answer).status_code == 303
    front.session.cookies.clear()
    assert front.get(answer, headers={"Cookie": f"falcon_login={attempt}"}).status_code == 403  # the code is used
    assert front.get().status_code == 401


def test_a_forged_state_or_a_refusal_lets_nobody_in(front: Front) -> None:
    answer = answer_of_provider(front, "ann")
    assert front.get(re.sub(r"state=[^&]*", "state=forged", answer)).status_code == 403
    assert front.get(re.sub(r"code=[^&]*", "error=access_denied", answer)).status_code == 403
    assert front.get(re.sub(r"code=[^&]*", "code=forged", answer)).status_code == 403
    assert front.get().status_code == 401
