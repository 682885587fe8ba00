"""Export of lineage as OpenLineage events."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field
from sqlalchemy import Connection

from falcon_assets.errors import UnknownEntityError, printable
from falcon_assets.features.lineage.recorded_runs import (
    RecordedRun,
    RunRecords,
    Selection,
    evicted_versions,
    restored_versions,
    run_ends,
)
from falcon_assets.model.access import may_read
from falcon_assets.model.instant import Instant
from falcon_assets.operations.acting import acting
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation


class ExportLineage(Operation):
    """Export runs with their inputs and outputs, for lineage systems.

    With names, exports only runs of these processes and runs that wrote these feeds. Repeated exports have the same run
    ids, so the receiving system recognizes them.
    """

    command = "lineage export"
    names: Annotated[tuple[str, ...], Given("[FEED | PROCESS]...")] = ()
    openlineage: bool = Field(description="Write OpenLineage run events, one JSON object per line.")
    since: Instant | None = Field(None, description="Only what ended at or after this time (YYYY-MM-DDTHH:MMZ).")
    cluster: str | None = Field(None, description="Only on this cluster.")

    def run(self, installation: Installation) -> Iterator[dict[str, Any]]:
        return export_openlineage(installation, self.names, since=self.since, cluster=self.cluster)


def export_openlineage(
    installation: Installation,
    names: Collection[str] = (),
    *,
    since: datetime | None = None,
    cluster: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Yields run events of OpenLineage as JSON: runs, then evictions, then restores, each by time.

    Repeated exports have the same run ids. Data that the user may not read is left out.

    Args:
        installation: Its ledger.
        names: Processes, or feeds that they wrote; empty: all.
        since: The earliest end, on the falcon clock; None: all.
        cluster: None: all.

    Raises:
        UnknownEntityError: there is no such process or feed, and none is recorded; or no such cluster.
    """
    from openlineage.client.serde import Serde  # noqa: PLC0415 - takes a while, as the next one

    from falcon_assets.features.openlineage.events import RunEvents  # noqa: PLC0415

    store, settings = installation.all_entities, installation.settings
    if cluster is not None:
        store.cluster(cluster)
    asked, hidden = Selection(since, names, cluster), _Hidden.of(installation)
    events = RunEvents(store, settings.home, settings.openlineage_namespace)
    with installation.tables_caught_up().connect() as connection:
        _require_known(installation, connection, names)
        records = RunRecords(connection)
        for ends in run_ends(connection, asked):
            for run in records.of(ends):
                if (shown := hidden.without(run)) is not None:
                    yield from map(Serde.to_dict, events.of_run(shown))
        for found, event_of in (
            (evicted_versions, events.of_eviction),
            (restored_versions, events.of_restore),
        ):
            for several in found(connection, asked):
                for version in several:
                    if version.feed not in hidden.feeds:
                        yield from map(Serde.to_dict, event_of(version))


def _require_known(installation: Installation, connection: Connection, names: Collection[str]) -> None:
    """Refuses names that are neither declared nor recorded; deleted entities have their history."""
    store = installation.all_entities
    declared = {*store.feeds, *store.processes, *(one.name for one in store.workloads)}
    for name in names:
        if name in declared:
            continue
        asked = Selection(names=(printable(name),))
        found = (read(connection, asked) for read in (run_ends, evicted_versions, restored_versions))
        if not any(next(iter(one), None) for one in found):
            raise UnknownEntityError(f"there is no feed or process {printable(name)!r}, and none is recorded")


@dataclass(frozen=True)
class _Hidden:
    feeds: Collection[str]
    workloads: Collection[str]
    datasources: Collection[str]

    @classmethod
    def of(cls, installation: Installation) -> _Hidden:
        who, store = acting(installation.settings), installation.all_entities
        feeds = {name for name, feed in store.feeds.items() if not may_read(feed.acl, who)}
        datasources = {name for name, one in store.datasources.items() if not may_read(one.acl, who)}
        return cls(feeds, {one.name for one in store.workloads if not may_read(one.entity.acl, who)}, datasources)

    def without(self, run: RecordedRun) -> RecordedRun | None:
        """Removes hidden data from a run; None: nothing is left."""
        inputs, outputs = ([one for one in own if one.feed not in self.feeds] for own in (run.inputs, run.outputs))
        if run.end.process in self.workloads or (run.outputs and not outputs):
            return None
        columns = {plan: one.only(lambda feed: feed not in self.feeds) for plan, one in run.columns.items()}
        datasets = [one for one in run.datasets if one.datasource not in self.datasources]
        return replace(run, inputs=inputs, outputs=outputs, columns=columns, datasets=datasets)
