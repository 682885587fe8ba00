"""People who log in with a password, and those who attack their sessions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import websockets.exceptions
import websockets.sync.client
from sqlalchemy import func, select, update

from falcon_assets.features.logins import middleware
from falcon_assets.features.logins.browser import safe_place
from falcon_assets.features.logins.operations import AddUser, RemoveUser, RevokeSessions, SetPassword
from falcon_assets.features.logins.store import MOST_OF_NAME
from falcon_assets.history.tables import SESSIONS
from tests.features.logins.fronts import PASSWORD, Front, Fronts, as_admin, hidden_fields
from tests.features.logins.fronts import front as front  # noqa: PLC0414 - a fixture
from tests.features.logins.fronts import fronts as fronts  # noqa: PLC0414 - a fixture

ANN = ["ann", [], "ADMIN", "password"]
PAGE = {"Accept": "text/html"}


def test_who_logs_in_is_known_until_the_logout(front: Front) -> None:
    asked = front.get("/runs?state=failed", headers=PAGE)
    assert (asked.status_code, asked.headers["location"]) == (303, "/falcon/login?next=/runs%3Fstate%3Dfailed")
    entered = front.login("ann", PASSWORD, "/runs?state=failed")
    assert (entered.status_code, entered.headers["location"]) == (303, "/runs?state=failed")
    assert front.get().json() == ANN
    cookie = front.session.cookies["falcon_session"]
    page = front.get("/falcon/login").text
    assert "You are <strong>ann</strong>, in the role admin" in page
    assert front.post("/falcon/logout", data=hidden_fields(page)).status_code == 303
    assert "falcon_session" not in front.session.cookies
    assert front.get(cookies={"falcon_session": cookie}).status_code == 401
    assert front.audit()[2:] == [("ann", "login", "done"), ("ann", "logout", "done")]


def test_programs_are_told_to_log_in(front: Front) -> None:
    answer = front.get("/graphql")
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")
    assert answer.headers["www-authenticate"] == 'Bearer realm="falcon"'
    assert front.get("/healthz").json() == "ok"
    assert front.get("/falcon/login.css").headers["content-type"].startswith("text/css")


@pytest.mark.parametrize(
    ("name", "password"),
    [("ann", "wrong horse battery"), ("eve", PASSWORD), ("", ""), ("ann'--", PASSWORD), ("\x00\u2028", "\x00")],
)
def test_wrong_passwords_say_nothing_else(front: Front, name: str, password: str) -> None:
    refused = front.login(name, password)
    assert refused.status_code == 403
    assert "the name or the password is wrong" in refused.text
    assert front.get().status_code == 401
    assert front.audit()[-1][1:] == ("login", "denied")


def test_who_has_no_role_is_refused(front: Front) -> None:
    refused = front.login("bob", PASSWORD)
    assert (refused.status_code, "you have no role here" in refused.text) == (403, True)
    assert "falcon_session" not in front.session.cookies


def test_a_login_has_a_new_session_whatever_the_browser_had(front: Front) -> None:
    front.session.cookies.set("falcon_session", "chosen-by-an-attacker", domain="localhost.local")
    front.login("ann", PASSWORD)
    first = front.session.cookies["falcon_session"]
    assert first != "chosen-by-an-attacker"
    page = front.anew()
    page.session.cookies.set("falcon_session", first, domain="localhost.local")
    page.login("ann", PASSWORD)  # it shows who is logged in: no form to send
    with front.installation.database.connect() as connection:
        kept = connection.execute(select(SESSIONS.c.hash)).scalars().all()
    assert len(kept) == 1
    assert first not in kept


def test_cookies_are_for_browsers_only(front: Front, fronts: Fronts) -> None:
    set_cookies = front.login("ann", PASSWORD).headers["set-cookie"]
    for words in ("HttpOnly", "SameSite=lax", "Path=/"):
        assert words in set_cookies
    assert "Secure" not in set_cookies


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://localhost"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_sites_change_nothing(front: Front, headers: dict[str, str]) -> None:
    front.login("ann", PASSWORD)
    assert front.post("/graphql", json={}, headers=headers).status_code == 403
    assert front.post("/graphql", json={}, headers={"Origin": front.url}).json() == ANN
    assert front.post("/graphql", json={}, headers={"Sec-Fetch-Site": "same-origin", "Origin": "null"}).json() == ANN


def test_other_sites_send_no_forms(front: Front) -> None:
    fields = {"name": "ann", "password": PASSWORD, "next": "/"}
    stranger = front.anew()
    refused = stranger.post("/falcon/login", data=fields)
    assert (refused.status_code, "comes from another site" in refused.text) == (403, True)
    of_attacker = hidden_fields(front.get("/falcon/login").text)
    stranger.get("/falcon/login")
    assert stranger.post("/falcon/login", data={**of_attacker, **fields}).status_code == 403
    assert "falcon_session" not in stranger.session.cookies
    front.login("ann", PASSWORD)
    assert front.post("/falcon/logout", data=of_attacker).status_code == 403
    assert front.get("/falcon/logout").status_code == 405
    assert front.get().json() == ANN
    assert front.post("/falcon/login", json=fields).status_code == 415
    assert front.post("/falcon/login", data={"name": "x" * 20_000}).status_code == 413


def test_websockets_know_their_user_and_refuse_other_sites(front: Front) -> None:
    url = front.url.replace("http", "ws") + "/ws"
    front.login("ann", PASSWORD)
    cookie = {"Cookie": f"falcon_session={front.session.cookies['falcon_session']}"}
    with websockets.sync.client.connect(url, additional_headers=cookie, origin=front.url) as socket:  # type: ignore[arg-type]
        assert socket.recv() == "ann"
    for headers, origin in (({}, front.url), (cookie, "https://evil.example"), (cookie, None)):
        with pytest.raises(websockets.exceptions.InvalidStatus, match="403"):
            websockets.sync.client.connect(url, additional_headers=headers, origin=origin)  # type: ignore[arg-type]


def test_an_open_websocket_ends_with_its_session(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "RECOGNIZED_SECONDS", 0.05)
    front.login("ann", PASSWORD)
    cookie = {"Cookie": f"falcon_session={front.session.cookies['falcon_session']}"}
    url = front.url.replace("http", "ws") + "/talk"
    with websockets.sync.client.connect(url, additional_headers=cookie, origin=front.url) as socket:  # type: ignore[arg-type]
        for _ in range(3):
            socket.send("there?")
            assert socket.recv(30) == "there?"
        as_admin(front.installation, RevokeSessions(user="ann"))
        with pytest.raises(websockets.exceptions.ConnectionClosedError, match="log in first"):
            socket.recv(60)


def test_failed_logins_have_a_limit_that_holds_over_several_fronts(front: Front, fronts: Fronts) -> None:
    for _ in range(MOST_OF_NAME):
        assert front.login("ann", "wrong horse battery").status_code == 403
    refused = front.login("ann", PASSWORD)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "900")
    assert len(front.audit()) == MOST_OF_NAME + 2
    assert front.login("bob", PASSWORD).status_code == 403  # of other names it is another number
    with fronts_again(front, fronts) as other:
        assert other.login("ann", PASSWORD).status_code == 429


def fronts_again(front: Front, fronts: Fronts):  # type: ignore[no-untyped-def]
    return fronts(passwords={})


@pytest.mark.parametrize(
    ("place", "safe"),
    {
        "/runs?x=1#y": "/runs?x=1#y",
        "//evil.example": "/",
        "https://evil.example": "/",
        "/\\evil.example": "/",
        "/\t/evil.example": "/",
        "/\r\nSet-Cookie: x": "/",
        "javascript:alert(1)": "/",
        "": "/",
        "runs": "/",
        "/%2F/evil": "/%2F/evil",
    }.items(),
)
def test_a_login_leads_to_no_other_site(front: Front, place: str, safe: str) -> None:
    assert safe_place(place, "") == safe
    assert front.login("ann", PASSWORD, place).headers["location"] == safe


def test_sessions_end(front: Front) -> None:
    def expired(**changed: datetime) -> bool:
        front.session.cookies.clear()
        front.login("ann", PASSWORD)
        assert front.get().json() == ANN
        with front.installation.database.begin() as connection:
            connection.execute(update(SESSIONS).values(**changed))
        return front.get().status_code == 401

    now = datetime.now(UTC)
    assert expired(expires=now - timedelta(seconds=1))
    assert expired(used=now - timedelta(hours=8, seconds=1))
    assert not expired(used=now - timedelta(hours=7))
    with front.installation.database.connect() as connection:
        assert connection.execute(select(SESSIONS.c.used)).scalar_one() >= now  # it is used
        assert connection.execute(select(func.count()).select_from(SESSIONS)).scalar_one() == 1  # the others are gone


@pytest.mark.parametrize(
    "end",
    [
        RevokeSessions(user="ann"),
        SetPassword(name="ann", password="another horse battery"),
        RemoveUser(name="ann"),
    ],
    ids=lambda one: one.command,
)
def test_admins_end_sessions_at_once(front: Front, end: RevokeSessions | SetPassword | RemoveUser) -> None:
    front.login("ann", PASSWORD)
    assert front.get().json() == ANN
    as_admin(front.installation, end)
    assert front.get().status_code == 401
    assert front.audit()[-1] == ("root", end.command, "done")


def test_the_page_needs_no_script_and_no_network(front: Front) -> None:
    answer = front.get("/falcon/login", params={"next": '/"><script>alert(1)</script>'})
    assert "<script" not in answer.text
    assert "http" not in answer.text.replace("http-equiv", "")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")


def test_of_two_fronts_each_knows_the_sessions_of_the_other(fronts: Fronts) -> None:
    with fronts(passwords={}) as one, fronts(passwords={}) as other:
        as_admin(one.installation, AddUser(name="ann", password=PASSWORD))
        one.login("ann", PASSWORD)
        session = {"falcon_session": one.session.cookies["falcon_session"]}
        assert other.get(cookies=session).json() == ANN
        other.session.cookies.update(session)
        assert other.post("/falcon/logout", data=hidden_fields(other.get("/falcon/login").text)).status_code == 303
        assert one.get().status_code == 401
