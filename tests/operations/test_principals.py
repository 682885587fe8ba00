"""Who came over the network: the roles, and what the acl of entities adds to them."""

from __future__ import annotations

import pytest

from falcon_assets.errors import DeniedError
from falcon_assets.model.access import Principal, Role, may_change, may_read
from falcon_assets.model.shared import Acl
from falcon_assets.operations.acting import acting, require_change
from falcon_assets.operations.operation import Change
from falcon_assets.operations.request_origin import requests_from
from falcon_assets.settings import load_settings
from falcon_assets.surface.registry import registry
from tests.builders import make_feed

ANNS = Acl(owner="ann", group="data", permission="0750")
FREE, OWNED = make_feed(), make_feed(acl=ANNS)


def from_outside(name: str, role: Role, *groups: str) -> Principal:
    return Principal(name, frozenset(groups), role=role, way="token")


@pytest.mark.parametrize(
    ("who", "free", "owned"),
    {
        "viewer": (from_outside("eve", Role.VIEWER), [], []),
        "launcher": (from_outside("eve", Role.LAUNCHER), [Role.LAUNCHER], []),
        "editor": (from_outside("eve", Role.EDITOR), [Role.LAUNCHER, Role.EDITOR], []),
        "admin": (from_outside("eve", Role.ADMIN), list(Role)[1:], list(Role)[1:]),
        "owner": (from_outside("ann", Role.VIEWER), [], list(Role)[1:]),
        "group": (from_outside("eve", Role.VIEWER, "data"), [], list(Role)[1:]),
        "superuser": (Principal("eve", is_superuser=True, role=Role.VIEWER), list(Role)[1:], list(Role)[1:]),
        "of the machine": (Principal("eve"), [Role.LAUNCHER, Role.EDITOR], []),
    }.values(),
    ids=["viewer", "launcher", "editor", "admin", "owner", "group", "superuser", "of the machine"],
)
def test_what_roles_may_change(who: Principal, free: list[Role], owned: list[Role]) -> None:
    assert [role for role in list(Role)[1:] if may_change(None, who, role)] == free
    assert [role for role in list(Role)[1:] if may_change(ANNS, who, role)] == owned
    assert may_read(None, who)
    assert may_read(ANNS, who) is bool(owned)


def test_a_refusal_says_the_role_or_the_owner() -> None:
    with pytest.raises(
        DeniedError, match="eve may not update: that needs the role editor, and eve has the role viewer"
    ):
        require_change(from_outside("eve", Role.VIEWER), "update", [FREE])
    with pytest.raises(DeniedError, match=f"eve may not update feed {OWNED.name!r}, which belongs to 'ann'"):
        require_change(Principal("eve"), "update", [OWNED])
    with pytest.raises(DeniedError, match="needs the role admin"):
        require_change(from_outside("eve", Role.EDITOR), "forget versions of", [], Role.ADMIN)


def test_nothing_asks_the_operating_system_about_who_came_over_the_network() -> None:
    root = Principal("root", frozenset({"guests"}), role=Role.VIEWER, way="token")
    settings = load_settings({"FALCON_SUPERUSERS": "root"})
    with requests_from("rest", principal=root):
        assert acting(settings) is root
        assert acting(settings, "root") is root
        with pytest.raises(DeniedError, match="root may not act for 'ann'"):
            acting(settings, "ann")


def test_what_only_some_may_request() -> None:
    operations = [one.load() for one in registry().values()]
    readers = {one.command for one in operations if one.role is Role.VIEWER}
    assert not [one.command for one in operations if issubclass(one, Change) and one.command in readers]
    assert {one.command for one in operations if one.role is Role.ADMIN} >= {"ledger rebuild", "admin audit"}
