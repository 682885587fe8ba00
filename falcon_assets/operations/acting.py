"""Who asks for an operation, and whether that is allowed."""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Iterable
from typing import Protocol

from falcon_assets.errors import DeniedError
from falcon_assets.model.access import Principal, may_change, may_read
from falcon_assets.model.shared import Acl
from falcon_assets.operations.ways import present_actor
from falcon_assets.settings import Settings

_NAMED = 5
"""So many entities are named where one may not change them."""


class Owned(Protocol):
    """A cluster, feed or process, as far as it matters who owns it."""

    @property
    def kind(self) -> str:
        """``cluster``, ``feed`` or ``process``."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def acl(self) -> Acl | None:
        """Who owns it; None: nobody, so everybody may change it."""


def acting(settings: Settings, actor: str | None = None) -> Principal:
    """Who acts: the user of the operating system, or whom that user may speak for.

    Args:
        settings: Who is a superuser, and who may speak for others.
        actor: The principal that is passed along; None: whom the command line names, else the user of the operating
            system.

    Raises:
        DeniedError: the principal is another one than the user, who may not speak for others.
    """
    actor = actor or present_actor()
    name = actor or settings.user
    if name != settings.user and settings.user not in settings.proxy_users:
        raise DeniedError(
            f"{settings.user} may not act for {name!r}: leave the principal out, "
            f"or name {settings.user} in FALCON_PROXY_USERS"
        )
    return Principal(name, _groups(name, own=actor is None), name in settings.superusers)


def require_change(who: Principal, operation: str, entities: Iterable[Owned]) -> None:
    """Checks that ``who`` may change all of them.

    Raises:
        DeniedError: some belong to others; the text names them.
    """
    _require(
        who, operation, [one for one in entities if not may_change(one.acl, who)], "a superuser (FALCON_SUPERUSERS)"
    )


def require_read(who: Principal, entities: Iterable[Owned]) -> None:
    """Checks that ``who`` may read all of them.

    Raises:
        DeniedError: some may be read by others only; the text names them.
    """
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
    """The groups of a user, by name; of one whom the system does not know none.

    Args:
        name: Of the user.
        own: Whether that is the user of this process, and nobody said so: its groups count where it has no name.
    """
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
