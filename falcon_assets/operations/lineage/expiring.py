"""Lets the graph forget versions whose data has been gone for long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from falcon_assets.errors import SettingsError
from falcon_assets.ledger.lineage.expiry import expired_versions, forget
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.auditing import PlainRequest, audited
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.lineage.graph import Version
from falcon_assets.planning.retention.limits import before as time_before


@dataclass(frozen=True)
class ExpireResult:
    """What the graph forgot, or would.

    Attributes:
        before: What went before that time, unless something protects it.
        dry_run: Whether nothing was done.
        versions: The versions.
    """

    before: datetime
    dry_run: bool
    versions: Sequence[Version]

    @property
    def by_feed(self) -> dict[tuple[str, str], int]:
        """How many of each cluster and feed."""
        return dict(sorted(Counter((one.cluster, one.feed) for one in self.versions).items()))

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        feeds = [{"cluster": key[0], "feed": key[1], "versions": count} for key, count in self.by_feed.items()]
        told = {"before": format_instant(self.before), "dry_run": self.dry_run, "versions": len(self.versions)}
        return {"operation": "lineage expire", **told, "feeds": feeds}


def expire_lineage(installation: Installation, request: PlainRequest) -> ExpireResult:
    """Forgets the versions whose data has been gone for longer than FALCON_LINEAGE_RETENTION says.

    Never one whose data is there or in an archive, nor one that is critical or that something critical was made from.

    Args:
        installation: Where.
        request: Who asks, and why.

    Raises:
        SettingsError: FALCON_LINEAGE_RETENTION is not set.
        DeniedError: who asks may not change all of their feeds.
    """
    settings, entities = installation.settings, installation.all_entities
    with audited(installation, "lineage expire", request) as audit:
        if settings.lineage_retention is None:
            raise SettingsError(
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
