"""Recorded versions of an instance of a process, which may be declared differently now, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.entities.definition_versions import recorded_kinds
from falcon_assets.errors import QueryError, UnknownEntityError, UnknownInstanceError
from falcon_assets.features.lineage.store import versions_made_by
from falcon_assets.history.events.data_version import Version
from falcon_assets.instances.views.details import find_subject
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.workloads import ProcessWorkload


@dataclass(frozen=True)
class MadeVersions:
    """All versions of an instance in the order of events; ``workload`` is None where it is not declared any more."""

    process: str
    cluster: str
    instance: datetime
    every: tuple[Version, ...]
    wanted: Version
    workload: ProcessWorkload | None

    def __str__(self) -> str:
        return f"{self.process} {format_instant(self.instance)}"


def made_versions(
    connection: Connection,
    store: EntityStore,
    process: str,
    instance: datetime,
    cluster: str | None,
    version: str | None,
) -> MadeVersions:
    """Finds the versions that an instance made, of its process as it is named now or was then.

    ``cluster`` None: the only one with versions, or of several the only one where the process is declared. ``version``
    is that of an output, or its beginning; None: the present or the last one.

    Raises:
        QueryError: there is no process with outputs of that name.
        UnknownEntityError: there never was such a process, or it made versions on several clusters and none is named.
        UnknownInstanceError: it has no such instance, or no such version is recorded.
    """
    made = versions_made_by(connection, process, instance, cluster)
    clusters = sorted({one.cluster for one in made})
    declared_on = [one for one in clusters if store.workload(process, one) is not None]
    clusters = declared_on or clusters
    if not made:  # says what is wrong with the question
        cluster = find_subject(store, process, instance, cluster, "process").cluster
    elif len(clusters) > 1:
        raise UnknownEntityError(
            f"{process!r} is on several clusters: say which one with --cluster ({', '.join(clusters)})"
        )
    else:
        cluster = clusters[0]
        made = [one for one in made if one.cluster == cluster]
    workload = store.workload(process, cluster)
    is_process = isinstance(workload, ProcessWorkload) and workload.outputs
    if not is_process and (workload is not None or "process" not in recorded_kinds(connection, process)):
        raise QueryError(f"{process} is not a process with outputs: there is nothing to compare")
    wanted = _wanted(made, version, process, instance)
    declared = workload if isinstance(workload, ProcessWorkload) else None
    return MadeVersions(process, cluster, instance, tuple(made), wanted, declared)


def _wanted(made: list[Version], version: str | None, name: str, nominal: datetime) -> Version:
    found = [one for one in made if version is None or one.version.startswith(version)]
    if not found:
        which = "version" if version is None else f"version {version}..."
        raise UnknownInstanceError(f"no {which} is recorded that {name} made at {format_instant(nominal)}")
    if version is not None and len({one.version for one in found}) > 1:
        raise UnknownInstanceError(
            f"several versions begin with {version}: {', '.join(sorted({one.version for one in found}))}"
        )
    return next((one for one in reversed(found) if one.exists), found[-1])
