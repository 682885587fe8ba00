"""The database remembers its clock: what a process decides would be wrong by another clock, and for good."""

from __future__ import annotations

from datetime import UTC, timedelta

from sqlalchemy import Connection, TableClause, func, select
from sqlalchemy.dialects.postgresql import insert

from falcon_assets.errors import SettingsError
from falcon_assets.ledger.tables import CLOCK, FEED_INSTANCES, SCHEMA
from falcon_assets.planning.time.clock import Clock

_SURELY_SIMULATED = timedelta(days=2)
"""Between what the falcon clock showed and the time at which Dagster wrote it down; more than any zone."""


def require_clock(connection: Connection, mine: Clock) -> None:
    """Changes nothing; also for a database without a ledger.

    Raises:
        SettingsError: the history there goes by another clock.
    """
    if connection.execute(select(func.to_regclass(f"{SCHEMA}.{CLOCK.name}"))).scalar_one() is not None:
        known = connection.execute(select(CLOCK.c.tag)).scalar_one_or_none()
        if known is not None:
            _require(Clock.from_tag(known), mine)


def is_remembered(connection: Connection, mine: Clock) -> bool:
    """Whether a database with the tables of the ledger goes by exactly this clock; by another one it perhaps may."""
    return connection.execute(select(CLOCK.c.tag)).scalar_one_or_none() == mine.tag


def remember_clock(connection: Connection, mine: Clock, events: TableClause, *, anew: bool = False) -> None:
    """Writes down that the history goes by this clock from now on.

    Args:
        connection: In a transaction, to a database with the tables of the ledger.
        mine: The clock.
        events: Dagster's event log, which says by ``timestamp`` (UTC) when it wrote the event of an ``id`` down.
        anew: Whether a person has set it anew, and nothing else goes by the old one: then it may replace one that runs.

    Raises:
        SettingsError: the history there goes by another clock.
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
        f"the database goes by another clock ({known}) than this process ({mine}); what one decides would be wrong "
        f"by the other: {way}, or keep another history with another FALCON_HOME or FALCON_DATABASE_URL"
    )


def _of_history(connection: Connection, mine: Clock, events: TableClause) -> Clock:
    """The clock of a database of an earlier version, by what it recorded last, and when; ``mine`` if nothing tells."""
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
