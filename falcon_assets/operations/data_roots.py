"""Roots of stores that were used, with their marks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy
from sqlalchemy import Connection, or_, select

from falcon_assets.history.database import lock_in_transaction, upsert
from falcon_assets.history.platform.open_ledger import tables_engine
from falcon_assets.history.platform.postgres import database_url, unreachable
from falcon_assets.history.tables import DATA_ROOTS, DATA_VERSIONS
from falcon_assets.model.store_url import url_path
from falcon_assets.settings import Settings
from falcon_assets.storage.roots import KnownRoot, Look, RootGuard


def known_root(connection: Connection, cluster: str, place: str) -> KnownRoot | None:
    """None: it was never used."""
    table = DATA_ROOTS.c
    found = connection.execute(
        select(table.mark, table.held).where(table.cluster == cluster, table.place == place)
    ).one_or_none()
    return None if found is None else KnownRoot(found.mark, found.held)


def known_roots(connection: Connection) -> dict[tuple[str, str], tuple[KnownRoot, datetime]]:
    """By (cluster, place), with the real time of first use."""
    found = connection.execute(select(DATA_ROOTS))
    return {(row.cluster, row.place): (KnownRoot(row.mark, row.held), row.since) for row in found}


def learn_root(connection: Connection, cluster: str, place: str, look: Look) -> KnownRoot | None:
    """Looks at a root under a lock and records the result; None, or an error of ``look``: nothing is recorded."""
    lock_in_transaction(connection, f"falcon root {cluster} {place}")
    before = known_root(connection, cluster, place)
    found = look(before)
    if found is not None and found != before:
        row = {"cluster": cluster, "place": place, "mark": found.mark, "held": found.held}
        upsert(connection, DATA_ROOTS, [{**row, "since": datetime.now(UTC)}])
    return found


def has_data(connection: Connection, cluster: str, begins: str) -> bool:
    """Whether instances are recorded as available at a place, or below it."""
    table, place = DATA_VERSIONS.c, begins.rstrip("/")
    below = or_(table.path == place, table.path.startswith(f"{place}/", autoescape=True))
    asked = select(table.id).where(table.cluster == cluster, table.status == "AVAILABLE", below).limit(1)
    return connection.execute(asked).first() is not None


def moved_from(connection: Connection, cluster: str, place: str) -> list[str]:
    """Returns the paths of other places at which the mark of a root was seen: it was there before."""
    table = DATA_ROOTS.c
    mark = select(table.mark).where(table.cluster == cluster, table.place == place).scalar_subquery()
    others = select(table.place).where(table.cluster == cluster, table.place != place, table.mark == mark)
    return [url_path(one) for one in connection.scalars(others)]


class LedgerBook:
    """Opens the database on each call."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def known(self, cluster: str, place: str) -> KnownRoot | None:
        with self._connection() as connection:
            return known_root(connection, cluster, place)

    def learn(self, cluster: str, place: str, look: Look) -> KnownRoot | None:
        with self._connection() as connection:
            return learn_root(connection, cluster, place, look)

    def has_data(self, cluster: str, begins: str) -> bool:
        with self._connection() as connection:
            return has_data(connection, cluster, begins)

    def moved_from(self, cluster: str, place: str) -> list[str]:
        with self._connection() as connection:
            return moved_from(connection, cluster, place)

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
    """The process's one guard against roots of stores other than those used before."""
    return _GUARDS.setdefault((settings.home, settings.database_url), RootGuard(LedgerBook(settings)))
