"""The clock of the database, its locks, migrations and bulk statements; decisions by another clock would be wrong."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, timedelta
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    ARRAY,
    ColumnElement,
    Connection,
    DateTime,
    Engine,
    Table,
    TableClause,
    TableValuedAlias,
    Text,
    cast,
    func,
    literal,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.types import TypeEngine

from falcon_assets.errors import SettingsError
from falcon_assets.history.tables import CLOCK, FEED_INSTANCES, METADATA, SCHEMA
from falcon_assets.planning.clock import Clock

_SURELY_SIMULATED = timedelta(days=2)
"""Distance between the falcon clock and the time at which Dagster recorded it; more than any time zone."""


def require_clock(connection: Connection, mine: Clock) -> None:
    """Raises SettingsError if the history of a database, with or without a ledger, has another clock."""
    if connection.execute(select(func.to_regclass(f"{SCHEMA}.{CLOCK.name}"))).scalar_one() is not None:
        known = connection.execute(select(CLOCK.c.tag)).scalar_one_or_none()
        if known is not None:
            _require(Clock.from_tag(known), mine)


def is_remembered(connection: Connection, mine: Clock) -> bool:
    """Whether a database with the tables of the ledger has exactly this clock; it may accept another one, too."""
    return connection.execute(select(CLOCK.c.tag)).scalar_one_or_none() == mine.tag


def remember_clock(connection: Connection, mine: Clock, events: TableClause, *, anew: bool = False) -> None:
    """Makes this clock that of the history, in the caller's transaction.

    ``events`` is Dagster's event log, with times in UTC. ``anew``: the user set the clock anew, and no process uses the
    old one: a running clock is replaced then.

    Raises:
        SettingsError: the history there has another clock.
    """
    locked = select(CLOCK.c.tag).with_for_update()
    known = connection.execute(locked).scalar_one_or_none()
    if known is None:
        first = insert(CLOCK).values(only=True, tag=_of_history(connection, mine, events).tag)
        connection.execute(first.on_conflict_do_nothing())
        known = connection.execute(locked).scalar_one()
    both_simulated = bool(known and mine.tag)
    if not (anew and both_simulated):
        _require(Clock.from_tag(known), mine)
    if known != mine.tag:
        connection.execute(CLOCK.update().values(tag=mine.tag))


def _require(known: Clock, mine: Clock) -> None:
    if known.may_go_on_as(mine):
        return
    way = "leave FALCON_CLOCK out" if mine.origin is not None else f"set FALCON_CLOCK={known.text}"
    raise SettingsError(
        f"the database uses another clock ({known}) than this process ({mine}); decisions by one are wrong by the "
        f"other: {way}, or keep another history with another FALCON_HOME or FALCON_DATABASE_URL"
    )


def _of_history(connection: Connection, mine: Clock, events: TableClause) -> Clock:
    """The clock of a database of an earlier version, inferred from its latest record; ``mine`` if nothing shows it."""
    if connection.execute(select(func.to_regclass(events.name))).scalar_one() is None:
        return mine
    newest = FEED_INSTANCES.c.event_id.desc()
    both = select(FEED_INSTANCES.c.seen_at, events.c.timestamp).join(
        events, events.c.id == FEED_INSTANCES.c.version_event
    )
    found = connection.execute(both.order_by(newest).limit(1)).one_or_none()
    if found is None:
        return mine
    apart = abs(found.seen_at - found.timestamp.replace(tzinfo=UTC))
    simulated = apart > _SURELY_SIMULATED
    if simulated and mine.origin is None:
        return Clock(origin=found.seen_at)
    return mine if simulated else Clock()


LEDGER_LOCK = "falcon ledger"


def lock_in_transaction(connection: Connection, name: str) -> None:
    """Waits for the lock of that name and keeps it to the end of the transaction."""
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _key(name)})


def try_lock(connection: Connection, name: str) -> bool:
    """Takes the lock of that name for as long as the connection lives; False: another connection has it."""
    return bool(connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": _key(name)}).scalar_one())


def try_locks(connection: Connection, names: Collection[str]) -> set[str]:
    """As :func:`try_lock` for each; returns those that it took."""
    keys = {_key(name): name for name in names}
    asked = text("SELECT key FROM unnest(CAST(:keys AS bigint[])) AS key WHERE pg_try_advisory_lock(key)")
    return {keys[key] for key in connection.execute(asked, {"keys": list(keys)}).scalars()}


def unlock(connection: Connection, *names: str) -> None:
    given = text("SELECT count(pg_advisory_unlock(key)) FROM unnest(CAST(:keys AS bigint[])) AS key")
    connection.execute(given, {"keys": [_key(name) for name in names]})


def locked(connection: Connection, names: Collection[str]) -> set[str]:
    return set(holders(connection, names))


def holders(connection: Connection, names: Collection[str]) -> dict[str, int]:
    """Locks that are held, with the number of the session (``pid`` in PostgreSQL) that holds them."""
    keys = {_key(name): name for name in names}
    # PostgreSQL shows the two halves of the key, as unsigned numbers.
    found = connection.execute(
        text(
            "SELECT (classid::bigint << 32) | objid::bigint AS key, pid FROM pg_locks WHERE locktype = 'advisory' "
            "AND objsubid = 1 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = "
            "current_database()) AND ((classid::bigint << 32) | objid::bigint) = ANY(:keys)"
        ),
        {"keys": list(keys)},
    )
    return {keys[key]: pid for key, pid in found}


def _key(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big", signed=True)


_MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(engine: Engine) -> None:
    """Creates or migrates the tables in one transaction; safe to call from several processes at once.

    Raises SettingsError where they are older than the oldest that can be migrated, or of a newer version.
    """
    with engine.connect() as connection:
        if revision(connection) == newest_revision():
            return
    from alembic import command  # noqa: PLC0415 - takes a while, and is needed once for a version
    from alembic.config import Config  # noqa: PLC0415 - as above

    with engine.begin() as connection:
        lock_in_transaction(connection, LEDGER_LOCK)
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
        config.attributes["connection"] = connection
        found = revision(connection)  # asked again: another process may have been faster
        if found is None:
            METADATA.create_all(connection, checkfirst=False)
            command.stamp(config, "head")
        elif found in revisions():
            command.upgrade(config, "head")
        else:
            raise SettingsError(": ".join(wrong_revision(found)))


def revision(connection: Connection) -> str | None:
    """Returns the revision of the ledger's tables; None: there are none."""
    table = f"{SCHEMA}.alembic_version"
    if connection.execute(select(func.to_regclass(table))).scalar_one() is None:
        return None
    return connection.execute(text(f"SELECT version_num FROM {table}")).scalar_one_or_none()  # noqa: S608 - a constant


def require_known_revision(connection: Connection) -> None:
    """Raises SettingsError where a newer version has migrated the tables since this process opened them."""
    found = revision(connection)
    if found is not None and found > newest_revision():
        raise SettingsError(": ".join(wrong_revision(found)))


@cache
def revisions() -> list[str]:
    """Those that a ledger of this version may have, the oldest that is migrated first."""
    return sorted(file.name.partition("_")[0] for file in (_MIGRATIONS / "versions").glob("[0-9]*.py"))


def newest_revision() -> str:
    return revisions()[-1]


def wrong_revision(found: str) -> tuple[str, str]:
    """Returns why a ledger of that revision cannot be migrated, and what to do."""
    oldest, newest = revisions()[0], newest_revision()
    if found > newest:
        return (
            f"the tables of the ledger are of revision {found}, and this version of falcon-assets knows only those up "
            f"to {newest}",
            "install the version of falcon-assets that made them, or a newer one",
        )
    return (
        f"the tables of the ledger are of revision {found}, and this version migrates those from {oldest} on",
        f"run falcon ledger status with an earlier version of falcon-assets, one that knows {oldest}, then with this",
    )


T = TypeVar("T")
_Record = TypeVar("_Record")
_CHUNK = 1000
TEXT, INSTANT = Text(), DateTime(timezone=True)


def of_row(kind: type[_Record], row: Any, **converted: Any) -> _Record:
    """A dataclass whose fields are columns; ``converted`` are those that the database has in another type."""
    said = row._mapping  # made anew each time it is asked for
    return kind(**{name: said[name] for name in _names(kind)} | converted)


_names: Callable[[Any], list[str]] = cache(lambda kind: [one.name for one in fields(kind)])


def upsert(
    connection: Connection, table: Table, rows: Sequence[dict[str, Any]], where: ColumnElement[bool] | None = None
) -> None:
    """Inserts rows, all columns given; rows with an existing key are replaced where ``where`` holds."""
    names = [column.name for column in table.c]
    keys = [column.name for column in table.primary_key]
    last = {tuple(row[key] for key in keys): row for row in rows}.values()  # one statement changes a row once
    for part in parts(last):
        given = rows_of(table, {name: [row[name] for row in part] for name in names})
        statement = insert(table).from_select(names, select(*given.c))
        others = {name: statement.excluded[name] for name in names if name not in keys}
        connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=others, where=where))


def rows_of(table: Table, columns: Mapping[str, Sequence[Any]]) -> TableValuedAlias:
    """Returns rows of these columns of a table, as :func:`unnested`."""
    return unnested(**{name: (table.c[name].type, values) for name, values in columns.items()})


def unnested(**columns: tuple[TypeEngine[Any], Iterable[Any]]) -> TableValuedAlias:
    """Returns rows of these columns, one array each: VALUES would be compiled anew for each number of rows."""
    types = {name: ARRAY(of, dimensions=1) for name, (of, _) in columns.items()}
    arrays = [cast(literal(list(values), types[name]), types[name]) for name, (_, values) in columns.items()]
    return func.unnest(*arrays).table_valued(*columns).render_derived(name="given")


def among(columns: Sequence[ColumnElement[Any]], keys: Sequence[Sequence[Any]]) -> ColumnElement[bool]:
    """Whether the columns have the values of one of the keys; compiling takes constant time."""
    given = {f"key_{at}": (column.type, [key[at] for key in keys]) for at, column in enumerate(columns)}
    return tuple_(*columns).in_(select(*unnested(**given).c))


def parts(items: Collection[T], size: int = _CHUNK) -> Iterable[list[T]]:
    rest = iter(items)
    while part := list(islice(rest, size)):
        yield part
