"""Lifecycle of versions: expiry from the graph, lifecycle status, and plans for pruning data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection

from falcon_assets.entities.workflow_contents import without_files
from falcon_assets.errors import NotSetError, UsageError, printable
from falcon_assets.features.lineage.pruning_rules import needed_to_make
from falcon_assets.features.lineage.store import existing_versions, graph_of, reached, versions_of_numbers
from falcon_assets.features.lineage.stored_lifecycle import (
    SetStatus,
    all_protected,
    critical_versions,
    edges_above,
    expired_versions,
    forget,
    set_status,
    status_set,
)
from falcon_assets.features.lineage.subject import OfOneVersion, VersionQuery, find_version
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.access import Role, may_read
from falcon_assets.model.feed import LifecycleStatus
from falcon_assets.model.instant import Instant
from falcon_assets.operations.acting import acting, require_change
from falcon_assets.operations.audit import AuditedRequest, audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Operation, Result
from falcon_assets.planning.eviction import before as time_before


@dataclass(frozen=True)
class ExpireResult(Result):
    before: Instant
    dry_run: bool
    versions: Sequence[Version]

    operation = "lineage expire"
    keys = ("operation", "before", "dry_run", "versions=number", "feeds")

    @property
    def number(self) -> int:
        return len(self.versions)

    @property
    def feeds(self) -> list[dict[str, Any]]:
        counted = sorted(Counter((one.cluster, one.feed) for one in self.versions).items())
        return [{"cluster": cluster, "feed": feed, "versions": count} for (cluster, feed), count in counted]


class ExpireLineage(Change):
    """Remove old versions without data from the lineage.

    Removes versions whose data was deleted longer ago than FALCON_LINEAGE_RETENTION. Data is not touched. Versions
    whose data exists or is archived are kept, and so are critical versions and all that they were made from. Shows the
    plan and asks for confirmation. `falcon ledger rebuild` restores what is still in Dagster's history.
    """

    command = "lineage expire"
    role = Role.ADMIN
    of_owners = False
    dry_run: bool = Field(False, description="Show what would be removed; remove nothing.")

    def run(self, installation: Installation) -> ExpireResult:
        return expire_lineage(installation, self)


def expire_lineage(installation: Installation, request: AuditedRequest) -> ExpireResult:
    """Forgets versions whose data has been deleted for longer than FALCON_LINEAGE_RETENTION.

    Data that exists or is archived, and versions that are critical or led to a critical one, are never forgotten.

    Raises:
        NotSetError: FALCON_LINEAGE_RETENTION is not set.
        DeniedError: the user may not change all of their feeds.
    """
    settings, entities = installation.settings, installation.all_entities
    with audited(installation, "lineage expire", request) as audit:
        if settings.lineage_retention is None:
            raise NotSetError(
                "FALCON_LINEAGE_RETENTION is not set, so every version is known for ever: "
                "set it to an age, for example days(730)"
            )
        before = time_before(settings.now(), settings.lineage_retention, "UTC")
        with installation.tables_caught_up().begin() as connection:
            found = expired_versions(connection, entities.critical, before)
            feeds = dict.fromkeys(one.feed for one in found)
            audit.about(("feed", name) for name in feeds)
            declared = [entities.feeds[name] for name in feeds if name in entities.feeds]
            require_change(audit.principal, "forget versions of", declared)
            if not request.dry_run:
                forget(connection, found)
            audit.result(bool(found), connection)
    return ExpireResult(before, request.dry_run, found)


@dataclass(frozen=True)
class VersionLifecycle:
    """The lifecycle status of a version; ``set`` is None where the feed declares it, or it is the default."""

    status: LifecycleStatus
    set: SetStatus | None

    def as_data(self) -> dict[str, Any]:
        found = self.set
        who = {"at": found.at.isoformat(), "actor": found.actor, "reason": found.reason} if found else None
        return {"lifecycle_status": self.status, "lifecycle_set": who}


@dataclass(frozen=True)
class LifecycleResult(Result):
    """The result of setting a status; a critical version protects its ``ancestors``, others have none here."""

    version: Version
    before: LifecycleStatus
    lifecycle: VersionLifecycle
    changed: bool
    dry_run: bool
    ancestors: tuple[Version, ...]

    operation = "lineage status"
    keys = ("operation", "changed", "dry_run", "before", "version=described", "protects")

    @property
    def described(self) -> dict[str, Any]:
        return {**self.version.as_data(), **self.lifecycle.as_data()}

    @property
    def protects(self) -> list[dict[str, Any]]:
        return [one.as_node() for one in self.ancestors]


class SetLifecycle(OfOneVersion, Change):
    """Set the lifecycle status of a version.

    STATUS is initial, test, validated or critical. The default is the `lifecycle_status` of the feed. Retention never
    deletes or archives a critical version, nor any version that it was made from, directly or indirectly. INSTANCE is a
    time, YYYY-MM-DDTHH:MMZ.
    """

    command = "lineage status"
    status: Annotated[LifecycleStatus, Given("STATUS")]
    reason: str = Field(description="Reason for the change, kept in the audit log.")

    def run(self, installation: Installation) -> LifecycleResult:
        return set_lifecycle(installation, self.query, self.status, self)


def lifecycle_of(installation: Installation, connection: Connection, version: Version) -> VersionLifecycle:
    found, feed = status_set(connection, version), installation.all_entities.feeds.get(version.feed)
    declared: LifecycleStatus = feed.lifecycle_status if feed else "initial"
    return VersionLifecycle(found.status if found else declared, found)


def set_lifecycle(
    installation: Installation, query: VersionQuery, status: LifecycleStatus, request: AuditedRequest
) -> LifecycleResult:
    """Sets the lifecycle status of a version; it holds until another is set, and overrides that of the feed.

    Raises:
        UsageError: no reason is given.
        UnknownEntityError: there is no such feed, not on this cluster, or on several clusters and none is named.
        UnknownInstanceError: no such version is recorded.
        DeniedError: the user may not change the feed.
    """
    with audited(installation, "lineage status", request) as audit:
        audit.about([("feed", query.feed)], [query.instance])
        if not request.reason.strip():
            raise UsageError("say why with --reason: it is recorded with the status")
        with installation.tables_caught_up().begin() as connection:
            version = find_version(installation, connection, query)
            feed = installation.all_entities.feeds.get(version.feed)
            require_change(audit.principal, "set the lifecycle status of versions of", [feed] if feed else [])
            before = lifecycle_of(installation, connection, version)
            changed = before.set is None or before.status != status
            new = SetStatus(status, installation.settings.now(), audit.principal.name, printable(request.reason))
            if changed and not request.dry_run:
                set_status(connection, version, new)
            audit.result(changed, connection)
            ancestors = _ancestors(connection, version) if status == "critical" else ()
    after = VersionLifecycle(status, new) if changed else before
    return LifecycleResult(version, before.status, after, changed, request.dry_run, ancestors)


def _ancestors(connection: Connection, version: Version) -> tuple[Version, ...]:
    found = graph_of(connection, reached(connection, [version.number], up=True) - {version.number}).versions
    return tuple(sorted(found.values(), key=lambda one: one.number))


@dataclass(frozen=True)
class PrunePlan:
    """A plan of the data that can be deleted and that must stay; nothing is deleted.

    Attributes:
        wanted: Must be reproducible.
        impossible: Of those, not reproducible even now.
        needed: Must stay for that.
        protected: Critical, or an input of a critical version.
        goes: Can be deleted, by feed, instance and number.
        hidden: How many more can be, of feeds that the user may not read.
    """

    wanted: Sequence[Version]
    impossible: Sequence[Version]
    needed: Sequence[Version]
    protected: Sequence[Version]
    goes: Sequence[Version]
    hidden: int

    @property
    def bytes(self) -> int:
        return sum(one.bytes or 0 for one in self.goes)

    def as_data(self) -> dict[str, Any]:
        names = ("wanted", "impossible", "needed", "protected", "goes")
        listed = {name: [{**one.as_node(), "bytes": one.bytes} for one in getattr(self, name)] for name in names}
        return {**listed, "bytes": self.bytes, "hidden": self.hidden}


class PlanPruning(Operation):
    """List data that can be deleted and made again, and the space that frees.

    Changes nothing. The listed data is not needed to make each VERSION again. VERSION is written as
    [CLUSTER/]FEED/INSTANCE[@VERSION]; the default is all critical versions. Each VERSION itself is kept, and so is all
    that critical versions were made from.
    """

    command = "lineage prune-plan"
    versions: Annotated[tuple[VersionQuery, ...], Given("[VERSION]...")] = ()

    def run(self, installation: Installation) -> PrunePlan:
        return prune_plan(installation, self.versions)


def prune_plan(installation: Installation, queries: Sequence[VersionQuery] = ()) -> PrunePlan:
    """Plans which data can be deleted such that the queried versions stay reproducible; changes nothing.

    Critical versions and their inputs, direct or not, always stay. A version cannot be reproduced where its making is
    not recorded, or its workflow was not kept.

    Raises:
        UsageError: none is given, and none is critical.
        UnknownEntityError: there is no such feed, not on this cluster, or on several clusters and none is named.
        UnknownInstanceError: no such version is recorded.
        DeniedError: the user may not read a feed.
    """
    who, entities = acting(installation.settings), installation.all_entities
    with installation.tables_caught_up().connect() as connection:
        asked = {find_version(installation, connection, one).number for one in queries}
        wanted = asked or set(critical_versions(connection, entities.critical))
        if not wanted:
            raise UsageError("no version is critical: name the versions that are to be made again")
        edges = edges_above(connection, wanted)
        of_edges = {number for edge in edges for number in edge} | wanted
        known = {one.number: one for one in versions_of_numbers(connection, of_edges)}
        lost = without_files(connection)
        there = {one.number: one for one in existing_versions(connection)}
        protected = all_protected(connection, entities.critical).keys() & there.keys()
    makeable = {one.number for one in known.values() if one.process and one.definition}
    makeable -= {one.number for one in known.values() if (one.process, one.definition) in lost}
    staying = protected | (wanted & there.keys())
    needed = needed_to_make(wanted, edges, makeable, there, staying)
    goes = [one for number, one in there.items() if number not in staying | needed.stays]
    seen = [one for one in goes if one.feed not in entities.feeds or may_read(entities.feeds[one.feed].acl, who)]
    return PrunePlan(
        _sorted(known[number] for number in wanted),
        _sorted(known[number] for number in needed.impossible),
        _sorted(there[number] for number in needed.stays),
        _sorted(there[number] for number in protected),
        _sorted(seen),
        len(goes) - len(seen),
    )


def _sorted(versions: Iterable[Version]) -> list[Version]:
    return sorted(versions, key=lambda one: (one.cluster, one.feed, one.instance, one.number))
