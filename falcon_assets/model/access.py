"""Permissions to change and to read an entity (source: Apache Falcon)."""

from __future__ import annotations

from dataclasses import dataclass

from falcon_assets.model.shared import Acl


@dataclass(frozen=True)
class Principal:
    """The user who asks for an operation.

    Attributes:
        name: The name of the user.
        groups: The groups that the user is a member of.
        is_superuser: Whether the user may do everything.
    """

    name: str
    groups: frozenset[str] = frozenset()
    is_superuser: bool = False


def may_change(acl: Acl | None, who: Principal) -> bool:
    """Whether ``who`` is a superuser, the owner, or in the group; of what has no ``acl``, everybody may."""
    return acl is None or who.is_superuser or who.name == acl.owner or (acl.group != "" and acl.group in who.groups)


def may_read(acl: Acl | None, who: Principal) -> bool:
    """Whether ``who`` may change it, or ``permission`` lets others read: its last digit, or ``*``."""
    return acl is None or may_change(acl, who) or acl.permission == "*" or bool(int(acl.permission[-1], 8) & 4)
