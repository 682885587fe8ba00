"""The user an operation acts for, and permissions."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Iterable
from typing import Protocol

from falcon_assets.errors import DeniedError
from falcon_assets.model.access import Principal, Role, may_change, may_read
from falcon_assets.model.shared import Acl
from falcon_assets.operations.request_origin import ORIGIN
from falcon_assets.settings import Settings

_NAMED = 5


class Owned(Protocol):
    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def acl(self) -> Acl | None:
        """None: anybody may change it."""


def acting(settings: Settings, actor: str | None = None) -> Principal:
    """Who came over the network, else ``actor``, else the command line's, else the user of the operating system.

    Raises DeniedError where the user may not act for ``actor``; nobody may who came over the network.
    """
    if (principal := ORIGIN.get().principal) is not None:
        if actor not in (None, "", principal.name):
            raise DeniedError(f"{principal.name} may not act for {actor!r}: leave the principal out")
        return principal
    actor = actor or ORIGIN.get().actor
    name = actor or settings.user
    if name != settings.user and settings.user not in settings.proxy_users:
        raise DeniedError(
            f"{settings.user} may not act for {name!r}: leave the principal out, "
            f"or name {settings.user} in FALCON_PROXY_USERS"
        )
    return Principal(name, _groups(name, own=actor is None), name in settings.superusers)


def require_change(who: Principal, operation: str, entities: Iterable[Owned], role: Role = Role.EDITOR) -> None:
    """Raises DeniedError, naming entities that belong to others, or to nobody where that is for another ``role``.

    Without entities it is only for those in the ``role``.
    """
    concerned = list(entities)
    refused = [one for one in concerned if not may_change(one.acl, who, role)]
    if [one for one in refused if one.acl is None] or not concerned:
        require_role(who, operation, role)
    _require(who, operation, refused, "a superuser (FALCON_SUPERUSERS)")


def require_role(who: Principal, operation: str, role: Role) -> None:
    """Raises DeniedError."""
    if not who.has(role):
        raise DeniedError(
            f"{who.name} may not {operation}: that needs the role {role.name.lower()}, "
            f"and {who.name} has the role {who.role.name.lower()}"
        )


def require_read(who: Principal, entities: Iterable[Owned]) -> None:
    """Raises DeniedError, naming entities that only others may read."""
    refused = [one for one in entities if not may_read(one.acl, who)]
    _require(who, "read", refused, "a superuser (FALCON_SUPERUSERS), or have them let others read it (acl.permission)")


def _require(who: Principal, operation: str, refused: list[Owned], others: str) -> None:
    if refused:
        named = ", ".join(_named(one) for one in refused[:_NAMED])
        more = f" and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
        raise DeniedError(f"{who.name} may not {operation} {named}{more}: ask them, or {others}")


def _named(one: Owned) -> str:
    group = f" and the group {one.acl.group!r}" if one.acl and one.acl.group else ""
    return f"{one.kind} {one.name!r}, which belongs to {one.acl.owner!r}{group}" if one.acl else one.name


def _groups(name: str, *, own: bool) -> frozenset[str]:
    """Empty for unknown users; groups of the process count where its own user has no name."""
    try:
        numbers = os.getgrouplist(name, pwd.getpwnam(name).pw_gid)
    except (KeyError, ValueError):  # ValueError: no name that a user could have
        numbers = [os.getgid(), *os.getgroups()] if own else []
    return frozenset(_group_name(number) for number in numbers)


def _group_name(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
