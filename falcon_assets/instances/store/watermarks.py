"""Watermarks: the nominal time before which every instance of a feed is there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from sqlalchemy import ARRAY, Connection, Engine, and_, exists, func, literal, select

from falcon_assets.errors import UnknownEntityError
from falcon_assets.history.tables import FEED_INSTANCES
from falcon_assets.history.tables.ledger_schema import INSTANT
from falcon_assets.model.feed import Feed
from falcon_assets.model.wall_clock import MICROSECOND
from falcon_assets.planning.instance_record import FeedState
from falcon_assets.planning.interpolate import Watermark
from falcon_assets.planning.timeline import Timeline, feed_timeline


def watermarks_on(
    engine: Callable[[], Engine], feeds: Mapping[str, Feed], cluster: str, now: Callable[[], datetime]
) -> Watermark:
    """Those of feeds on a cluster, for expressions; ``engine`` is called where one is asked for."""

    def of(name: str) -> datetime:
        if name not in feeds:
            raise UnknownEntityError(f"watermark: unknown feed {name!r}")
        line = feed_timeline(feeds[name], cluster)
        with engine().connect() as connection:
            return watermark(connection, line, cluster, name, now())

    return of


def watermark(
    connection: Connection, line: Timeline, cluster: str, feed: str, now: datetime, landed: Collection[datetime] = ()
) -> datetime:
    """Returns the nominal time before which every instance is available, or was until it was evicted.

    It is that of the first instance that is missing; where none is, that of the first one after ``now``. ``landed`` are
    instances that are there, and not in the ledger yet.
    """
    due = line.indexes(line.start, now)
    if not due:
        return line.start
    first, last = line.instance(due[0]), line.instance(due[-1])
    if line.frequency.is_absolute:
        instances = func.generate_series(first, last, literal(line.frequency.length))
    else:
        instances = func.unnest(literal(line.between(first, last), ARRAY(INSTANT)))
    due_at = instances.column_valued("due_at")
    table = FEED_INSTANCES.c
    states = [FeedState.AVAILABLE.value, FeedState.EVICTED.value]
    own = and_(table.cluster == cluster, table.feed == feed, table.instance == due_at, table.state.in_(states))
    missing = select(func.min(due_at)).where(~exists().where(own), due_at.not_in(landed))
    found: datetime | None = connection.execute(missing).scalar()
    return found or max(line.instance(due[-1] + 1), last + MICROSECOND)
