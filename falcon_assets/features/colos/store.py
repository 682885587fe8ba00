"""The journal: what colos are to have, in the database of the front."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, delete, func, or_, select, text, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import OperationalError

from falcon_assets.errors import LockedError
from falcon_assets.features.colos.rules import Journal, Wanted
from falcon_assets.history.database import upsert
from falcon_assets.history.tables import COLO_WANTED, COLOS_READ
from falcon_assets.model.entity import Key

_ROW = COLO_WANTED.c
_LOCK_SECONDS = 30


def read_journal(connection: Connection, colos: Sequence[str], names: Collection[str]) -> Journal:
    """What is known of entities of these names, and of all clusters."""
    rows = _rows(connection, or_(_ROW.name.in_(list(names)), _ROW.kind == "cluster") & _ROW.colo.in_(list(colos)))
    return Journal(colos, rows, unread(connection, colos))


def unread(connection: Connection, colos: Sequence[str]) -> Sequence[str]:
    """Colos whose entities were never read."""
    known = {*connection.execute(select(COLOS_READ.c.colo)).scalars()}
    return [one for one in colos if one not in known]


def places(connection: Connection) -> Mapping[str, str]:
    """Cluster -> its colo."""
    asked = select(_ROW.name, _ROW.place).where(_ROW.kind == "cluster", _ROW.present, _ROW.place == _ROW.colo)
    return {row.name: row.place for row in connection.execute(asked)}


def pending(connection: Connection, colo: str) -> Sequence[Wanted]:
    """What a colo does not have yet, in the order in which it was asked for."""
    return _rows(connection, (_ROW.colo == colo) & _ROW.is_pending)


def with_problems(connection: Connection) -> Sequence[Wanted]:
    """What colos do not have yet, or have refused."""
    return _rows(connection, _ROW.is_pending | (_ROW.problem != ""))


def pending_numbers(connection: Connection) -> Mapping[str, int]:
    """Colo -> how many entities it does not have yet as they are wanted."""
    counted = select(_ROW.colo, func.count().label("number")).where(_ROW.is_pending).group_by(_ROW.colo)
    return {row.colo: row.number for row in connection.execute(counted)}


def write_rows(connection: Connection, rows: Mapping[tuple[str, Key], Wanted | None]) -> None:
    """Writes the rows of colos and entities; None: nothing is known of one any more."""
    gone = [(colo, *key) for (colo, key), row in rows.items() if row is None]
    if gone:
        connection.execute(delete(COLO_WANTED).where(tuple_(_ROW.colo, _ROW.kind, _ROW.name).in_(gone)))
    upsert(connection, COLO_WANTED, [_values(row) for row in rows.values() if row is not None])


def adopt(connection: Connection, colo: str, found: Iterable[Wanted]) -> None:
    """Takes over what a colo has, except what the journal knows better."""
    if rows := [_values(one) for one in found]:
        connection.execute(insert(COLO_WANTED).values(rows).on_conflict_do_nothing())
    connection.execute(insert(COLOS_READ).values(colo=colo, at=datetime.now(UTC)).on_conflict_do_nothing())


@contextmanager
def changing(engine: Engine, names: Iterable[str]) -> Iterator[None]:
    """Holds the names of entities for one change at a time, on all fronts of the database.

    Raises LockedError after 30 seconds.
    """
    with engine.begin() as connection:
        connection.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"))
        for name in sorted({*names}):  # in one order: two changes must not wait for each other
            try:
                connection.execute(select(func.pg_advisory_xact_lock(_number(name))))
            except OperationalError as error:
                raise LockedError(f"{name!r} is being changed by somebody else: try again in a moment") from error
        yield


@contextmanager
def making_up(engine: Engine, colo: str, names: Iterable[str]) -> Iterator[Collection[str]]:
    """Holds one colo, and those of the names that nobody changes, which it yields; other colos may have them, too."""
    with engine.begin() as connection:
        alone = connection.execute(select(func.pg_try_advisory_xact_lock(_number(f"colo {colo}")))).scalar_one()
        shared = func.pg_try_advisory_xact_lock_shared
        yield [one for one in {*names} if alone and connection.execute(select(shared(_number(one)))).scalar_one()]


def _number(what: str) -> ColumnElement[int]:
    return func.hashtextextended(f"falcon colos {what}", 0)


def _rows(connection: Connection, where: ColumnElement[bool]) -> list[Wanted]:
    order = (_ROW.version, _ROW.kind, _ROW.name, _ROW.colo)
    return [Wanted(**row._mapping) for row in connection.execute(select(COLO_WANTED).where(where).order_by(*order))]


def _values(row: Wanted) -> dict[str, Any]:
    return {one.name: getattr(row, one.name) for one in fields(row)}
