"""Permissions to change and to read an entity (source: Apache Falcon)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from falcon_assets.model.shared import Acl


class Role(IntEnum):
    """What a user may do with entities that no ``acl`` gives to somebody; each may do what those before it may."""

    VIEWER = 1
    """Reads."""
    LAUNCHER = 2
    """Changes instances: reruns, kills, suspends, backfills."""
    EDITOR = 3
    """Changes entities."""
    ADMIN = 4
    """Does everything, whoever owns it."""


@dataclass(frozen=True)
class Principal:
    """The user who asks for an operation.

    Attributes:
        name: The name of the user.
        groups: The groups that the user is a member of.
        is_superuser: Whether the user may do everything.
        role: Of users of the operating system, EDITOR: the ``acl`` tells them apart, and superusers are admins.
        way: How the user proved the name to the front; empty: to the operating system.
    """

    name: str
    groups: frozenset[str] = frozenset()
    is_superuser: bool = False
    role: Role = Role.EDITOR
    way: str = ""

    def has(self, role: Role) -> bool:
        """Whether the user may do what that role may."""
        return self.is_superuser or self.role >= role


def may_change(acl: Acl | None, who: Principal, role: Role = Role.EDITOR) -> bool:
    """Whether ``who`` is a superuser, the owner, or in the group; of what has no ``acl``, everybody in the role may."""
    if who.is_superuser or who.role is Role.ADMIN:
        return True
    if acl is None:
        return who.has(role)
    return who.name == acl.owner or (acl.group != "" and acl.group in who.groups)


def may_read(acl: Acl | None, who: Principal) -> bool:
    """Whether ``who`` may change it, or ``permission`` lets others read: its last digit, or ``*``."""
    return acl is None or may_change(acl, who) or acl.permission == "*" or bool(int(acl.permission[-1], 8) & 4)
