"""The roots of stores, as the database of this installation knows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy

from falcon_assets.ledger.data_roots import has_data, known_root, learn_root
from falcon_assets.orchestration.platform.open_ledger import tables_engine
from falcon_assets.orchestration.platform.postgres import database_url, unreachable
from falcon_assets.settings import Settings
from falcon_assets.storage.roots import KnownRoot, Look, RootGuard


class LedgerBook:
    """See :class:`falcon_assets.storage.roots.RootBook`; the database is opened when something is asked.

    Args:
        settings: Where the database is.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def known(self, cluster: str, place: str) -> KnownRoot | None:
        """See :class:`RootBook`."""
        with self._connection() as connection:
            return known_root(connection, cluster, place)

    def learn(self, cluster: str, place: str, look: Look) -> KnownRoot | None:
        """See :class:`RootBook`."""
        with self._connection() as connection:
            return learn_root(connection, cluster, place, look)

    def has_data(self, cluster: str, begins: str) -> bool:
        """See :class:`RootBook`."""
        with self._connection() as connection:
            return has_data(connection, cluster, begins)

    @contextmanager
    def _connection(self) -> Iterator[sqlalchemy.Connection]:
        url = database_url(self._settings)
        try:
            with tables_engine(url).begin() as connection:
                yield connection
        except sqlalchemy.exc.OperationalError as error:
            raise unreachable(url, error) from error


_GUARDS: dict[tuple[Path, str | None], RootGuard] = {}


def roots_of(settings: Settings) -> RootGuard:
    """Makes sure that the roots of stores are those that were used before; one for all of a process."""
    return _GUARDS.setdefault((settings.home, settings.database_url), RootGuard(LedgerBook(settings)))
