"""Takes versions out of the graph that it need not know any longer."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, delete, exists, or_, select

from falcon_assets.ledger.database.locks import LEDGER_LOCK, lock_in_transaction
from falcon_assets.ledger.database.upsert import parts
from falcon_assets.ledger.lineage.graph import every_version, version_of_row
from falcon_assets.ledger.lineage.protection import all_protected
from falcon_assets.ledger.tables import DATA_VERSIONS, VERSION_COLUMNS, VERSION_EDGES, VERSION_LIFECYCLE
from falcon_assets.planning.lineage.expiry import expired
from falcon_assets.planning.lineage.graph import Version
from falcon_assets.planning.lineage.version_status import VersionStatus

_EDGE, _VERSION = VERSION_EDGES.c, DATA_VERSIONS.c
_KEY = ("cluster", "feed", "instance", "version")


def expired_versions(connection: Connection, critical: Collection[str], before: datetime) -> list[Version]:
    """The versions that have been gone since before that time, and that nothing protects.

    Nobody folds until the transaction ends.

    Args:
        connection: The ledger.
        critical: The feeds whose versions are critical where nobody says otherwise.
        before: The time.
    """
    lock_in_transaction(connection, LEDGER_LOCK)
    protected = all_protected(connection, critical)
    is_read_only = _VERSION.status == VersionStatus.READ.value
    read_only = select(_VERSION.id).where(is_read_only)
    asked = select(_EDGE.output, _EDGE.input).where(_EDGE.input.in_(read_only))
    edges = [(output, read) for output, read in connection.execute(asked)]
    going = every_version().where(_VERSION.archived_to.is_(None), or_(is_read_only, _VERSION.ended_at < before))
    versions = map(version_of_row, connection.execute(going))
    return sorted(expired(versions, edges, protected, before), key=lambda one: one.number)


def forget(connection: Connection, versions: Collection[Version]) -> None:
    """Takes versions out of the graph, in the transaction that found them: with edges, and columns of no other."""
    for numbers in parts([one.number for one in versions]):
        connection.execute(delete(VERSION_EDGES).where(or_(_EDGE.output.in_(numbers), _EDGE.input.in_(numbers))))
        own = (VERSION_LIFECYCLE.c[name] == DATA_VERSIONS.c[name] for name in _KEY)
        connection.execute(delete(VERSION_LIFECYCLE).where(exists().where(*own, DATA_VERSIONS.c.id.in_(numbers))))
        connection.execute(delete(DATA_VERSIONS).where(DATA_VERSIONS.c.id.in_(numbers)))
    if plans := {one.plan for one in versions if one.plan}:
        used = exists().where(DATA_VERSIONS.c.plan == VERSION_COLUMNS.c.plan)
        connection.execute(delete(VERSION_COLUMNS).where(VERSION_COLUMNS.c.plan.in_(plans), ~used))
