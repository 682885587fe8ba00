"""Subjects of questions about lineage: a version, as the user names it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field
from sqlalchemy import Connection

from falcon_assets.errors import UnknownEntityError, UnknownInstanceError, UsageError, printable
from falcon_assets.features.lineage.store import versions_of_instance
from falcon_assets.history.events.data_version import Version
from falcon_assets.model.instant import Instant, format_instant, parse_instant
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation


@dataclass(frozen=True)
class VersionQuery:
    """A version of a feed instance, perhaps of a deleted feed.

    Attributes:
        cluster: None: the only one on which versions are recorded.
        version: A prefix is enough; None: the present version, or the last one.
    """

    feed: str
    instance: datetime
    cluster: str | None = None
    version: str | None = None

    @classmethod
    def parse(cls, text: str) -> VersionQuery:
        """Parses ``[CLUSTER/]FEED/INSTANCE[@VERSION]``, the ids of nodes in JSON; UsageError or ExpressionError."""
        place, _, version = text.partition("@")
        match place.split("/"):
            case [feed, instance]:
                cluster = None
            case [cluster, feed, instance]:
                pass
            case _:
                raise UsageError(f"{text!r} is no version: write [CLUSTER/]FEED/INSTANCE[@VERSION]")
        return cls(feed, parse_instant(instance), cluster, version or None)

    def __str__(self) -> str:
        place = "/".join(filter(None, [self.cluster, self.feed, format_instant(self.instance)]))
        return f"{place}@{self.version}" if self.version else place


class OfOneVersion(Operation):
    """Fields of what is about a version."""

    feed: Annotated[str, Given("FEED")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(
        None, description="Cluster of the instance: needed if several clusters have versions of it."
    )
    version: str | None = Field(
        None, description="Version id or its first characters (default: the present version, else the last)."
    )

    @property
    def query(self) -> VersionQuery:
        return VersionQuery(self.feed, self.instance, self.cluster, self.version)


def find_version(installation: Installation, connection: Connection, query: VersionQuery) -> Version:
    """Returns the present one of the versions that match, else the last; raises as :func:`.show_lineage`."""
    found = find_versions(installation, connection, query)
    return next((one for one in reversed(found) if one.is_present), found[-1])


def find_versions(installation: Installation, connection: Connection, query: VersionQuery) -> list[Version]:
    """Returns all versions of the instance that match, in the order of events; raises as :func:`.show_lineage`."""
    feeds = installation.all_entities.feeds
    found = versions_of_instance(connection, printable(query.feed), query.instance)  # PostgreSQL takes UTF-8 only
    if not found or query.feed in feeds:
        require_readable(installation, "lineage", [installation.all_entities.feed(query.feed)])
    own = _on_cluster(found, query)
    if query.version is not None:
        own = [one for one in own if one.version.startswith(query.version)]
    if not own:
        which = "version" if query.version is None else f"version {printable(query.version)}..."
        where = f" on cluster {query.cluster!r}" if query.cluster else ""
        raise UnknownInstanceError(
            f"no {which} of feed {query.feed!r} {format_instant(query.instance)}{where} is recorded; falcon ledger "
            "rebuild reads all of Dagster's history again"
        )
    if query.version is not None and len({one.version for one in own}) > 1:
        named = ", ".join(one.version for one in own)
        raise UnknownInstanceError(f"several versions begin with {query.version}: {named}")
    return own


def _on_cluster(found: list[Version], query: VersionQuery) -> list[Version]:
    clusters = sorted({one.cluster for one in found})
    if query.cluster is None and len(clusters) > 1:
        raise UnknownEntityError(
            f"feed {query.feed!r} {format_instant(query.instance)} is on several clusters: "
            f"say which one with --cluster ({', '.join(clusters)})"
        )
    return [one for one in found if query.cluster in (None, one.cluster)]
