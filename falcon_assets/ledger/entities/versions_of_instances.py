"""Which versions of their definitions instances may run with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, select, tuple_

from falcon_assets.catalog.stored_tree import Key
from falcon_assets.ledger.database.upsert import parts
from falcon_assets.ledger.tables import DEFINITION_VERSIONS, ENTITY_STATUS
from falcon_assets.planning.rules.definition_versions import VersionSince, version_for


@dataclass(frozen=True)
class EntityVersions:
    """The versions of an entity since it was submitted, the oldest first.

    Attributes:
        versions: None of them is a deletion.
        scheduled_since: When the entity was scheduled first; None: it never was.
    """

    versions: tuple[VersionSince, ...] = ()
    scheduled_since: datetime | None = None

    @property
    def present(self) -> int | None:
        """The present version; None: none is recorded."""
        return self.versions[-1].number if self.versions else None

    def of(self, nominal: datetime) -> int | None:
        """The version that the instance runs with; None: none is recorded."""
        return version_for(nominal, self.scheduled_since, self.versions) if self.versions else None

    def at(self, moment: datetime) -> int | None:
        """The latest version of that time; None: none is that old."""
        return next((one.number for one in reversed(self.versions) if one.since <= moment), None)


def versions_of(connection: Connection, entities: Collection[Key]) -> Mapping[Key, EntityVersions]:
    """The versions of each entity, by kind and name; of an entity without a recorded one there is nothing."""
    table, status = DEFINITION_VERSIONS.c, ENTITY_STATUS.c
    joined = DEFINITION_VERSIONS.outerjoin(ENTITY_STATUS, and_(table.kind == status.kind, table.name == status.name))
    deleted = table.text_hash.is_(None).label("deleted")
    columns = (table.kind, table.name, table.version, table.since, deleted, status.scheduled_since)
    found: dict[Key, EntityVersions] = {}
    for some in parts(entities):
        wanted = select(*columns).select_from(joined).where(tuple_(table.kind, table.name).in_(some))
        for row in connection.execute(wanted.order_by(table.version)):
            key = (row.kind, row.name)
            before = () if row.deleted or key not in found else found[key].versions
            own = () if row.deleted else (VersionSince(row.version, row.since),)
            found[key] = EntityVersions((*before, *own), row.scheduled_since)
    return found
