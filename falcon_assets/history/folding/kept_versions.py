"""Kept versions of feed instances, which were replaced: written by the fold, read by commands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, TypeAlias

from sqlalchemy import Connection, and_, delete, select

from falcon_assets.history.database import among, parts, upsert
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.events.event_log import Fact
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedVersionEvicted
from falcon_assets.history.folding.version_rows import version_of_row
from falcon_assets.history.tables import DATA_VERSIONS, FEED_INSTANCES, KEPT_VERSIONS
from falcon_assets.planning.instance_record import FeedState
from falcon_assets.planning.version_columns import VersionStatus

_TABLE = KEPT_VERSIONS.c
_KEY = (_TABLE.cluster, _TABLE.feed, _TABLE.instance)
_Instance: TypeAlias = tuple[str, str, datetime]


class Kept(NamedTuple):
    path: str
    replaced_at: datetime


KeptRows: TypeAlias = Mapping[str, Kept]


def after_publication(rows: KeptRows, fact: FeedInstanceAvailable) -> KeptRows:
    """Returns the kept versions after a publication, as it lists them, without the published version."""
    if fact.kept_versions is None:
        return {version: row for version, row in rows.items() if version != fact.version}
    said = {one.version: one.path for one in fact.kept_versions if one.version != fact.version}
    return {
        version: Kept(path, rows[version].replaced_at if version in rows else fact.seen_at)
        for version, path in said.items()
    }


def load_kept(connection: Connection, facts: Iterable[Fact]) -> dict[_Instance, KeptRows]:
    about = (one for one in facts if isinstance(one, FeedInstanceAvailable | FeedVersionEvicted))
    return kept_of(connection, {(one.cluster, one.feed, one.instance) for one in about})


def kept_of(connection: Connection, instances: Collection[_Instance]) -> dict[_Instance, KeptRows]:
    found: dict[_Instance, dict[str, Kept]] = {}
    for part in parts(instances):
        for row in connection.execute(select(KEPT_VERSIONS).where(among(_KEY, part))):
            own = found.setdefault((row.cluster, row.feed, row.instance), {})
            own[row.version] = Kept(row.path, row.replaced_at)
    return dict(found)


def store_kept(connection: Connection, rows: Mapping[_Instance, KeptRows]) -> None:
    for part in parts(rows):
        connection.execute(delete(KEPT_VERSIONS).where(among(_KEY, part)))
    values = [
        {"cluster": key[0], "feed": key[1], "instance": key[2], "version": version, **row._asdict()}
        for key, own in rows.items()
        for version, row in own.items()
    ]
    upsert(connection, KEPT_VERSIONS, values)


@dataclass
class KnownVersions:
    replaced: dict[tuple[datetime, str], datetime] = field(default_factory=dict)
    evicted: set[datetime] = field(default_factory=set)
    bytes: dict[tuple[datetime, str], int] = field(default_factory=dict)


def known_versions(connection: Connection, cluster: str, feeds: Collection[str]) -> dict[str, KnownVersions]:
    there, of, found = FEED_INSTANCES.c, DATA_VERSIONS.c, dict[str, KnownVersions]()
    same = and_(*(there[column.name] == column for column in _KEY))
    that = and_(*(of[column.name] == column for column in (*_KEY, _TABLE.version)))
    asked = select(_TABLE.feed, _TABLE.instance, _TABLE.version, _TABLE.replaced_at, there.state, of.bytes)
    own = (_TABLE.cluster == cluster, _TABLE.feed.in_(feeds))
    joined = asked.outerjoin_from(KEPT_VERSIONS, FEED_INSTANCES, same).outerjoin(DATA_VERSIONS, that)
    for row in connection.execute(joined.where(*own)):
        one = found.setdefault(row.feed, KnownVersions())
        one.replaced[row.instance, row.version] = row.replaced_at
        one.bytes[row.instance, row.version] = row.bytes or 0
        if row.state == FeedState.EVICTED.value:
            one.evicted.add(row.instance)
    return found


def versions_of(connection: Connection, instance: _Instance) -> dict[str, Version]:
    table = DATA_VERSIONS.c
    own = (table.cluster == instance[0], table.feed == instance[1], table.instance == instance[2])
    rows = connection.execute(select(DATA_VERSIONS).where(*own, table.status != VersionStatus.READ.value))
    return {row.version: version_of_row(row) for row in rows}
