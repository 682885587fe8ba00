"""Every path template of a feed, with the key that declares it."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.documents import KeyPath
from falcon_assets.model.expression import Call
from falcon_assets.model.feed import Feed, FeedCluster, Locations, Table
from falcon_assets.model.path_template import TIME_VARIABLES, PathTemplate
from falcon_assets.model.template import Variable

LOCATIONS = ("data", "stats", "meta")


def declared_templates(feed: Feed) -> Iterator[tuple[KeyPath, PathTemplate]]:
    """All of them, those that a cluster overrides included."""
    yield from _of_locations(("locations",), feed.locations)
    for index, entry in enumerate(feed.clusters):
        yield from _of_locations(("clusters", index, "locations"), entry.locations)
        yield from _archive(index, entry)
        yield from _of_table(("clusters", index, "table"), entry.table)
    yield from _of_table(("table",), feed.table)


def templates_on(feed: Feed, index: int) -> Iterator[tuple[KeyPath, PathTemplate]]:
    """Those that are in force on the cluster at ``index``."""
    entry = feed.clusters[index]
    for kind in LOCATIONS:
        own = getattr(entry.locations, kind, None)
        common = getattr(feed.locations, kind, None)
        if own is not None:
            yield ("clusters", index, "locations", kind), own
        elif common is not None:
            yield ("locations", kind), common
    yield from _archive(index, entry)
    yield from _of_table(("clusters", index, "table") if entry.table else ("table",), entry.table or feed.table)


def is_of_feed(path: KeyPath, template: PathTemplate) -> bool:
    """Whether it is a place of the feed as a whole, which no instance has for its own: nothing there is ever taken."""
    return path[-1] in ("stats", "meta") and not template.is_timed


def cluster_of(feed: Feed, path: KeyPath, cluster: str) -> str:
    """The cluster that the template at ``path``, in force on ``cluster``, is a place on."""
    if path[2:] != ("retention", "archive_to"):
        return cluster
    retention = feed.clusters[int(path[1])].retention
    return (retention.archive_cluster if retention else None) or cluster


def resolved(template: PathTemplate, values: dict[str, str]) -> str:
    """The template with the cluster's variables filled in and the time left open, slashes in normal form."""
    parts = (part if isinstance(part, str) else _value(part, values) for part in template.parts)
    return "/".join(piece for piece in "".join(parts).split("/") if piece not in ("", "."))


def _value(hole: Variable | Call, values: dict[str, str]) -> str:
    text = f"${{{hole.name}}}"
    return text if hole.name in TIME_VARIABLES else values.get(hole.name, text)


def _of_table(path: KeyPath, table: Table | None) -> Iterator[tuple[KeyPath, PathTemplate]]:
    if table is not None:
        yield (*path, "uri"), PathTemplate(table.uri)


def _of_locations(path: KeyPath, locations: Locations | None) -> Iterator[tuple[KeyPath, PathTemplate]]:
    for kind in LOCATIONS:
        template = getattr(locations, kind, None)
        if template is not None:
            yield (*path, kind), template


def _archive(index: int, entry: FeedCluster) -> Iterator[tuple[KeyPath, PathTemplate]]:
    if entry.retention is not None and entry.retention.archive_to is not None:
        yield ("clusters", index, "retention", "archive_to"), entry.retention.archive_to
