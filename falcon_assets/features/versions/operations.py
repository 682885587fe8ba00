"""Operations on versions of an instance of a feed: list and restore."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import QueryError, StorageError
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.folding.kept_versions import versions_of
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import AssetPartitions
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.runs.kept_versions import kept_versions
from falcon_assets.instances.runs.run_locks import all_taken, instance_lock
from falcon_assets.instances.views.details import find_subject
from falcon_assets.instances.views.feed_writers import writers_of
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.access import Role
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.audit import audited, require_readable
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Operation, Result
from falcon_assets.operations.paging import Page
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.version_columns import VersionStatus
from falcon_assets.settings import Settings
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.output_target import output_target


class FeedInstance(NamedTuple):
    feed: Feed
    cluster: str
    instance: datetime
    storage: StorageKind
    path: str
    """Below the root of the store."""

    def __str__(self) -> str:
        return f"{self.feed.name} {format_instant(self.instance)} on {self.cluster}"


class InstanceVersion(NamedTuple):
    """A version of an instance; ``row`` is None where a killed run made it."""

    version: str
    is_kept: bool
    path: str | None
    row: Version | None

    @property
    def state(self) -> str:
        return "KEPT" if self.is_kept or self.row is None else self.row.status.value

    def as_data(self) -> dict[str, Any]:
        row = self.row
        times = {"since": row and row.seen_at, "until": row and row.ended_at}
        return {
            "version": self.version,
            "state": self.state,
            **{name: format_instant(time) if time else None for name, time in times.items()},
            **{name: row and getattr(row, name) for name in ("bytes", "records", "files", "process", "run_id")},
            "path": self.path,
        }


@dataclass(frozen=True)
class InstanceVersions:
    feed: str
    cluster: str
    instance: datetime
    versions: tuple[InstanceVersion, ...]

    def as_data(self) -> dict[str, Any]:
        own = {"feed": self.feed, "cluster": self.cluster, "instance": format_instant(self.instance)}
        return {**own, **Page(self.versions, len(self.versions), None).as_data()}


def find_feed_instance(
    entities: EntityStore, settings: Settings, name: str, instance: datetime, cluster: str | None
) -> FeedInstance:
    where = find_subject(entities, name, instance, cluster, "feed").cluster
    feed, there = entities.feed(name), entities.cluster(where)
    storage = kind_of(store_of(feed, there, settings.home, settings.environ, roots=roots_of(settings)))
    return FeedInstance(feed, where, instance, storage, InstancePaths(feed, there).data(instance))


def instance_versions(
    installation: Installation, feed: str, instance: datetime, cluster: str | None = None
) -> InstanceVersions:
    """Lists every version that an instance is known to have had, and whether it can be restored.

    ``cluster`` is None for the only cluster of the feed.

    Raises:
        UnknownEntityError: there is no such feed, not on this cluster, or on several and none is named.
        UnknownInstanceError: the feed has no such instance there.
        DeniedError: the user may not read the feed.
        StorageError: the store cannot be read.
    """
    found = find_feed_instance(installation.entities, installation.settings, feed, instance, cluster)
    require_readable(installation, "instance versions", [found.feed])
    key = (found.cluster, feed, instance)
    with installation.tables_caught_up().connect() as connection:
        rows = versions_of(connection, key)
    # What is kept is what lies there: a run may have been killed before it could say what it replaced.
    store = found.storage.store
    kept = {one.version: store.shown(one.path) for one in found.storage.kept_versions(feed, instance)}
    versions = [
        InstanceVersion(version, version in kept, kept.get(version, row.path if row else None), row)
        for version in sorted(rows.keys() | kept.keys())
        for row in [rows.get(version)]
    ]
    last_first = sorted(versions, key=lambda one: one.row.seen_at or instance if one.row else instance, reverse=True)
    return InstanceVersions(feed, found.cluster, instance, tuple(last_first))


@dataclass(frozen=True)
class RestoreResult(Result):
    """The result of restoring a version; ``before`` is the present one before, as far as the ledger knows.

    ``changed``: whether another version was present before, or is until it is done; ``at`` is on the falcon clock.
    """

    actor: str
    reason: str
    at: datetime
    dry_run: bool
    changed: bool
    feed: str
    cluster: str
    instance: Instant
    version: str
    before: str | None
    path: str
    operation = "restore"
    keys = (
        *("operation", "actor", "reason", "at", "dry_run", "changed"),
        *("feed", "cluster", "instance", "version", "before", "path"),
    )


class RestoreInstance(Change):
    """Publish an older version of an instance of FEED again.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. The version must be KEPT; the version that it replaces is kept in turn. For
    processes that have read the instance this is late data, as after any publication. Does nothing while a run writes
    the instance.
    """

    command = "instance restore"
    role = Role.LAUNCHER
    needs = "name, start and version"
    name: Annotated[str, Given("FEED")] = Field(description="A feed.")
    start: Annotated[Instant, Given("INSTANCE")] = Field(description="Its instance (YYYY-MM-DDTHH:MMZ).")
    version: str = Field(description="Version id to restore, from `falcon instance versions`, or its first characters.")
    cluster: str | None = Field(None, description="Cluster: needed if the entity is on several.")

    def run(self, installation: Installation) -> RestoreResult:
        query = InstanceQuery(self.name, "feed", start=self.start, cluster=self.cluster)
        request = InstanceRequest(query, self.actor, self.reason, self.dry_run)
        return restore_instance(installation, self.version, request)


class ListInstanceVersions(Operation):
    """List all versions of an instance of FEED on a cluster, the latest first.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. AVAILABLE: the version that is read now. KEPT: replaced, and can be restored.
    REPLACED, EVICTED: deleted.
    """

    command = "instance versions"
    feed: Annotated[str, Given("FEED")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(None, description="Cluster: needed if the entity is on several.")

    def run(self, installation: Installation) -> InstanceVersions:
        return instance_versions(installation, self.feed, self.instance, self.cluster)


def restore_instance(installation: Installation, version: str, request: InstanceRequest) -> RestoreResult:
    """Makes a replaced version of an instance the present one again, by an ordinary publication.

    The replaced version is kept. Readers of the instance find late data, as after any publication. A repeated request
    changes nothing; after a kill it completes the first.

    Raises:
        QueryError: the query names more than one instance, or several versions have this beginning.
        UnknownEntityError: there is no such feed, not on this cluster, or on several and none is named.
        UnknownInstanceError: the feed has no such instance there.
        StorageError: the version is not kept, a run is writing the instance, or the store refuses.
        DeniedError: the user may not change the feed.
    """
    ledger, now = installation.ledger, installation.settings.now()
    with audited(installation, "instance restore", request) as audit:
        found = _asked_for(installation, request.query)
        feed, cluster, instance = found.feed, found.cluster, found.instance
        audit.about([("feed", feed.name)], [instance])
        require_change(audit.principal, "restore instances of", [feed], Role.LAUNCHER)
        ledger.catch_up()
        with ledger.engine.connect() as connection:
            known = versions_of(connection, (cluster, feed.name, instance))
        before = next((one for one, row in known.items() if row.status is VersionStatus.AVAILABLE), None)
        version = _whole(version, before, found)
        output = output_target(feed, instance, found.path)
        with _alone(installation, found):
            done, is_new = found.storage.restore(str(found), output, version, dry_run=request.dry_run)
            changed = is_new or before != version
            if changed and not request.dry_run:
                _record(installation, found, done, audit.principal.name)
        audit.result(changed)
    shown = found.storage.store.shown(found.path)
    who = (audit.principal.name, request.reason, now, request.dry_run)
    return RestoreResult(*who, changed, feed.name, cluster, instance, version, before, shown)


def _whole(version: str, before: str | None, found: FeedInstance) -> str:
    """Completes a version; returns it unchanged where none matches, so that the store lists what there is."""
    kept = {one.version for one in found.storage.kept_versions(found.feed.name, found.instance)}
    if version in kept:
        return version
    those = sorted(one for one in kept | {before} if one and one.startswith(version))
    if len(those) > 1:
        raise QueryError(f"several versions of {found} begin with {version}: {', '.join(those)}")
    return those[0] if those else version


def _asked_for(installation: Installation, query: InstanceQuery) -> FeedInstance:
    if query.name is None or query.start is None or query.end not in (None, query.start) or query.colo or query.filters:
        raise QueryError(
            "say which instance is to be restored: the feed, the start, and the cluster where it has several"
        )
    return find_feed_instance(installation.entities, installation.settings, query.name, query.start, query.cluster)


@contextmanager
def _alone(installation: Installation, found: FeedInstance) -> Iterator[None]:
    """Excludes runs that would write the instance; StorageError where one does."""
    writers = writers_of(installation.entities, found.feed, found.cluster, found.instance)
    locks = sorted(instance_lock(workload.name, found.cluster, nominal) for workload, nominal in writers)
    with all_taken(installation.ledger.engine, locks) as is_ours:
        if not is_ours:
            raise StorageError(f"{found} is being written by a run: let it end, or kill it, and restore it then")
        yield


def _record(installation: Installation, found: FeedInstance, done: DataVersion, principal: str) -> None:
    feed, cluster, ledger = found.feed, found.cluster, installation.ledger
    available = FeedInstanceAvailable(
        cluster,
        feed.name,
        found.instance,
        done.version,
        installation.settings.now(),
        done.bytes,
        files=done.files,
        path=found.storage.store.shown(found.path),
        kept_versions=kept_versions(found.storage.store, feed, found.instance),
        restored_by=principal,
    )
    partition = AssetPartitions(installation.entities).partition_of(feed, cluster, found.instance)
    said = f"{feed.name} {format_instant(found.instance)} was restored to version {done.version} by {principal}"
    event = materialization(names.asset_key(cluster, feed.name), partition, available, description=said)
    ledger.instance.report_runless_asset_event(event)
    ledger.catch_up()
