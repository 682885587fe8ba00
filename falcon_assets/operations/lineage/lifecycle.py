"""Sets the lifecycle status of a version, because a person asks for it, and says what it protects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from falcon_assets.errors import UsageError, printable
from falcon_assets.ledger.lineage.graph import graph_of, reached
from falcon_assets.ledger.lineage.lifecycle import SetStatus, set_status, status_set
from falcon_assets.model.feed import LifecycleStatus
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.auditing import PlainRequest, audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.lineage.subject import VersionQuery, find_version
from falcon_assets.planning.lineage.graph import Version


@dataclass(frozen=True)
class VersionLifecycle:
    """The lifecycle status of a version.

    Attributes:
        status: The status.
        set: Who set it, when and why; None: the feed declares it, or nobody did.
    """

    status: LifecycleStatus
    set: SetStatus | None

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        found = self.set
        who = {"at": found.at.isoformat(), "actor": found.actor, "reason": found.reason} if found else None
        return {"lifecycle_status": self.status, "lifecycle_set": who}


@dataclass(frozen=True)
class LifecycleResult:
    """What came of setting the lifecycle status of a version.

    Attributes:
        version: It.
        before: What its status was.
        lifecycle: What it is.
        changed: Whether anything was set.
        dry_run: Whether nothing was done.
        ancestors: What it was made from, however far: protected while it is critical; else none are said.
    """

    version: Version
    before: LifecycleStatus
    lifecycle: VersionLifecycle
    changed: bool
    dry_run: bool
    ancestors: tuple[Version, ...]

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "operation": "lineage status",
            "changed": self.changed,
            "dry_run": self.dry_run,
            "before": self.before,
            "version": {**self.version.as_data(), **self.lifecycle.as_data()},
            "protects": [one.as_node() for one in self.ancestors],
        }


def lifecycle_of(installation: Installation, connection: Connection, version: Version) -> VersionLifecycle:
    """The lifecycle status of a version: what somebody set, else what its feed declares."""
    found, feed = status_set(connection, version), installation.all_entities.feeds.get(version.feed)
    declared: LifecycleStatus = feed.lifecycle_status if feed else "initial"
    return VersionLifecycle(found.status if found else declared, found)


def set_lifecycle(
    installation: Installation, query: VersionQuery, status: LifecycleStatus, request: PlainRequest
) -> LifecycleResult:
    """Sets the lifecycle status of a version; it holds until another is set, whatever its feed declares.

    Args:
        installation: Where.
        query: Which version.
        status: Its status from now on.
        request: Who asks, and why.

    Raises:
        UsageError: no reason is given.
        UnknownEntityError: there is no such feed, or it is not there, or on several clusters and none is named.
        UnknownInstanceError: no such version is recorded.
        DeniedError: who asks may not change the feed.
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
