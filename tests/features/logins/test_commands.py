"""``falcon admin token|user|session``: what they print, and that the front knows at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from falcon_assets.errors import DeniedError, FalconError
from falcon_assets.settings import os_user
from falcon_assets.surface.cli.main import falcon
from tests.features.logins.fronts import PASSWORD, Fronts
from tests.features.logins.fronts import fronts as fronts  # noqa: PLC0414 - a fixture

OTHER = "another horse battery"


@pytest.fixture(autouse=True)
def _superuser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FALCON_SUPERUSERS", os_user())


def call(*words: str, given: str = "") -> Result:
    return CliRunner().invoke(falcon, ["admin", *words], input=given)


def said(*words: str, given: str = "") -> str:
    done = call(*words, given=given)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout.strip()


def listed(kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(said(kind, "list", "--json"))["items"]
    return found


def test_a_token_is_printed_once_and_counts_until_it_is_revoked(fronts: Fronts) -> None:
    with fronts() as front:
        assert "would be valid until" in said("token", "create", "ci", "--dry-run")
        assert said("token", "list") == "there is no such token"
        made = call("token", "create", "ci", "--role", "launcher", "--group", "ops", "--expires", "days(30)")
        token = made.stdout.strip()
        assert "it is shown only now" in made.stderr
        bearer = {"Authorization": f"Bearer {token}"}
        assert front.get(headers=bearer).json() == ["ci", ["ops"], "LAUNCHER", "token"]
        (one,) = listed("token")
        assert (one["name"], one["role"], one["groups"], one["revoked"]) == ("ci", "launcher", ["ops"], None)
        assert token not in said("token", "list") + json.dumps(one) + said("audit", "--json")
        assert said("token", "revoke", "ci") == "done"
        assert said("token", "revoke", "ci") == "unchanged"
        assert front.get(headers=bearer).status_code == 401


def test_users_and_their_sessions(fronts: Fronts) -> None:
    with fronts(passwords={}) as front:
        assert said("user", "add", "ann", "--group", "staff", given=f"{PASSWORD}\n") == "done"
        (one,) = listed("user")
        assert (one["name"], one["groups"], "hash" in one) == ("ann", ["staff"], False)
        assert said("session", "list") == "nobody is logged in"
        assert front.login("ann", PASSWORD).status_code == 303
        (one,) = listed("session")
        assert (one["principal"], one["way"]) == ("ann", "password")
        assert said("session", "revoke", str(one["id"]), "--dry-run") == "1 session ended"
        assert front.get().status_code == 200
        assert said("session", "revoke", str(one["id"])) == "1 session ended"
        assert front.get().status_code == 401
        front.login("ann", PASSWORD)
        assert said("user", "password", "ann", given=OTHER) == "done"
        assert front.get().status_code == 401
        assert front.login("ann", PASSWORD).status_code == 403
        assert front.login("ann", OTHER).status_code == 303
        assert said("session", "revoke", "--user", "ann") == "1 session ended"
        assert said("session", "revoke", "--user", "ann") == "0 sessions ended"
        assert said("user", "remove", "ann") == "done"
        assert front.login("ann", OTHER).status_code == 403
        kept = said("audit", "--json")
        assert PASSWORD not in kept
        assert OTHER not in kept


@pytest.mark.parametrize(
    ("words", "given", "says"),
    [
        ("user add bob", "short", "the password must have 12 characters at least"),
        ("user password eve", PASSWORD, "there is no user 'eve'"),
        ("user remove eve", "", "there is no user 'eve'"),
        ("token revoke none", "", "there is no token 'none'"),
        ("token create ci --expires months(13)", "", "is too long"),
        ("token create ci --expires soon", "", "soon"),
        ("session revoke", "", "give the ID of a session, or --user"),
        ("session revoke 1 --user ann", "", "give the ID of a session, or --user"),
    ],
)
def test_mistakes_are_refused(fronts: Fronts, words: str, given: str, says: str) -> None:
    refused = call(*words.split(), given=given).exception
    assert isinstance(refused, FalconError)
    assert says in str(refused)
    assert (listed("token"), listed("user")) == ([], [])


@pytest.mark.parametrize("words", ["token create ci", "user add bob", "session revoke 1"])
def test_only_superusers_of_the_machine_let_people_in(
    fronts: Fronts, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setenv("FALCON_SUPERUSERS", "somebody-else")
    refused = call(*words.split(), given=PASSWORD).exception
    assert isinstance(refused, DeniedError)
    assert "that needs the role admin" in str(refused)
