"""Tokens, headers of proxies and certificates, and those who come with what is not theirs."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from sqlalchemy import select, update

from falcon_assets.errors import DeniedError, UsageError
from falcon_assets.features.logins.operations import CreateToken, RevokeToken
from falcon_assets.features.logins.store import MOST_OF_NAME
from falcon_assets.history.tables import API_TOKENS
from tests.features.logins.certificates import Authority
from tests.features.logins.fronts import Front, Fronts, as_admin
from tests.features.logins.fronts import fronts as fronts  # noqa: PLC0414 - a fixture

HERE = ["127.0.0.1", "::1"]
BOTH = ["ann", ["ops", "staff"]]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_counts_until_it_is_revoked_or_expires(fronts: Fronts) -> None:
    with fronts() as front:
        made = as_admin(front.installation, CreateToken(name="ci", as_role="launcher", groups=("ops",)))
        assert front.get(headers=bearer(made.token)).json() == ["ci", ["ops"], "LAUNCHER", "token"]
        assert front.post("/graphql", json={}, headers=bearer(made.token)).status_code == 200  # no browser sends it
        with front.installation.database.begin() as connection:
            row = connection.execute(select(API_TOKENS)).one()
            assert made.token not in map(str, row)
            assert row.used is not None
            connection.execute(update(API_TOKENS).values(expires=datetime.now(UTC) - timedelta(seconds=1)))
        assert front.get(headers=bearer(made.token)).status_code == 401
        again = as_admin(front.installation, CreateToken(name="ci"))
        assert front.get(headers=bearer(again.token)).json() == ["ci", [], "VIEWER", "token"]
        with pytest.raises(UsageError, match="there is a valid token 'ci'"):
            as_admin(front.installation, CreateToken(name="ci"))
        assert as_admin(front.installation, RevokeToken(name="ci"))
        assert not as_admin(front.installation, RevokeToken(name="ci"))
        replayed = front.get(headers=bearer(again.token))
        assert (replayed.status_code, replayed.json()["detail"]) == (401, "the token is unknown, expired or revoked")


def test_refusals_do_not_fill_the_audit(fronts: Fronts) -> None:
    with fronts() as front:
        for token in ("falcon_guess", "x", "", "falcon_", "'; DROP TABLE", "falcon_a", "falcon_b"):
            assert front.get(headers=bearer(token)).status_code == 401
        assert front.audit() == [("(bearer of a token)", "login", "denied")] * MOST_OF_NAME


def test_only_admins_and_superusers_make_tokens(fronts: Fronts) -> None:
    with fronts() as front:
        with pytest.raises(DeniedError, match="may not token create: that needs the role admin"):
            CreateToken(name="ci").run(front.installation)
        with pytest.raises(UsageError, match="too long"):
            as_admin(front.installation, CreateToken(name="ci", expires="months(13)"))
        assert as_admin(front.installation, CreateToken(name="ci", dry_run=True)).token == ""


def test_a_front_of_several_colos_asks_for_others(fronts: Fronts) -> None:
    named = {"Falcon-User": "ann", "Falcon-Groups": "staff,a%20b", "Falcon-Role": "editor"}
    with fronts(proxy_users=["prism"]) as front:
        prism = bearer(as_admin(front.installation, CreateToken(name="prism", as_role="viewer")).token)
        other = bearer(as_admin(front.installation, CreateToken(name="ci", as_role="admin")).token)
        assert front.get(headers=prism).json() == ["prism", [], "VIEWER", "token"]
        assert front.get(headers={**named, **prism}).json() == ["ann", ["a b", "staff"], "EDITOR", "front prism"]
        high = {**named, "Falcon-User": "bob", "Falcon-Role": "admin"}  # no more than the role that bob has here
        assert front.get(headers={**high, **prism}).json() == ["bob", ["a b", "staff"], "VIEWER", "front prism"]
        assert front.get(headers={**named, "Falcon-User": "eve", "Falcon-Groups": "", **prism}).status_code == 403
        for role in ("emperor", ""):
            assert front.get(headers={**named, "Falcon-Role": role, **prism}).status_code == 401
        refused = front.get(headers={**named, **other})
        assert refused.status_code == 401
        assert "ci may not ask for others: name it under proxy_users" in refused.json()["detail"]
        assert front.get(headers=named).status_code == 401


def test_a_header_of_a_listed_proxy_names_the_user(fronts: Fronts) -> None:
    with fronts(proxies=HERE, proxy={}) as front:
        named = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "staff, ops"}
        assert front.get(headers=named).json() == [*BOTH, "ADMIN", "proxy"]
        assert front.get().status_code == 401
        assert front.get(headers={"X-Forwarded-User": "eve"}).status_code == 403
        assert front.post(headers={**named, "Origin": "https://evil.example"}).status_code == 403
        assert front.post(headers=named).status_code == 200


def test_two_headers_are_refused(fronts: Fronts) -> None:
    with fronts(proxies=HERE, proxy={}) as front:
        import http.client

        host, _, port = front.url.partition("://")[2].partition(":")
        connection = http.client.HTTPConnection(host, int(port))
        connection.putrequest("GET", "/")
        for name in ("ann", "ann"):
            connection.putheader("X-Forwarded-User", name)
        connection.endheaders()
        assert connection.getresponse().status == 401


@pytest.mark.parametrize("more", [{}, {"X-Forwarded-For": "10.9.9.9"}, {"Forwarded": "for=10.9.9.9"}])
def test_a_header_of_anybody_else_counts_for_nothing(fronts: Fronts, more: dict[str, str]) -> None:
    with fronts(proxies=["10.9.9.0/24"], proxy={}) as front:
        assert front.get(headers={"X-Forwarded-User": "ann", **more}).status_code == 401
        assert front.audit() == [("ann", "login", "denied")]


def test_realms_are_stripped_where_that_is_declared(fronts: Fronts) -> None:
    with fronts(proxies=HERE, proxy={"strip_realm": True, "groups": None}) as front:
        named = {"X-Forwarded-User": "ann@EXAMPLE.COM", "X-Forwarded-Groups": "staff"}
        assert front.get(headers=named).json() == ["ann", [], "ADMIN", "proxy"]


@pytest.fixture(scope="module")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Authority]:
    """That of the server, that of the users, and one that nobody trusts."""
    folder = tmp_path_factory.mktemp("authorities")
    return {name: Authority.make(folder, name) for name in ("servers", "users", "strangers")}


Tls = Callable[..., Any]


@pytest.fixture
def over_tls(fronts: Fronts, authorities: dict[str, Authority]) -> Iterator[Tls]:
    with ExitStack() as stack:

        def start(**certificates: str) -> Front:
            crt, key = authorities["servers"].issue("localhost")
            users = authorities["users"].pem
            tls = {"ssl_certfile": crt, "ssl_keyfile": key, "ssl_ca_certs": users, "ssl_cert_reqs": ssl.CERT_OPTIONAL}
            front = stack.enter_context(fronts(tls=tls, certificates={"authorities": users, **certificates}))
            front.verify = authorities["servers"].pem
            return front

        yield start


def test_a_certificate_of_the_right_authority_names_the_user(over_tls: Tls, authorities: dict[str, Authority]) -> None:
    users, front = authorities["users"], over_tls(groups="organizational_unit")
    assert front.get(cert=users.issue("ann")).json() == ["ann", ["staff"], "ADMIN", "certificate"]
    assert front.get(cert=users.issue("robot")).json() == ["robot", ["staff"], "VIEWER", "certificate"]
    assert front.get(cert=users.issue("eve", unit="guests")).status_code == 403
    front.session = requests.Session()
    assert front.get().status_code == 401
    assert front.get(cert=users.issue("ann", "root")).json()["detail"] == (
        "the certificate has 2 values of common_name, and must have one"
    )


@pytest.mark.parametrize("name", ["strangers", "servers"])
def test_a_certificate_of_another_authority_does_not_connect(
    over_tls: Tls, authorities: dict[str, Authority], name: str
) -> None:
    front = over_tls()
    with pytest.raises((requests.exceptions.SSLError, requests.exceptions.ConnectionError)):
        front.get(cert=authorities[name].issue("ann"))


def test_names_of_the_alternatives(over_tls: Tls, authorities: dict[str, Authority]) -> None:
    assert over_tls(name="email").get(cert=authorities["users"].issue("x")).status_code == 403  # ann@example.com
    assert over_tls(name="uri").get(cert=authorities["users"].issue("x")).status_code == 401


def test_with_tls_cookies_are_of_this_host_only(over_tls: Tls) -> None:
    cookies = over_tls().get("/falcon/login").headers["set-cookie"]
    assert cookies.startswith("__Host-falcon_login=")
    assert "Secure" in cookies
