"""Check of instances that are not in the present definitions: a frequency was edited by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import sqlalchemy
from sqlalchemy import Connection, select

from falcon_assets.catalog.store import EntityStore
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, not_checked, ok, warning
from falcon_assets.errors import SettingsError, count_of
from falcon_assets.history.tables import FEED_INSTANCES, PROCESS_INSTANCES
from falcon_assets.instances.store.former_instances import EntityTimeline, redefined
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import FeedState
from falcon_assets.planning.timeline import feed_timeline

_NAMED = 5
_AT_ONCE = 10_000


class OffTimelines(NamedTuple):
    """Instances between start and end of an entity that its present definition does not have."""

    line: EntityTimeline
    number: int
    first: datetime


def check_timelines(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether all recorded instances are instances of the present definitions."""
    entities = context.entities_if_sound()
    try:
        facts = context.database()
    except SettingsError:
        yield not_checked("the database cannot be reached")
        return
    if entities is None or facts is None or facts.ledger != facts.ledger_head:
        yield ok("nothing is recorded of what is defined")
        return
    engine = sqlalchemy.create_engine(facts.url, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        found = [one for line in redefined(connection, [*lines_of(entities)]) if (one := _lost(connection, line))]
    yield from judge_timelines(found)


def judge_timelines(found: Sequence[OffTimelines]) -> Iterator[Diagnosis]:
    if not found:
        yield ok("every recorded instance between start and end of its entity is one of the present definition")
    for line, number, first in found[:_NAMED]:
        where = f"{line.kind} {line.name!r} on cluster {line.cluster!r}"
        they = "is none" if number == 1 else "are none"
        yield warning(
            f"{where}: {count_of(number, 'recorded instance')} {they} of the present definition, whose frequency is "
            f"{line.timeline.frequency}, such as {format_instant(first)}",
            f"write the frequency (and timezone) that they were made with again: falcon entity history {line.name} "
            f"--type {line.kind} has it; or leave them: nothing writes or reads them, and retention does not evict "
            "them, so remove by hand those that are not wanted",
        )
    if len(found) > _NAMED:
        rest = count_of(len(found) - _NAMED, "entity has", "entities have")
        yield warning(f"{rest} such instances, too", "falcon instance list --json names them (off_timeline)")


def lines_of(entities: EntityStore) -> Iterator[EntityTimeline]:
    for feed in entities.feeds.values():
        for cluster, _ in entities.feed_clusters(feed):
            if not feed.snapshot:
                yield EntityTimeline("feed", feed.name, cluster.name, feed_timeline(feed, cluster.name))
    for one in entities.process_workloads:
        yield EntityTimeline("process", one.name, one.cluster, one.timeline)


def _lost(connection: Connection, line: EntityTimeline) -> OffTimelines | None:
    """The instances of a changed entity that are off its timeline."""
    if line.kind == "feed":
        feeds = FEED_INSTANCES.c
        is_there = feeds.state == FeedState.AVAILABLE.value
        instant, wanted = feeds.instance, (feeds.feed == line.name, feeds.cluster == line.cluster, is_there)
    else:
        processes = PROCESS_INSTANCES.c
        instant = processes.nominal
        wanted = (processes.process == line.name, processes.cluster == line.cluster, sqlalchemy.true())
    asked = select(instant).where(*wanted, instant >= line.timeline.start, instant < line.timeline.end)
    count, first = 0, None
    for (moment,) in connection.execution_options(yield_per=_AT_ONCE).execute(asked.order_by(instant)):
        if not line.timeline.contains(moment):
            count, first = count + 1, first or moment
    return OffTimelines(line, count, first) if first else None
