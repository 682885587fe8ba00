"""The file of logins (FALCON_LOGINS): ways in, what roles they give, and how long sessions last."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from falcon_assets.base.installed import is_installed
from falcon_assets.catalog.settings_files import FrontAddress, parts_of_url, read_settings_file
from falcon_assets.errors import SettingsError
from falcon_assets.features.logins.identity import Identity
from falcon_assets.features.logins.ways.certificates import CertificatesWay
from falcon_assets.features.logins.ways.directory import DirectoryWay
from falcon_assets.features.logins.ways.oidc import OidcWay
from falcon_assets.features.logins.ways.passwords import PasswordsWay
from falcon_assets.features.logins.ways.proxy import ProxyWay
from falcon_assets.model.access import Principal, Role
from falcon_assets.model.base import Declaration, NonEmpty
from falcon_assets.model.frequency import Frequency

RoleName = Literal["viewer", "launcher", "editor", "admin"]
_EXTRAS = {"oidc": "serve", "passwords": "serve", "ldap": "ldap"}


class Grant(Declaration):
    """A role, and who has it; of several the highest counts."""

    role: RoleName
    """viewer, launcher, editor or admin."""
    users: tuple[NonEmpty, ...] = ()
    """Names of users."""
    groups: tuple[NonEmpty, ...] = ()
    """Names of groups, as the way in says them."""
    everybody: bool = False
    """Whether all who can log in have it."""
    colo: NonEmpty | None = None
    """Only where FALCON_COLO is this colo; default: everywhere."""

    @model_validator(mode="after")
    def _of_somebody(self) -> Grant:
        if not (self.users or self.groups or self.everybody):
            raise ValueError("say who has the role: users, groups, or everybody: true")
        return self

    def is_for(self, who: Identity, colo: str | None) -> bool:
        named = self.everybody or who.name in self.users or not who.groups.isdisjoint(self.groups)
        return named and self.colo in (None, colo)


class SessionTimes(Declaration):
    """How long a session lasts."""

    idle: Frequency = Frequency.parse("hours(8)")
    """It ends when it was not used for that long."""
    absolute: Frequency = Frequency.parse("days(7)")
    """It ends then, however often it is used."""


class LoginsDeclaration(Declaration):
    """Who may log in, how, and what they may do."""

    url: FrontAddress
    """The address of the front, as browsers see it, with its path prefix: https://falcon.example.com."""
    roles: tuple[Grant, ...] = Field(min_length=1)
    """Who has which role. Whoever has none is refused."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Addresses of the proxies in front, whose headers count: 10.0.0.5, 10.1.0.0/16."""
    proxy_users: tuple[NonEmpty, ...] = ()
    """Users, known by a token or a certificate, who may ask for others: fronts of several colos. The others have the
    roles that they have here, and at most those that they have there."""
    oidc: OidcWay | None = None
    """Logins by OpenID Connect."""
    proxy: ProxyWay | None = None
    """Users whom a proxy in front names in a header."""
    certificates: CertificatesWay | None = None
    """Certificates of clients, over TLS."""
    ldap: DirectoryWay | None = None
    """Names and passwords of a directory."""
    passwords: PasswordsWay | None = None
    """Names and passwords of `falcon admin user add`."""
    sessions: SessionTimes = SessionTimes()
    """How long people stay logged in."""

    @model_validator(mode="after")
    def _proxied(self) -> LoginsDeclaration:
        if self.proxy and not self.proxies:
            raise ValueError("proxy: list the addresses of the proxy under proxies, or everybody could name a user")
        return self

    @property
    def origin(self) -> str:
        """Scheme, host and port, as browsers say them."""
        split = parts_of_url(self.url)
        usual = {"http": 80, "https": 443}[split.scheme]
        host = f"[{split.hostname}]" if ":" in (split.hostname or "") else split.hostname
        return f"{split.scheme}://{host}" + (f":{split.port}" if split.port not in (None, usual) else "")

    @property
    def prefix(self) -> str:
        """The path of the front, without a slash at the end."""
        return parts_of_url(self.url).path

    @property
    def is_secure(self) -> bool:
        return self.url.startswith("https://")

    @property
    def has_form(self) -> bool:
        """Whether people can log in with a password."""
        return bool(self.ldap or self.passwords)

    @property
    def idle(self) -> timedelta:
        return self.sessions.idle.length

    def principal(self, who: Identity, colo: str | None) -> Principal | None:
        """None: nothing gives the user a role."""
        roles = [Role[one.role.upper()] for one in self.roles if one.is_for(who, colo)]
        return Principal(who.name, who.groups, role=max(roles), way=who.way) if roles else None


def read_logins(path: Path) -> LoginsDeclaration:
    """Reads the file of logins.

    Raises:
        SettingsError: it cannot be read or has problems, each with its line; or a library that it needs is missing.
    """
    found = read_settings_file("FALCON_LOGINS", path, LoginsDeclaration, "nobody can log in")
    require_libraries(name for name in _EXTRAS if getattr(found, name))
    return found


def require_libraries(ways: Iterable[str]) -> None:
    """Raises SettingsError where what these ways need is not installed."""
    for name in ways:
        if not is_installed(package := f"falcon-assets[{_EXTRAS[name]}]"):
            raise SettingsError(f"{name} needs libraries that are not installed: pip install '{package}'")
