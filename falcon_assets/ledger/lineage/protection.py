"""Which versions stay because critical ones were made from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import Connection, and_, select, true

from falcon_assets.ledger.database.upsert import rows_of
from falcon_assets.ledger.lineage.graph import each_following, versions_of_numbers
from falcon_assets.ledger.lineage.lifecycle import critical_versions
from falcon_assets.ledger.tables import DATA_VERSIONS, VERSION_EDGES
from falcon_assets.planning.lineage.graph import Version
from falcon_assets.planning.lineage.protection import protected
from falcon_assets.planning.lineage.version_status import VersionStatus
from falcon_assets.planning.retention.reasons_to_keep import Protected

_EDGE = VERSION_EDGES.c


@dataclass
class ProtectedVersions:
    """The protected versions of a feed on a cluster, and why each is.

    Attributes:
        instances: Instance -> why it stays: its present version is protected, or one that is kept, which goes with it.
        versions: Instance and version -> why it is.
    """

    instances: dict[datetime, Protected] = field(default_factory=dict)
    versions: dict[tuple[datetime, str], Protected] = field(default_factory=dict)


def edges_above(connection: Connection, numbers: Collection[int]) -> list[tuple[int, int]]:
    """All edges from which versions came, however far: what was made, and what it was made from."""
    start = rows_of(DATA_VERSIONS, {"id": list(numbers)})
    every = select(start.c.id.label("id")).cte("above", recursive=True)
    following = each_following(select(_EDGE.input.label("id")).where(_EDGE.output == every.c.id))
    every = every.union(select(following.c.id).join_from(every, following, true()))
    made = each_following(select(_EDGE.output, _EDGE.input).where(_EDGE.output == every.c.id))
    rows = connection.execute(select(made.c.output, made.c.input).join_from(every, made, true()))
    return [(row.output, row.input) for row in rows]


def all_protected(connection: Connection, feeds: Collection[str]) -> Mapping[int, int]:
    """By number, the versions that are protected, and the critical one that each is for.

    Args:
        connection: The ledger.
        feeds: Those whose versions are critical where nobody says otherwise.
    """
    critical = critical_versions(connection, feeds)
    return protected(critical, edges_above(connection, critical)) if critical else {}


def protected_on(
    connection: Connection, cluster: str, feeds: Collection[str], critical: Collection[str]
) -> Mapping[str, ProtectedVersions]:
    """What is protected of feeds on a cluster, by feed.

    Args:
        connection: The ledger.
        cluster: The cluster.
        feeds: The feeds.
        critical: Those whose versions are critical where nobody says otherwise.
    """
    reasons = all_protected(connection, critical)
    there = (DATA_VERSIONS.c.cluster == cluster, DATA_VERSIONS.c.feed.in_(feeds))
    own = versions_of_numbers(connection, reasons, *there)
    named = {one.number: one for one in versions_of_numbers(connection, {reasons[one.number] for one in own})}
    found: dict[str, ProtectedVersions] = {}
    uncollected = {one.number for one in _uncollected(connection, cluster, own)}
    for one in own:
        reason = Protected(named[reasons[one.number]].id, itself=reasons[one.number] == one.number)
        of_feed = found.setdefault(one.feed, ProtectedVersions())
        of_feed.versions[one.instance, one.version] = reason
        if one.is_present or one.number in uncollected:
            of_feed.instances[one.instance] = reason
        elif one.exists:
            of_feed.instances.setdefault(one.instance, reason)
    return found


def _uncollected(connection: Connection, cluster: str, versions: Sequence[Version]) -> list[Version]:
    """Those that were only read, of instances of which nothing is known to be there: perhaps nobody collects them."""
    read = [one for one in versions if one.status is VersionStatus.READ]
    if not read:
        return []
    table = DATA_VERSIONS.c
    asked = rows_of(DATA_VERSIONS, {"feed": [one.feed for one in read], "instance": [one.instance for one in read]})
    same = and_(table.feed == asked.c.feed, table.instance == asked.c.instance)
    there = select(table.feed, table.instance).join_from(asked, DATA_VERSIONS, same)
    rows = connection.execute(there.where(table.cluster == cluster, table.status == VersionStatus.AVAILABLE.value))
    known = {(row.feed, row.instance) for row in rows}
    return [one for one in read if (one.feed, one.instance) not in known]
