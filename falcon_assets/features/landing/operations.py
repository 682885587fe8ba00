"""The operation that records instances from outside at the request of a user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import StorageError, UnknownEntityError, UnknownInstanceError
from falcon_assets.features.landing.landing_events import landings_on
from falcon_assets.features.landing.store import set_incomplete
from falcon_assets.history import queries
from falcon_assets.history.dagster_internals.events import Batches, record_outside_runs
from falcon_assets.instances.store.newest_instances import newest_recorded
from falcon_assets.instances.views.listing import all_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.access import Role
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.acting import require_read
from falcon_assets.operations.audit import PlainRequest, audited
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.writers import not_from_outside
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.snapshots import why_not_there
from falcon_assets.storage.landing import Collected, collect, collect_snapshot

_AT_ONCE = 10_000


@dataclass(frozen=True)
class CollectedInstances:
    """The findings on a cluster, the oldest first; ``problem`` is None where the store could be read."""

    cluster: str
    new: tuple[Collected, ...]
    changed: tuple[Collected, ...]
    unchanged: tuple[datetime, ...]
    missing: tuple[tuple[datetime, str], ...]
    problem: str | None = None


@dataclass(frozen=True)
class CollectResult:
    """The instances, as lists have them, are read where they are asked for."""

    installation: Installation
    asked: CollectInstances
    found: Sequence[CollectedInstances]

    @property
    def failed(self) -> bool:
        return any(one.problem for one in self.found)

    def as_data(self) -> dict[str, Any]:
        asked = self.asked
        items = []
        for there in self.found:
            done = dict.fromkeys((one.instance for one in there.new), "new")
            done |= dict.fromkeys((one.instance for one in there.changed), "changed")
            done |= dict.fromkeys(there.unchanged, "known")
            why = dict(there.missing)
            query = InstanceQuery(
                asked.feed, "feed", start=asked.start, end=asked.end, cluster=there.cluster, limit=_AT_ONCE
            )
            for one in all_instances(self.installation, query):
                text, data = why.get(one.instance), one.as_data()
                reason = {**(data["reason"] or {}), "text": text} if text else data["reason"]
                result = done.get(one.instance, "missing" if text else "unread")
                items.append({**data, "reason": reason, "collected": result})
        problems = [{"cluster": one.cluster, "text": one.problem} for one in self.found if one.problem]
        return {"items": items, "total": len(items), "next": None, "problems": problems}


class CollectInstances(Operation):
    """Find and record data of FEED that was delivered from outside, however old.

    Instances that are already recorded are checked, too; if their files changed, a new version is recorded. Missing
    instances are listed. The exit code is 1 where a store could not be read.
    """

    command = "instance collect"
    role = Role.LAUNCHER
    feed: Annotated[str, Given("FEED")]
    start: Instant = Field(description="First instance to check (YYYY-MM-DDTHH:MMZ).")
    end: Instant = Field(description="Last instance to check, inclusive (YYYY-MM-DDTHH:MMZ).")
    cluster: str | None = Field(None, description="Only on this cluster.")

    def run(self, installation: Installation) -> CollectResult:
        found = collect_instances(installation, self.feed, self.start, self.end, self.cluster)
        return CollectResult(installation, self, found)


def collect_instances(
    installation: Installation, feed: str, first: datetime, last: datetime, cluster: str | None = None
) -> list[CollectedInstances]:
    """Checks every instance from ``first`` to ``last``, both included, and records new and changed ones. It is audited.

    Raises:
        UnknownEntityError: there is no such feed or cluster, or it does not land there from outside.
        UnknownInstanceError: there is no instance in that range yet.
        ExpressionError: the path template names an unknown variable.
        DeniedError: the user may not read the feed.
    """
    with audited(installation, "instance collect", PlainRequest()) as audit:
        declared = installation.entities.feed(feed)
        audit.about([(declared.kind, declared.name)], ())
        require_read(audit.principal, [declared])
        found = _collected(installation, declared, first, last, cluster)
        recorded = [one.instance for there in found for one in (*there.new, *there.changed)]
        audit.about([(declared.kind, declared.name)], recorded)
        audit.result(bool(recorded))
    return found


def _collected(
    installation: Installation, declared: Feed, first: datetime, last: datetime, cluster: str | None
) -> list[CollectedInstances]:
    settings, entities = installation.settings, installation.entities
    feed, now = declared.name, settings.now()
    clusters = _landing_places(entities, declared, cluster)
    spans = list[tuple[Cluster, list[datetime]]]()
    without = list[str]()
    for there in clusters:
        line = feed_timeline(declared, there.name)
        instances = line.between(first, min(last, now))
        spans += [(there, instances)] if instances else []
        without += (
            []
            if instances
            else [
                f"feed {feed!r} on cluster {there.name!r} has no instance from {format_instant(first)} to "
                f"{format_instant(last)} at {format_instant(now)}: its validity is {format_instant(line.start)} to "
                f"{format_instant(line.end)}, its frequency {declared.frequency}"
            ]
        )
    if not spans:
        raise UnknownInstanceError("\n".join(without))
    return [_collect(installation, declared, there, instances, now) for there, instances in spans]


def _landing_places(entities: EntityStore, feed: Feed, cluster: str | None) -> list[Cluster]:
    asked = [entities.cluster(cluster)] if cluster else [one for one in entities.clusters.values() if feed.on(one.name)]
    refused = []
    found = []
    for one in asked:
        feed_timeline(feed, one.name)  # raises where it is not on that cluster
        why = not_from_outside(feed, one.name, entities.producers(feed.name, one.name))
        refused += [why] if why else []
        found += [] if why else [one]
    if not found:
        where = "" if refused else f"feed {feed.name!r} is on none of the clusters of this code location"
        raise UnknownEntityError("\n".join(refused) or where)
    return found


def _collect(
    installation: Installation, feed: Feed, cluster: Cluster, instances: Sequence[datetime], now: datetime
) -> CollectedInstances:
    settings, ledger = installation.settings, installation.ledger
    ledger.catch_up()
    paths = InstancePaths(feed, cluster)
    with ledger.engine.connect() as connection:
        span = {(cluster.name, feed.name): (instances[0], instances[-1])}
        turns = queries.last_collected(connection, cluster.name)
        known = queries.signatures(connection, span).get((cluster.name, feed.name), {})
        newest = newest_recorded(connection, cluster.name, [feed.name] if feed.snapshot else [])
        known |= {one.instance: one.signature for one in newest.values()}
    landings = landings_on(ledger, installation.entities, cluster, settings, now, turns)
    found: list[Collected] = []
    incomplete: set[datetime] = set()
    problem, missing = None, []
    try:
        files = store_of(feed, cluster, settings.home, settings.environ, roots=roots_of(settings))
        windows = [(instances[0], instances[-1])]
        there = (kind_of(files), feed, windows, known)
        snapshot = collect_snapshot(*there, settings.clock, now) if feed.snapshot else None
        with Batches(record_outside_runs(ledger.instance)) as events:
            admits = landings.admits(kind_of(files), feed)
            for one in snapshot or collect(*there, instances[0], incomplete.add, admits):
                events.add(landings.event(files, feed, one))
                found.append(one)
        recorded = {one.instance for one in found} | set(known)
        for instance in instances:
            if instance not in recorded:
                why = landings.why_withheld(feed, instance)
                why = why or why_not_there(kind_of(files), feed, instance, paths.data(instance), settings.clock)[1]
                missing.append((instance, why))
    except StorageError as error:
        problem = str(error)
    problem = problem or landings.finish().get(feed.name)
    with ledger.engine.begin() as connection:
        set_incomplete(
            connection,
            cluster.name,
            [(feed.name, instance) for instance in incomplete],
            [(feed.name, one.instance) for one in found],
        )
    ledger.catch_up()
    anew = {one.instance for one in found}
    return CollectedInstances(
        cluster.name,
        new=tuple(one for one in found if one.instance not in known),
        changed=tuple(one for one in found if one.instance in known),
        unchanged=tuple(one for one in instances if one in known and one not in anew),
        missing=tuple(missing),
        problem=problem,
    )
