"""Who may change and read an entity, against a table of all cases."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.access import Principal, may_change, may_read
from falcon_assets.model.shared import Acl

OWNER, MEMBER, OTHER = Principal("etl"), Principal("ann", frozenset({"data"})), Principal("bob", frozenset({"web"}))
SUPERUSER = Principal("ops", is_superuser=True)
READ_BY_OTHERS = ("0755", "0x755", "744", "0004", "*")
NOT_READ_BY_OTHERS = ("0750", "0x751", "700")


@pytest.mark.parametrize("permission", [*READ_BY_OTHERS, *NOT_READ_BY_OTHERS])
def test_who_may_what(permission: str) -> None:
    acl = Acl(owner="etl", group="data", permission=permission)
    for who in (OWNER, MEMBER, SUPERUSER):
        assert (may_change(acl, who), may_read(acl, who)) == (True, True)
    assert (may_change(acl, OTHER), may_read(acl, OTHER)) == (False, permission in READ_BY_OTHERS)


def test_what_belongs_to_nobody_is_everybodys() -> None:
    assert (may_change(None, OTHER), may_read(None, OTHER)) == (True, True)


def test_no_group_has_no_members() -> None:
    assert not may_change(Acl(owner="etl"), Principal("bob", frozenset({""})))


NAMES = st.sampled_from(["etl", "ann", "bob", "data"])


@given(
    owner=NAMES,
    group=st.sampled_from(["", "data", "etl"]),
    permission=st.from_regex(r"(0x?)?[0-7]{3}|\*", fullmatch=True),
    name=NAMES,
    groups=st.frozensets(st.sampled_from(["", "data", "etl", "web"])),
    is_superuser=st.booleans(),
)
def test_every_case(
    owner: str, group: str, permission: str, name: str, groups: frozenset[str], is_superuser: bool
) -> None:
    acl, who = Acl(owner=owner, group=group, permission=permission), Principal(name, groups, is_superuser)
    changes = is_superuser or name == owner or (group in groups if group else False)
    assert may_change(acl, who) is changes
    assert may_read(acl, who) is (changes or permission[-1] in "4567*")
