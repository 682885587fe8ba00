"""Names and passwords of a directory (LDAP)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from falcon_assets.catalog.references import value_of
from falcon_assets.errors import SettingsError
from falcon_assets.features.logins.identity import Identity, LoginRefusedError, identity
from falcon_assets.model.base import Declaration, NonEmpty
from falcon_assets.model.reference import EnvironmentValue, FileValue

_SECONDS = 5
WRONG = "the name or the password is wrong"


class DirectorySearch(Declaration):
    """Where entries are looked for."""

    base: NonEmpty
    """The DN below which they are."""
    filter: NonEmpty
    """Which one is meant; {name} and {dn} stand for the user, and are escaped."""
    name: NonEmpty
    """The attribute with the name."""


class DirectoryWay(Declaration):
    """A directory whose users may log in with their passwords."""

    url: NonEmpty
    """ldaps://directory.example.com:636, or ldap:// with start_tls."""
    start_tls: bool = False
    """Whether an ldap:// connection is encrypted before anything is sent."""
    authorities: NonEmpty | None = None
    """PEM file with the authorities of the directory's certificate; default: those of the system."""
    bind_dn: NonEmpty | None = None
    """Who searches; default: anybody may."""
    bind_password: EnvironmentValue | FileValue | None = None
    """{env: NAME} or {file: PATH}."""
    users: DirectorySearch
    """How the entry of a user is found: {base: "ou=people,dc=example,dc=com", filter: "(uid={name})", name: uid}."""
    groups: DirectorySearch | None = Field(None)
    """How the groups are found: {base: ..., filter: "(member={dn})", name: cn}; default: there are none."""

    @model_validator(mode="after")
    def _encrypted(self) -> DirectoryWay:
        scheme = urlsplit(self.url).scheme
        if scheme not in ("ldap", "ldaps"):
            raise ValueError("url: must begin with ldaps:// or ldap://")
        if scheme == "ldap" and not self.start_tls:
            raise ValueError("url: passwords would cross the network in plain text: write ldaps://, or start_tls: true")
        if (self.bind_dn is None) != (self.bind_password is None):
            raise ValueError("bind_dn and bind_password: give both or none")
        return self


def named_by_directory(name: str, password: str, way: DirectoryWay, environ: Mapping[str, str]) -> Identity:
    """The user with that name and password.

    Raises:
        LoginRefusedError: there is none, or the password is another one.
        SettingsError: the directory cannot be asked, which says nothing about the user.
    """
    from ldap3.core.exceptions import LDAPException  # noqa: PLC0415 - an extra

    if not name or not password:  # without a password, a directory lets everybody in as nobody
        raise LoginRefusedError(WRONG, name)
    secret = value_of(way.bind_password, environ) if way.bind_password else None
    if way.bind_password and not secret:
        raise SettingsError(f"ldap: {way.bind_password} has no value")
    try:
        with _connected(way, way.bind_dn, secret) as searching:
            if not searching.bound:
                raise SettingsError("ldap: the directory refuses bind_dn and bind_password")
            found = _search(searching, way.users, name=name)
            dn = found[0]["dn"] if len(found) == 1 else f"cn=nobody,{way.users.base}"  # takes as long
            with _connected(way, dn, password) as own:
                if not own.bound or len(found) != 1:
                    raise LoginRefusedError(WRONG, name)
            groups = _search(searching, way.groups, name=name, dn=dn) if way.groups else []
            known = _values(found[0], way.users.name)
            named = [one for group in groups for one in _values(group, way.groups.name)] if way.groups else []
            return identity(known[0] if len(known) == 1 else None, named, "ldap")
    except LDAPException as error:
        raise SettingsError(f"ldap: the directory cannot be asked: {error}") from error


@contextmanager
def _connected(way: DirectoryWay, dn: str | None, password: str | None) -> Iterator[Any]:
    """A connection that has tried to bind, and is closed afterwards; ldap3's own context raises where that failed."""
    import ssl  # noqa: PLC0415 - as below

    import ldap3  # noqa: PLC0415 - an extra
    from ldap3.core.exceptions import LDAPException  # noqa: PLC0415 - as above

    tls = ldap3.Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=way.authorities, version=ssl.PROTOCOL_TLS_CLIENT)
    server = ldap3.Server(way.url, tls=tls, connect_timeout=_SECONDS, get_info=ldap3.NONE)
    made = ldap3.Connection(
        server,
        user=dn,
        password=password,
        authentication=ldap3.SIMPLE if dn else ldap3.ANONYMOUS,
        receive_timeout=_SECONDS,
        read_only=True,
        auto_referrals=False,
    )
    try:
        made.open(read_server_info=False)
        if way.start_tls and not made.start_tls(read_server_info=False):
            raise SettingsError("ldap: the directory does not start TLS")
        made.bind(read_server_info=False)
        yield made
    finally:
        with suppress(LDAPException):  # what it says about the user counts, however it ends
            made.unbind()


def _search(connection: Any, search: DirectorySearch, **values: str) -> list[Mapping[str, Any]]:
    from ldap3.utils.conv import escape_filter_chars  # noqa: PLC0415 - an extra

    asked = search.filter
    for key, value in values.items():
        asked = asked.replace(f"{{{key}}}", escape_filter_chars(value))
    connection.search(search.base, asked, attributes=[search.name], time_limit=_SECONDS)
    return [one for one in connection.response or () if one["type"] == "searchResEntry"]


def _values(entry: Mapping[str, Any], name: str) -> list[str]:
    found = entry["attributes"].get(name, [])
    return [str(one) for one in (found if isinstance(found, list) else [found])]
