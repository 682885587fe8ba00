"""Operations on tokens of programs, users with passwords, and sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import Field

from falcon_assets.errors import UnknownEntityError, UsageError
from falcon_assets.features.logins import store
from falcon_assets.features.logins.declaration import RoleName, require_libraries
from falcon_assets.features.logins.identity import is_name
from falcon_assets.features.logins.store import ApiToken, LocalUser, Session
from falcon_assets.features.logins.ways.passwords import LONGEST_PASSWORD, hashed
from falcon_assets.history.tables import SESSIONS
from falcon_assets.model.access import Role
from falcon_assets.model.frequency import Frequency
from falcon_assets.operations.acting import require_role
from falcon_assets.operations.audit import Audit, audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Result
from falcon_assets.operations.paging import Fields, ListOperation, Page, select

_LEAST = 12
"""Characters of a password (source: NIST SP 800-63B asks for 8, and more without a second factor)."""
_USUAL = "days(90)"
_LONGEST = Frequency.parse("days(366)")


class AccessChange(Change):
    """A change of who may come in: for admins, and for superusers of the machine."""

    role = Role.ADMIN
    of_owners = False
    kind: ClassVar[str] = ""

    @contextmanager
    def changing(self, installation: Installation, *names: str) -> Iterator[Audit]:
        with audited(installation, self.command, self) as audit:
            audit.about((self.kind, name) for name in names)
            require_role(audit.principal, self.command.removeprefix("admin "), self.role)
            yield audit


@dataclass(frozen=True)
class NewToken(Result):
    """``token`` is shown now only: what is kept is its hash. Empty: of a dry run."""

    name: str
    role: str
    expires: datetime
    token: str


class CreateToken(AccessChange):
    """Create a token for a program, and print it. It is shown once.

    NAME is the name of the program for `acl`, audit and tag `user`. Programs send the token as `Authorization: Bearer`.
    Users of the machine need to be in FALCON_SUPERUSERS.
    """

    command = "admin token create"
    kind = "token"
    name: Annotated[str, Given("NAME")]
    as_role: Annotated[RoleName, Given(flags=("--role",))] = Field(
        "viewer", description="What it may do: nothing above that role. The default is viewer."
    )
    groups: Annotated[tuple[str, ...], Given(flags=("--group",), metavar="GROUP")] = Field(
        (), description="Group that it is a member of; may be given more than once."
    )
    expires: Annotated[str, Given(metavar="DURATION")] = Field(
        _USUAL, description=f"How long it is valid, {_LONGEST} at most. The default is {_USUAL}."
    )

    def run(self, installation: Installation) -> NewToken:
        """Raises UsageError: a valid token has that name, or the name or duration is not legal."""
        lasts = Frequency.parse(self.expires)
        if lasts.length > _LONGEST.length:
            raise UsageError(f"{lasts} is too long: a token is valid for {_LONGEST} at most")
        _require_name(self.name)
        ends = datetime.now(UTC) + lasts.length
        with self.changing(installation, self.name) as audit, installation.database.begin() as connection:
            if any(one.name == self.name and one.is_valid for one in store.tokens(connection)):
                raise UsageError(f"there is a valid token {self.name!r}: revoke it first, or choose another name")
            made = ""
            if not self.dry_run:
                made = store.add_token(connection, self.name, self.as_role, self.groups, audit.principal.name, ends)
            audit.result(changed=True, connection=connection)
        return NewToken(self.name, self.as_role, ends, made)


TOKEN_FIELDS: Fields[ApiToken] = {
    "name": lambda one: [one.name],
    "role": lambda one: [one.role],
    "group": lambda one: one.groups,
    "created-by": lambda one: [one.created_by],
}


class ListTokens(ListOperation):
    """List the tokens of programs, without what makes them valid. Their times are real."""

    command = "admin token list"
    role = Role.ADMIN
    fields = TOKEN_FIELDS

    def run(self, installation: Installation) -> Page[ApiToken]:
        with installation.database.connect() as connection:
            return select(store.tokens(connection), self.query, TOKEN_FIELDS)


class RevokeToken(AccessChange):
    """Revoke the token NAME: the next request with it is refused."""

    command = "admin token revoke"
    kind = "token"
    name: Annotated[str, Given("NAME")]

    def run(self, installation: Installation) -> bool:
        """False: it was revoked before. Raises UnknownEntityError."""
        with self.changing(installation, self.name) as audit, installation.database.begin() as connection:
            _require_known("token", self.name, {one.name for one in store.tokens(connection)})
            changed = not self.dry_run and store.revoke_token(connection, self.name)
            audit.result(changed, connection)
        return changed


class _WithPassword(AccessChange):
    kind = "user"
    name: Annotated[str, Given("NAME")]
    password: Annotated[str, Given(programs_only=True)] = Field("", repr=False)

    def checked(self) -> str:
        """Returns the hash of the password; raises UsageError where it is too short or long, SettingsError."""
        require_libraries(["passwords"])
        if not _LEAST <= len(self.password) <= LONGEST_PASSWORD:
            raise UsageError(f"the password must have {_LEAST} characters at least, and {LONGEST_PASSWORD} at most")
        return hashed(self.password)


class AddUser(_WithPassword):
    """Add a user who logs in with a password, which is read from standard input, or asked for.

    The user's roles are in the file of logins (FALCON_LOGINS), which must have `passwords: {}`.
    """

    command = "admin user add"
    groups: Annotated[tuple[str, ...], Given(flags=("--group",), metavar="GROUP")] = Field(
        (), description="Group that the user is a member of; may be given more than once."
    )

    def run(self, installation: Installation) -> bool:
        """Raises UsageError: the user exists, or name or password is not legal."""
        _require_name(self.name)
        with self.changing(installation, self.name) as audit, installation.database.begin() as connection:
            if store.local_user(connection, self.name):
                raise UsageError(
                    f"there is a user {self.name!r}: falcon admin user password {self.name} sets the password"
                )
            made = self.checked()
            if not self.dry_run:
                store.set_user(connection, self.name, made, self.groups)
            audit.result(changed=True, connection=connection)
        return True


class SetPassword(_WithPassword):
    """Set the password of the user NAME, and end the user's sessions.

    The password is read from standard input, or asked for.
    """

    command = "admin user password"

    def run(self, installation: Installation) -> bool:
        """Raises UnknownEntityError, UsageError."""
        with self.changing(installation, self.name) as audit, installation.database.begin() as connection:
            _require_known("user", self.name, {one.name for one in store.local_users(connection)})
            made = self.checked()
            if not self.dry_run:
                store.set_user(connection, self.name, made, None)
                store.revoke_sessions(connection, SESSIONS.c.principal == self.name, SESSIONS.c.way == "password")
            audit.result(changed=True, connection=connection)
        return True


USER_FIELDS: Fields[LocalUser] = {"name": lambda one: [one.name], "group": lambda one: one.groups}


class ListUsers(ListOperation):
    """List the users who log in with a password of this installation."""

    command = "admin user list"
    role = Role.ADMIN
    fields = USER_FIELDS

    def run(self, installation: Installation) -> Page[LocalUser]:
        with installation.database.connect() as connection:
            return select(store.local_users(connection), self.query, USER_FIELDS)


class RemoveUser(AccessChange):
    """Remove the user NAME, and end the user's sessions."""

    command = "admin user remove"
    kind = "user"
    name: Annotated[str, Given("NAME")]

    def run(self, installation: Installation) -> bool:
        """Raises UnknownEntityError."""
        with self.changing(installation, self.name) as audit, installation.database.begin() as connection:
            _require_known("user", self.name, {one.name for one in store.local_users(connection)})
            if not self.dry_run:
                store.remove_user(connection, self.name)
                store.revoke_sessions(connection, SESSIONS.c.principal == self.name, SESSIONS.c.way == "password")
            audit.result(changed=True, connection=connection)
        return True


SESSION_FIELDS: Fields[Session] = {
    "principal": lambda one: [one.principal],
    "way": lambda one: [one.way],
    "address": lambda one: [one.address],
}


class ListSessions(ListOperation):
    """List the sessions of people who are logged in, the last used first. Their times are real."""

    command = "admin session list"
    role = Role.ADMIN
    fields = SESSION_FIELDS

    def run(self, installation: Installation) -> Page[Session]:
        with installation.database.connect() as connection:
            return select(store.sessions(connection), self.query, SESSION_FIELDS)


class RevokeSessions(AccessChange):
    """End the session ID, or all sessions of a user: the next request is refused."""

    command = "admin session revoke"
    kind = "user"
    id: Annotated[int | None, Given("[ID]")] = None
    user: str | None = Field(None, description="End all sessions of this user.")

    def run(self, installation: Installation) -> list[Session]:
        """Returns those that ended. Raises UsageError."""
        if (self.id is None) == (self.user is None):
            raise UsageError("give the ID of a session, or --user: falcon admin session list has both")
        with self.changing(installation) as audit, installation.database.begin() as connection:
            which = SESSIONS.c.id == self.id if self.id is not None else SESSIONS.c.principal == self.user
            found = [one for one in store.sessions(connection) if self.id == one.id or self.user == one.principal]
            if not self.dry_run:
                found = store.revoke_sessions(connection, which)
            audit.about(("user", one.principal) for one in found)
            audit.result(bool(found), connection)
        return found


def _require_name(name: str) -> None:
    if not is_name(name):
        raise UsageError("the name must have 1 to 200 printable characters, without spaces at its ends")


def _require_known(kind: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise UnknownEntityError(f"there is no {kind} {name!r}: falcon admin {kind} list has all")
