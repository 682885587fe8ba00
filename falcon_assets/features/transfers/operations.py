"""Operations on deliveries: an instance is sent once more."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import UnknownEntityError
from falcon_assets.features.transfers.deliveries import last_delivery
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import CommandResult, InstanceRequest
from falcon_assets.instances.rules.applicable_states import InstanceCommand
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.access import Role
from falcon_assets.model.expression import nearest
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given
from falcon_assets.planning.transfers import ExportWorkload
from falcon_assets.planning.workloads import export_name


class ResendInstance(Change):
    """Deliver an instance of FEED to one datasource once more, and to no other.

    For a receiver who says that it never came. INSTANCE is a time, YYYY-MM-DDTHH:MMZ. What is there now is sent, under
    an execution of its own, even if the same was delivered before; the output says when it was.
    """

    command = "instance resend"
    role = Role.LAUNCHER
    feed: Annotated[str, Given("FEED")]
    instance: Annotated[Instant, Given("INSTANCE")]
    to: Annotated[str, Given(flags=("--to",), metavar="DATASOURCE")] = Field(description="Where it is sent.")
    cluster: str | None = Field(None, description="Cluster: needed if the feed is exported from several.")
    needs = "--to"

    def run(self, installation: Installation) -> CommandResult:
        export = _export(installation.entities, self.feed, self.to, self.cluster)
        query = InstanceQuery(export.name, start=self.instance, cluster=export.cluster)
        request = InstanceRequest(query, self.actor, self.reason, self.dry_run)
        with installation.tables_caught_up().connect() as connection:
            before = last_delivery(connection, export, self.instance)
        told = f"before, {before}" if before else f"{self.feed} {format_instant(self.instance)} was never sent there"
        result = rerun_instances(installation, request, RerunOptions(force=True), InstanceCommand.RESEND)
        return replace(result, notes=(told, *result.notes))


def _export(entities: EntityStore, feed: str, datasource: str, cluster: str | None) -> ExportWorkload:
    """Raises UnknownEntityError: it is not exported there, or from several clusters and none is named."""
    of_feed = [one for one in entities.exports if one.entity.name == feed]
    if not of_feed:
        known = "is exported to no datasource" if feed in entities.feeds else "is no feed"
        raise UnknownEntityError(f"{feed!r} {known}{nearest(feed, {one.entity.name for one in entities.exports})}")
    found = [one for one in of_feed if one.name == export_name(feed, datasource) and cluster in (None, one.cluster)]
    if not found:
        there = ", ".join(sorted({f"{one.datasource} (from {one.cluster})" for one in of_feed}))
        where = f" from {cluster}" if cluster else ""
        raise UnknownEntityError(f"feed {feed!r} is not exported to {datasource!r}{where}; it is to: {there}")
    if len(found) > 1:
        several = ", ".join(one.cluster for one in found)
        raise UnknownEntityError(f"{found[0].name!r} is on several clusters: say which one with --cluster ({several})")
    return found[0]
