"""The operation that shows the plan of retention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import Field

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import UnknownEntityError
from falcon_assets.features.retention.disks import disks_of
from falcon_assets.features.retention.plan import FeedPlan, plan_retention
from falcon_assets.instances.runs.dead_runs import unfinished_runs
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import Instant
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation
from falcon_assets.storage.feed_store import StoresOf


class PlanRetention(Operation):
    """List what retention would delete, archive or keep, and why. Changes nothing."""

    command = "retention plan"
    feed: str | None = Field(None, description="Only this feed, even if it declares no retention.")
    cluster: str | None = Field(None, description="Only on this cluster.")
    as_of: Instant | None = Field(None, description="Plan for this time instead of now (YYYY-MM-DDTHH:MMZ).")

    def run(self, installation: Installation) -> list[FeedPlan]:
        """Raises UnknownEntityError where there is no such feed or cluster, or the feed is not on the cluster."""
        settings, entities = installation.settings, installation.entities
        wanted, now = _wanted(entities, self.feed, self.cluster), self.as_of or settings.now()
        installation.ledger.catch_up_to_read()
        runs = unfinished_runs(installation.ledger.instance)
        # Never committed: what is new to the ledger stays so.
        with installation.ledger.engine.connect() as connection:

            def planned(there: Cluster, feeds: Sequence[Feed], *, only_kept: bool = False) -> Iterator[FeedPlan]:
                stores = StoresOf(there, settings.home, settings.environ, roots_of(settings))
                return plan_retention(connection, entities, stores, feeds, now, runs, only_kept=only_kept)

            plans = [plan for there, feeds in wanted for plan in planned(there, feeds)]
            disks = [disk for one in entities.clusters.values() for disk in disks_of(entities, one, settings)]
            for disk in (one for one in disks if one.excess()):
                kept = [
                    plan
                    for name, feeds in disk.feeds().items()
                    for plan in planned(entities.cluster(name), feeds, only_kept=True)
                ]
                made = disk.with_room(kept).plans
                plans = [_with(plan, made) for plan in plans]
            return plans


def _with(plan: FeedPlan, kept: Sequence[FeedPlan]) -> FeedPlan:
    """The plan, with what goes as there is to be more room."""
    found = next(
        (one for one in kept if (one.feed.name, one.cluster.name) == (plan.feed.name, plan.cluster.name)), None
    )
    if found is None:
        return plan
    gone = {(one.kept.nominal, one.kept.version): one for one in found.versions if one.goes}
    versions = tuple(gone.get((one.kept.nominal, one.kept.version), one) for one in plan.versions)
    archives = {one.archived.instance: one for one in plan.archives}
    archives |= {one.archived.instance: one for one in found.archives if one.goes}
    return replace(plan, versions=versions, archives=tuple(one for _, one in sorted(archives.items())))


def _wanted(entities: EntityStore, feed: str | None, cluster: str | None) -> list[tuple[Cluster, list[Feed]]]:
    clusters = [entities.cluster(cluster)] if cluster else list(entities.clusters.values())
    feeds = [entities.feed(feed)] if feed else list(entities.feeds.values())
    found = []
    for there in clusters:
        entries = [(one, one.on(there.name)) for one in feeds]
        own = [one for one, entry in entries if entry is not None and (feed or entry.retention or one.versions)]
        found.append((there, own))
    if feed and not any(own for _, own in found):
        where = f"cluster {cluster!r}" if cluster else "any cluster of this code location"
        raise UnknownEntityError(f"feed {feed!r} is not on {where}")
    return found
