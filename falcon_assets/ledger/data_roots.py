"""Which roots of stores were used, and which mark each carries."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, select

from falcon_assets.ledger.database.locks import lock_in_transaction
from falcon_assets.ledger.database.upsert import upsert
from falcon_assets.ledger.tables import DATA_ROOTS, DATA_VERSIONS
from falcon_assets.storage.roots import KnownRoot, Look


def known_root(connection: Connection, cluster: str, place: str) -> KnownRoot | None:
    """What is remembered of a root; None: it was never used."""
    table = DATA_ROOTS.c
    found = connection.execute(
        select(table.mark, table.held).where(table.cluster == cluster, table.place == place)
    ).one_or_none()
    return None if found is None else KnownRoot(found.mark, found.held)


def known_roots(connection: Connection) -> dict[tuple[str, str], tuple[KnownRoot, datetime]]:
    """(cluster, place) of every root that was used -> what is remembered of it, and since when, in real time."""
    found = connection.execute(select(DATA_ROOTS))
    return {(row.cluster, row.place): (KnownRoot(row.mark, row.held), row.since) for row in found}


def learn_root(connection: Connection, cluster: str, place: str, look: Look) -> KnownRoot | None:
    """Has a root looked at while nobody else does, and remembers what it is then; None: there is nothing to remember.

    Whatever ``look`` raises is passed on, and nothing is remembered.
    """
    lock_in_transaction(connection, f"falcon root {cluster} {place}")
    before = known_root(connection, cluster, place)
    found = look(before)
    if found is not None and found != before:
        row = {"cluster": cluster, "place": place, "mark": found.mark, "held": found.held}
        upsert(connection, DATA_ROOTS, [{**row, "since": datetime.now(UTC)}])
    return found


def has_data(connection: Connection, cluster: str, begins: str) -> bool:
    """Whether instances are recorded as available below a root; ``begins`` is how their places do."""
    table = DATA_VERSIONS.c
    below = table.path.startswith(f"{begins.rstrip('/')}/", autoescape=True)
    asked = select(table.id).where(table.cluster == cluster, table.status == "AVAILABLE", below).limit(1)
    return connection.execute(asked).first() is not None
