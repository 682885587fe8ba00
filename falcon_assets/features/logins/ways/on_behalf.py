"""Users whom another front names, which asks for them: one that is the one face of several colos."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from urllib.parse import quote, unquote

from starlette.datastructures import Headers
from starlette.types import Scope

from falcon_assets.features.logins.identity import Identity, LoginRefusedError, identity
from falcon_assets.model.access import Principal, Role

_USER, _GROUPS, _ROLE = "Falcon-User", "Falcon-Groups", "Falcon-Role"


def headers_for(who: Principal) -> Mapping[str, str]:
    """The headers by which a front says for whom it asks, and which role that user has there at most."""
    role = Role.ADMIN if who.is_superuser else who.role
    groups = ",".join(quote(one, safe="") for one in sorted(who.groups))
    return {_USER: quote(who.name, safe=""), _GROUPS: groups, _ROLE: role.name.lower()}


def named_on_behalf(scope: Scope, asker: Principal, trusted: Collection[str]) -> tuple[Identity, Role] | None:
    """For whom ``asker`` asks, and the highest role; None: for nobody else.

    Raises LoginRefusedError where the asker may not, or says no role.
    """
    headers = Headers(scope=scope)
    names = headers.getlist(_USER)
    if not names:
        return None
    if asker.name not in trusted:
        raise LoginRefusedError(
            f"{asker.name} may not ask for others: name it under proxy_users in the file of logins", asker.name
        )
    said = headers.get(_ROLE, "").upper()
    if len(names) > 1 or said not in Role.__members__:
        raise LoginRefusedError(f"{asker.name} does not say for whom it asks, and with which role", asker.name)
    groups = [unquote(one) for one in headers.get(_GROUPS, "").split(",") if one]
    return identity(unquote(names[0]), groups, f"front {asker.name}"), Role[said]


def limited(who: Principal, most: Role) -> Principal:
    """The user with a role that is no higher than ``most``."""
    return replace(who, role=min(who.role, most))
