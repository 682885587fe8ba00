"""Users whom a proxy names in a header; Kerberos comes in this way, too."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address

from starlette.datastructures import Headers
from starlette.types import Scope

from falcon_assets.features.logins.identity import HeaderName, Identity, LoginRefusedError, identity
from falcon_assets.model.base import Declaration, NonEmpty


class ProxyWay(Declaration):
    """The headers of a proxy that has asked for the login itself."""

    user: HeaderName = "X-Forwarded-User"
    """The header with the name."""
    groups: HeaderName | None = "X-Forwarded-Groups"
    """The header with the groups; null: none."""
    separator: NonEmpty = ","
    """Between two groups."""
    strip_realm: bool = False
    """Whether `ann@EXAMPLE.COM` is `ann`."""


class StrangersHeaderError(LoginRefusedError):
    """The header is there, and does not come from a proxy of the list."""


Networks = Sequence[IPv4Network | IPv6Network]


def is_proxy(address: str, proxies: Networks) -> bool:
    try:
        found = ip_address(address)
    except ValueError:  # a socket without addresses
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return any(found in one for one in proxies)


def peer(scope: Scope) -> str:
    """The address of who connected; "" where the connection has none."""
    return str(scope["client"][0]) if scope.get("client") else ""


def client_address(scope: Scope, proxies: Networks) -> str:
    """The address of the user: what the last proxy of the list saw, where who connected is one of them."""
    address = peer(scope)
    said = ",".join(Headers(scope=scope).getlist("x-forwarded-for"))
    for one in reversed([part.strip() for part in said.split(",") if part.strip()]):
        if not is_proxy(address, proxies):
            break
        try:
            address = str(ip_address(one))
        except ValueError:
            break
    return address


def named_by_proxy(scope: Scope, way: ProxyWay, proxies: Networks) -> Identity | None:
    """The user of the header; None: there is none. Raises LoginRefusedError where it is there and does not count."""
    headers = Headers(scope=scope)
    names = headers.getlist(way.user)
    if not names:
        return None
    if not is_proxy(peer(scope), proxies):
        raise StrangersHeaderError(f"the header {way.user} does not come from a proxy of the list", names[0])
    if len(names) > 1:
        raise LoginRefusedError(
            f"the header {way.user} is there {len(names)} times: the proxy must replace what clients send"
        )
    if not names[0].strip():
        return None
    name = names[0].strip().rpartition("@")[0] if way.strip_realm and "@" in names[0] else names[0].strip()
    groups = way.separator.join(headers.getlist(way.groups)).split(way.separator) if way.groups else []
    return identity(name, [one.strip() for one in groups], "proxy")
