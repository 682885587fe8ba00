"""What changed in PostgreSQL since the instance before: by transactions, or by a column where there are none to see.

A row knows the transaction that wrote it (``xmin``). Of all transactions before the oldest one that runs, the *horizon*
of a snapshot, it is known how they ended, so what they wrote is seen, and nothing of theirs comes later. Each instance
reads what was written by transactions from one horizon up to the next; those in between that are still running, or
began later, are for the next instance, even if they are committed already. Transactions are compared with the horizon
only: lists of running ones do not name all subtransactions. One that is prepared counts as running.

Rows have the last 32 bits of the number of their transaction, and those of any age keep them. They are completed
relative to the next number, which is right for the last four billion transactions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from psycopg2 import sql
from psycopg2.extensions import cursor as Cursor  # noqa: N812 - it is a class

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.datasource_type import ReadRequest
from falcon_assets.model.frequency import Frequency

_MARK = re.compile(r"(\d+)@(\d+)")
_NEXT = sql.SQL("(SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint)")
_AGE_OF_NEXT = sql.SQL(
    "(SELECT age((pg_snapshot_xmax(pg_current_snapshot())::text::bigint & 4294967295)::text::xid)::bigint)"
)
_HORIZON = """
    SELECT pg_snapshot_xmin(now)::text::bigint, pg_snapshot_xmax(now)::text::bigint, system_identifier,
           (SELECT min(began) FROM (
                SELECT xact_start AS began FROM pg_stat_activity
                WHERE backend_xid = (pg_snapshot_xmin(now)::text::bigint & 4294967295)::text::xid
                UNION ALL
                SELECT prepared FROM pg_prepared_xacts
                WHERE transaction = (pg_snapshot_xmin(now)::text::bigint & 4294967295)::text::xid) oldest)
    FROM pg_current_snapshot() AS now, pg_control_system()
"""
_TIMES = ("date", "timestamp with time zone", "timestamp without time zone")
REREAD = "rerun it with --force --properties import.extract=full, which reads all of the source"


class Changes(NamedTuple):
    """What is read.

    Attributes:
        conditions: All of them hold for what is read.
        low: As :class:`.SourceReading` has it, as ``high`` and ``behind``.
        is_empty: Whether there is nothing to read.
    """

    conditions: Sequence[sql.Composable]
    low: str | None = None
    high: str | None = None
    behind: str | None = None
    is_empty: bool = False


def by_transactions(cursor: Cursor, request: ReadRequest, where: str) -> Changes:
    """Raises DatasourceError where the instance before was read from another database; ``where`` names the source."""
    cursor.execute(_HORIZON)
    horizon, following, system, since = cursor.fetchone() or (0, 0, 0, None)
    low, high = (_transaction(one, system, where) for one in (request.low, request.upto))
    end = horizon if high is None else high
    if max(low or 0, end) > following:
        raise DatasourceError(
            f"{where}: the instance before was read up to transaction {max(low or 0, end)}, and the database is at "
            f"{following}: it was set back; {REREAD}"
        )
    begin = min(low or 0, end)
    # How many transactions before the next one the row was written.
    distance = sql.SQL("((age(xmin)::bigint - {}) & 4294967295)").format(_AGE_OF_NEXT)
    condition = sql.SQL("{distance} BETWEEN {next} - {last} AND {next} - {first}").format(
        distance=distance, next=_NEXT, last=sql.Literal(end - 1), first=sql.Literal(begin)
    )
    behind = None
    if high is None and horizon < following:
        began = f", which began at {since:%Y-%m-%dT%H:%M:%SZ}," if since else ""
        behind = f"transaction {horizon}{began} is not over: what {following - horizon} since then wrote comes later"
    return Changes([condition], f"{begin}@{system}", f"{end}@{system}", behind, begin == end)


def by_column(cursor: Cursor, request: ReadRequest, place: sql.Composable, where: str) -> Changes:
    """Raises DatasourceError where the column is no time, or there is no overlap."""
    declared = request.declared.incremental
    assert declared is not None
    if declared.overlap is None:
        raise DatasourceError(
            f"{where} does not show the transactions that wrote its rows, as tables do: what is committed late is "
            "found by reading again what is near the newest value, with overlap and merge: {upsert: {key: [..]}}"
        )
    column = sql.Identifier(declared.column)
    cursor.execute(sql.SQL("SELECT format_type(pg_typeof(max({}))::oid, NULL) FROM {}").format(column, place))
    (kind,) = cursor.fetchone() or ("",)
    if kind not in _TIMES:
        raise DatasourceError(
            f"{where}: column {declared.column!r} is {kind}: overlap is a length of time, so it has to be a time"
        )
    # A value in the future must not keep what is written until then from being read.
    cursor.execute(
        sql.SQL("SELECT least(max({0}), now()::{1})::text FROM {2} WHERE isfinite({0})").format(
            column, sql.SQL(kind), place
        )
    )
    (newest,) = cursor.fetchone() or (None,)
    conditions = []
    if request.low is not None:
        conditions.append(
            sql.SQL("{} >= {}::{} - {}::interval").format(
                column, sql.Literal(request.low), sql.SQL(kind), sql.Literal(_interval(declared.overlap))
            )
        )
    if request.upto is not None:
        conditions.append(sql.SQL("{} <= {}::{}").format(column, sql.Literal(request.upto), sql.SQL(kind)))
    return Changes(conditions, request.low, request.upto or newest or request.low)


def _interval(length: Frequency) -> str:
    return f"{length.count} {length.unit.name.lower()}"


def _transaction(mark: str | None, system: int, where: str) -> int | None:
    if mark is None:
        return None
    found = _MARK.fullmatch(mark)
    if found is None or int(found[2]) != system:
        raise DatasourceError(
            f"{where}: the instance before was read from another database, whose transactions were others; {REREAD}"
        )
    return int(found[1])
