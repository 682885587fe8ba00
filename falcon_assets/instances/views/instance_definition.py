"""The version of its definition that an instance has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sqlalchemy import Connection

from falcon_assets.entities.definition_versions import EntityVersions, versions_of
from falcon_assets.model.entity import Key
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.workloads import Workload

_WAITS = (InstanceState.WAITING, InstanceState.READY)


def versions_for(connection: Connection, workloads: Iterable[Workload]) -> Mapping[Key, EntityVersions]:
    """By kind and name; one statement."""
    return versions_of(connection, sorted({(one.entity.kind, one.entity.name) for one in workloads}))


def definition_of(
    workload: Workload,
    nominal: datetime,
    record: InstanceRecord | None,
    versions: Mapping[Key, EntityVersions],
    *,
    waits: bool = False,
    use_latest: bool = False,
) -> int | None:
    """The version that an instance ran with last, or will run with where it waits; None: not recorded.

    ``waits``: for a rerun, regardless of the record; ``use_latest``: that rerun takes the latest version.
    """
    if record is not None and not waits and record.state not in _WAITS:
        return record.definition
    known = versions.get((workload.entity.kind, workload.entity.name), EntityVersions())
    return known.present if use_latest or isinstance(workload.entity, Feed) else known.of(nominal)
