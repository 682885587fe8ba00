"""Recognizes users: by what their requests carry, and by what they log in with. What it decides is in the audit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property

from sqlalchemy import Connection

from falcon_assets.errors import printable
from falcon_assets.features.logins import store
from falcon_assets.features.logins.browser import is_same
from falcon_assets.features.logins.declaration import LoginsDeclaration, read_logins
from falcon_assets.features.logins.identity import Identity, LoginRefusedError, TooManyAttemptsError, identity
from falcon_assets.features.logins.ways.directory import WRONG, named_by_directory
from falcon_assets.features.logins.ways.oidc import Attempt, OidcProvider
from falcon_assets.features.logins.ways.passwords import is_password
from falcon_assets.model.access import Principal, Role
from falcon_assets.operations.audit import AuditEntry, Outcome, write_audit
from falcon_assets.operations.installation import Installation
from falcon_assets.settings import Settings

LOGIN_PATH = "/falcon/login"
NO_ROLE = "you have no role here: ask who runs this installation"
_BEARER = "(bearer of a token)"


class Logins:
    """The ways in of an installation, with its database; for several threads at once."""

    def __init__(self, declared: LoginsDeclaration, installation: Installation) -> None:
        self.declared = declared
        self.settings: Settings = installation.settings
        self._engine = installation.database

    @cached_property
    def provider(self) -> OidcProvider | None:
        way = self.declared.oidc
        url = f"{self.declared.url}{LOGIN_PATH}/oidc/callback"
        return OidcProvider(way, url, self.settings.environ) if way else None

    def role_of(self, who: Identity) -> Principal:
        """Raises LoginRefusedError where the user has no role."""
        principal = self.declared.principal(who, self.settings.colo)
        if principal is None:
            raise LoginRefusedError(NO_ROLE, who.name)
        return principal

    def of_session(self, secret: str) -> Principal | None:
        """None: the session is over; raises LoginRefusedError where its user has no role any more."""
        with self._engine.connect() as connection:
            who = store.user_of_session(connection, secret, self.declared.idle)
        return self.role_of(who) if who else None

    def of_token(self, secret: str) -> Principal:
        """Raises LoginRefusedError."""
        with self._engine.connect() as connection:
            found = store.user_of_token(connection, secret) if secret.startswith(store.TOKEN_PREFIX) else None
        if found is None:
            raise LoginRefusedError("the token is unknown, expired or revoked", _BEARER)
        who, role = found
        return Principal(who.name, who.groups, role=Role[role.upper()], way=who.way)

    def by_password(self, name: str, password: str, address: str) -> str:
        """Returns the secret of a new session; raises LoginRefusedError, and SettingsError: the directory is away."""
        name = printable(name)
        with self._engine.begin() as connection:
            if not store.begin_attempt(connection, name, address):
                raise TooManyAttemptsError("too many attempts failed: try again in 15 minutes", name)
        try:
            return self._enter(self._of_password(name, password), address, name)
        except LoginRefusedError as error:
            with self._engine.begin() as connection:
                self._denied(connection, error, address)
            raise

    def _of_password(self, name: str, password: str) -> Identity:
        with self._engine.connect() as connection:
            known = store.local_user(connection, name) if self.declared.passwords else None
        if known is None and self.declared.ldap:
            return named_by_directory(name, password, self.declared.ldap, self.settings.environ)
        if self.declared.passwords and is_password(password, known.hash if known else None) and known:
            return identity(known.name, known.groups, "password")
        raise LoginRefusedError(WRONG, name)

    def by_provider(self, answer: Mapping[str, str], attempt: Attempt, address: str) -> str:
        """Returns the secret of a new session; raises LoginRefusedError, and SettingsError: the provider is away.

        ``answer`` is what the provider has sent with the browser; ``attempt`` without a secret: the browser has none.
        """
        try:
            assert self.provider is not None
            if not attempt.secret or not is_same(answer.get("state", ""), attempt.of("state")):
                raise LoginRefusedError("this login was not begun in this browser, or it took too long: try again")
            if "error" in answer or "code" not in answer:
                raise LoginRefusedError(f"the provider refuses: {answer.get('error', 'it sends no code')[:100]}")
            return self._enter(self.provider.finish(answer["code"], attempt), address, "")
        except LoginRefusedError as error:
            self.refused(error, address)
            raise

    def _enter(self, who: Identity, address: str, attempted: str) -> str:
        self.role_of(who)
        with self._engine.begin() as connection:
            store.forgive(connection, attempted, address)
            secret = store.open_session(connection, who, address, self.declared)
            self._write(connection, "login", who.name, "done", f"by {who.way} from {address}")
        return secret

    def leave(self, secret: str) -> None:
        with self._engine.begin() as connection:
            if name := store.close_session(connection, secret):
                self._write(connection, "logout", name, "done", "")

    def refused(self, error: LoginRefusedError, address: str) -> None:
        """Writes it into the audit, unless so many attempts failed from there that it would be full of them."""
        with self._engine.begin() as connection:
            if store.begin_attempt(connection, error.name, address):
                self._denied(connection, error, address)

    def _denied(self, connection: Connection, error: LoginRefusedError, address: str) -> None:
        self._write(connection, "login", error.name or "(nobody)", "denied", f"{error} (from {address})")

    def _write(self, connection: Connection, operation: str, name: str, result: Outcome, message: str) -> None:
        entry = AuditEntry(
            at=self.settings.now(),
            recorded=datetime.now(UTC),
            principal=name,
            os_user=self.settings.user,
            way="login",
            operation=operation,
            entities=(),
            instances=None,
            first=None,
            last=None,
            reason="",
            result=result,
            message=message,
        )
        write_audit(connection, entry)


def open_logins(installation: Installation) -> Logins | None:
    """The ways in of FALCON_LOGINS; None: it is not set. Raises SettingsError where the file has problems."""
    path = installation.settings.logins
    return Logins(read_logins(path), installation) if path else None
