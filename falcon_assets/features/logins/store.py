"""Sessions, tokens, users with passwords and attempts in the database; all times are real, not the falcon clock's."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Update, delete, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as pg_insert

from falcon_assets.errors import ReadOnlyError
from falcon_assets.features.logins.declaration import LoginsDeclaration, RoleName
from falcon_assets.features.logins.identity import LONGEST_NAME, Identity
from falcon_assets.history.database import lock_in_transaction
from falcon_assets.history.tables import API_TOKENS, LOCAL_USERS, LOGIN_ATTEMPTS, SESSIONS
from falcon_assets.operations.operation import Result

WINDOW = timedelta(minutes=15)
MOST_OF_NAME, MOST_OF_ADDRESS = 5, 100
"""Attempts that may fail within the window: of a name from an address, and of all names from it."""
TOKEN_PREFIX = "falcon_"  # noqa: S105 - so that scanners of repositories know one
_TO_THE_MINUTE = timedelta(minutes=1)


def new_secret() -> str:
    return secrets.token_urlsafe(32)


def hash_of(secret: str) -> str:
    """It needs no salt and no cost: a secret has 256 random bits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True)
class Session(Result):
    """A session; ``used`` to the minute, ``expires`` however often it is used."""

    id: int
    principal: str
    way: str
    address: str
    created: datetime
    used: datetime
    expires: datetime


_SHOWN = [SESSIONS.c[name] for name in ("id", "principal", "way", "address", "created", "used", "expires")]


def open_session(connection: Connection, who: Identity, address: str, declared: LoginsDeclaration) -> str:
    """Returns the secret of a new session; removes sessions and attempts that are over."""
    now, secret = datetime.now(UTC), new_secret()
    over = or_(SESSIONS.c.expires < now, SESSIONS.c.used < now - declared.idle)
    connection.execute(delete(SESSIONS).where(over))
    connection.execute(delete(LOGIN_ATTEMPTS).where(LOGIN_ATTEMPTS.c.at < now - WINDOW))
    values = {"hash": hash_of(secret), "principal": who.name, "groups": sorted(who.groups), "way": who.way}
    times = {"created": now, "used": now, "expires": now + declared.sessions.absolute.length}
    connection.execute(insert(SESSIONS), {**values, **times, "address": address})
    return secret


def user_of_session(connection: Connection, secret: str, idle: timedelta) -> Identity | None:
    """None: there is no such session, or it is over."""
    now = datetime.now(UTC)
    is_it = SESSIONS.c.hash == hash_of(secret)
    found = connection.execute(
        select(SESSIONS).where(is_it, SESSIONS.c.expires > now, SESSIONS.c.used > now - idle)
    ).one_or_none()
    if found is None:
        return None
    if found.used < now - _TO_THE_MINUTE:
        _note(connection, update(SESSIONS).where(is_it).values(used=now))
    return Identity(found.principal, frozenset(found.groups), found.way)


def _note(connection: Connection, use: Update) -> None:
    """Who is logged in goes on reading where the database can only be read."""
    with suppress(ReadOnlyError):
        connection.execute(use)
        connection.commit()


def close_session(connection: Connection, secret: str) -> str | None:
    """Returns whose it was; None: there is none."""
    gone = delete(SESSIONS).where(SESSIONS.c.hash == hash_of(secret)).returning(SESSIONS.c.principal)
    return connection.execute(gone).scalar_one_or_none()


def sessions(connection: Connection) -> list[Session]:
    """Those that are not over by their absolute time, the last used first."""
    rows = connection.execute(
        select(*_SHOWN).where(SESSIONS.c.expires > datetime.now(UTC)).order_by(SESSIONS.c.used.desc())
    )
    return [Session(**row._mapping) for row in rows]


def revoke_sessions(connection: Connection, *which: ColumnElement[bool]) -> list[Session]:
    return [Session(**row._mapping) for row in connection.execute(delete(SESSIONS).where(*which).returning(*_SHOWN))]


@dataclass(frozen=True)
class ApiToken(Result):
    """A token, without its secret; ``used`` to the minute, None: never; ``revoked`` None: it is not."""

    name: str
    role: str
    groups: list[str]
    created_by: str
    created: datetime
    expires: datetime
    used: datetime | None
    revoked: datetime | None

    @property
    def is_valid(self) -> bool:
        return self.revoked is None and self.expires > datetime.now(UTC)


def tokens(connection: Connection) -> list[ApiToken]:
    shown = [one for one in API_TOKENS.c if one.name != "hash"]
    return [ApiToken(**row._mapping) for row in connection.execute(select(*shown).order_by(API_TOKENS.c.name))]


def add_token(
    connection: Connection, name: str, role: RoleName, groups: Collection[str], by: str, expires: datetime
) -> str:
    """Returns the secret of a new token, which replaces one of that name that is not valid any more."""
    secret = f"{TOKEN_PREFIX}{new_secret()}"
    values = {"hash": hash_of(secret), "role": role, "groups": sorted(groups), "created_by": by}
    row = {**values, "created": datetime.now(UTC), "expires": expires, "used": None, "revoked": None}
    statement = pg_insert(API_TOKENS).values(name=name, **row)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=row))
    return secret


def revoke_token(connection: Connection, name: str) -> bool:
    which = (API_TOKENS.c.name == name, API_TOKENS.c.revoked.is_(None))
    return bool(connection.execute(update(API_TOKENS).where(*which).values(revoked=datetime.now(UTC))).rowcount)


def user_of_token(connection: Connection, secret: str) -> tuple[Identity, RoleName] | None:
    """None: there is no such token, or it has expired or was revoked."""
    now = datetime.now(UTC)
    is_it = API_TOKENS.c.hash == hash_of(secret)
    found = connection.execute(
        select(API_TOKENS).where(is_it, API_TOKENS.c.expires > now, API_TOKENS.c.revoked.is_(None))
    ).one_or_none()
    if found is None:
        return None
    if found.used is None or found.used < now - _TO_THE_MINUTE:
        _note(connection, update(API_TOKENS).where(is_it).values(used=now))
    return Identity(found.name, frozenset(found.groups), "token"), found.role


@dataclass(frozen=True)
class LocalUser(Result):
    """A user with a password; ``changed``: when it was set."""

    name: str
    groups: list[str]
    created: datetime
    changed: datetime


def local_users(connection: Connection) -> list[LocalUser]:
    shown = [one for one in LOCAL_USERS.c if one.name != "hash"]
    return [LocalUser(**row._mapping) for row in connection.execute(select(*shown).order_by(LOCAL_USERS.c.name))]


def local_user(connection: Connection, name: str) -> Any:
    """The row with the hash of the password; None: there is none."""
    return connection.execute(select(LOCAL_USERS).where(LOCAL_USERS.c.name == name)).one_or_none()


def set_user(connection: Connection, name: str, password_hash: str, groups: Iterable[str] | None) -> None:
    """``groups`` None: those that the user has."""
    now = datetime.now(UTC)
    changed = {"hash": password_hash, "changed": now} | ({} if groups is None else {"groups": sorted(groups)})
    statement = pg_insert(LOCAL_USERS).values({"name": name, "created": now, "groups": [], **changed})
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=changed))


def remove_user(connection: Connection, name: str) -> bool:
    return bool(connection.execute(delete(LOCAL_USERS).where(LOCAL_USERS.c.name == name)).rowcount)


def begin_attempt(connection: Connection, name: str, address: str) -> bool:
    """Counts an attempt as failed until :func:`forgive`; False: too many failed, and it is not counted.

    It is counted before anything is compared, or many at once would all be looked at.
    """
    lock_in_transaction(connection, f"falcon login {address}")
    recent = (LOGIN_ATTEMPTS.c.address == address, LOGIN_ATTEMPTS.c.at > datetime.now(UTC) - WINDOW)
    own = func.count().filter(LOGIN_ATTEMPTS.c.name == name[:LONGEST_NAME])
    of_name, of_address = connection.execute(select(own, func.count()).where(*recent)).one()
    if of_name >= MOST_OF_NAME or of_address >= MOST_OF_ADDRESS:
        return False
    row = {"name": name[:LONGEST_NAME], "address": address, "at": datetime.now(UTC)}
    connection.execute(insert(LOGIN_ATTEMPTS), row)
    return True


def forgive(connection: Connection, name: str, address: str) -> None:
    """Forgets the attempts of a name from an address."""
    which = (LOGIN_ATTEMPTS.c.name == name[:LONGEST_NAME], LOGIN_ATTEMPTS.c.address == address)
    connection.execute(delete(LOGIN_ATTEMPTS).where(*which))
