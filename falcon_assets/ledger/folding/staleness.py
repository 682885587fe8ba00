"""Which consumed versions are stale: another version is there now. The fold keeps this up to date."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import ColumnElement, Connection, and_, update

from falcon_assets.ledger.database.upsert import among, parts
from falcon_assets.ledger.folding.ledger_rows import FeedKey, ProcessKey
from falcon_assets.ledger.tables import CONSUMED, FEED_INSTANCES
from falcon_assets.planning.instances.instance_record import FeedState


def mark_stale(connection: Connection, feeds: Collection[FeedKey], readers: Collection[ProcessKey]) -> None:
    """Brings ``consumed.stale`` up to date, where these feed instances or these process instances are concerned.

    Stale: the present version differs from what was read (nothing at all included), it was seen after the
    reading began, it was not evicted since, and nobody said that it came too late. Where it was seen before that, what
    was read is newer still, and the collector has yet to see it.
    """
    read = (CONSUMED.c.input_cluster, CONSUMED.c.feed, CONSUMED.c.instance)
    reader = (CONSUMED.c.process, CONSUMED.c.cluster, CONSUMED.c.nominal)
    for part in parts(feeds):
        _mark(connection, among(read, part))
    for another in parts(readers):
        _mark(connection, among(reader, another))


def _mark(connection: Connection, concerned: ColumnElement[bool]) -> None:
    read, there = CONSUMED.c, FEED_INSTANCES.c
    stale = and_(
        there.state == FeedState.AVAILABLE.value,
        there.version.is_distinct_from(read.version),
        there.version.is_distinct_from(read.too_late),
        there.version_event > read.read_event,
    )
    same = and_(there.cluster == read.input_cluster, there.feed == read.feed, there.instance == read.instance)
    connection.execute(update(CONSUMED).values(stale=stale).where(same, concerned, read.stale.is_distinct_from(stale)))
