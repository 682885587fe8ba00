"""The lifecycle statuses of versions: what feeds declare, and what people set."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, and_, or_, select

from falcon_assets.ledger.database.upsert import upsert
from falcon_assets.ledger.tables import DATA_VERSIONS, VERSION_LIFECYCLE
from falcon_assets.model.feed import LifecycleStatus
from falcon_assets.planning.lineage.graph import Version

_KEY = ("cluster", "feed", "instance", "version")
_TABLE, _VERSIONS = VERSION_LIFECYCLE.c, DATA_VERSIONS.c


@dataclass(frozen=True)
class SetStatus:
    """The status of a version that somebody set.

    Attributes:
        status: The status.
        at: When it was set, on the falcon clock.
        actor: By whom.
        reason: Why.
    """

    status: LifecycleStatus
    at: datetime
    actor: str
    reason: str


def status_set(connection: Connection, version: Version) -> SetStatus | None:
    """The status that somebody set; None: that of its feed holds."""
    own = (_TABLE[name] == getattr(version, name) for name in _KEY)
    row = connection.execute(select(_TABLE.status, _TABLE.at, _TABLE.actor, _TABLE.reason).where(*own)).one_or_none()
    return SetStatus(*row) if row else None


def set_status(connection: Connection, version: Version, status: SetStatus) -> None:
    """Sets the status of a version; it holds until another is set, also after a rebuild."""
    upsert(connection, VERSION_LIFECYCLE, [{**{name: getattr(version, name) for name in _KEY}, **vars(status)}])


def critical_versions(connection: Connection, feeds: Collection[str]) -> list[int]:
    """The numbers of all versions that are critical.

    Args:
        connection: The ledger.
        feeds: Those whose versions are critical where nobody set another status.
    """
    same = and_(*(_TABLE[name] == _VERSIONS[name] for name in _KEY))
    by_feed = and_(_TABLE.status.is_(None), _VERSIONS.feed.in_(feeds))
    asked = select(_VERSIONS.id).outerjoin_from(DATA_VERSIONS, VERSION_LIFECYCLE, same)
    if not feeds:
        asked = select(_VERSIONS.id).join_from(VERSION_LIFECYCLE, DATA_VERSIONS, same)
    return list(connection.execute(asked.where(or_(_TABLE.status == "critical", by_feed))).scalars())
