"""Path templates of feeds with their keys, and checks of the places they lead to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.yaml_files.documents import KeyPath, key_path_text
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed, FeedCluster, Locations, Table
from falcon_assets.model.path_template import TIME_VARIABLES, PathTemplate
from falcon_assets.model.store_url import canonical_url, is_hdfs, is_mounted, is_object_store
from falcon_assets.model.template import Variable, value_of
from falcon_assets.planning.instance_paths import InstancePaths

LOCATIONS = ("data", "stats", "meta")


def declared_templates(feed: Feed) -> Iterator[tuple[KeyPath, PathTemplate]]:
    """Yields all templates, including those that a cluster overrides."""
    yield from _of_locations(("locations",), feed.locations)
    for index, entry in enumerate(feed.clusters):
        yield from _of_locations(("clusters", index, "locations"), entry.locations)
        yield from _archive(index, entry)
        yield from _of_table(("clusters", index, "table"), entry.table)
    yield from _of_table(("table",), feed.table)


def templates_on(feed: Feed, index: int) -> Iterator[tuple[KeyPath, PathTemplate]]:
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
    """Whether it is a place of the feed as a whole, shared by its instances: it is never evicted."""
    return path[-1] in ("stats", "meta") and not template.is_timed


def cluster_of(feed: Feed, path: KeyPath, cluster: str) -> str:
    """Returns the cluster of the place: the archive's may differ from the one where the template is in force."""
    if path[2:] != ("retention", "archive_to"):
        return cluster
    retention = feed.clusters[int(path[1])].retention
    return (retention.archive_cluster if retention else None) or cluster


class Located(NamedTuple):
    shown: str
    absolute: str
    """Comparable among all clusters, as far as the definitions say."""
    is_url: bool


def located(feed: Feed, path: KeyPath, template: PathTemplate, on: Cluster, where: Cluster | None) -> Located:
    """Returns the place of a template, with the variables of the cluster ``on`` and open time variables.

    ``where`` is the cluster of the place, see :func:`cluster_of`; None: unknown.

    Raises:
        ExpressionError: an unknown variable, or an illegal place.
    """
    if path[-1] == "uri":
        table = InstancePaths(feed, on).template.text
        return Located(table, f"{on.name} {table}", is_url=False)
    place = InstancePaths(feed, on).place(template)
    below = place.template.text.strip("/")
    if place.root is not None:
        url = canonical_url(place.root)
        return Located(f"{url}/{below}", f"{url}/{below}", is_url=True)
    return Located(below, f"{root_of(where) if where else ''}/{below}", is_url=False)


def root_of(cluster: Cluster) -> str:
    """Returns the root of the cluster, comparable to :attr:`Located.absolute`."""
    endpoint = cluster.interfaces.write.endpoint
    return canonical_url(endpoint) if "://" in endpoint else f"{cluster.name} {endpoint}"


def lies_mounted(feed: Feed, cluster: Cluster, *, readonly: bool = False) -> bool:
    """Whether the data of ``feed`` is on a file system on ``cluster``, not on an object store."""
    return is_mounted(_place_of(feed, cluster, readonly=readonly))


def lies_in_folders(feed: Feed, cluster: Cluster) -> bool:
    """Whether the data of ``feed`` is on mounted disks or HDFS, where whole folders can be renamed."""
    return lies_mounted(feed, cluster) or is_hdfs(_place_of(feed, cluster, readonly=False))


def kind_of_files(feed: Feed, cluster: Cluster, *, readonly: bool) -> str | None:
    """Returns ``file://`` or ``HDFS``, where files have owners and permissions; None: another store."""
    place = _place_of(feed, cluster, readonly=readonly)
    return "file://" if is_mounted(place) else "HDFS" if is_hdfs(place) else None


def lies_on_object_store(feed: Feed, cluster: Cluster) -> bool:
    return is_object_store(_place_of(feed, cluster, readonly=False))


def _place_of(feed: Feed, cluster: Cluster, *, readonly: bool) -> str:
    template = feed.locations_on(cluster.name).data
    endpoint = cluster.interfaces.storage(readonly=readonly).endpoint
    return template.text if template is not None and template.is_url else endpoint


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


_UNKNOWN_SHOWN = 10


@dataclass(frozen=True)
class _Taken:
    feed: Declared[Feed]
    path: KeyPath
    cluster: str
    located: Located

    def meets(self, other: _Taken) -> bool:
        """Whether the two can be compared: places on two clusters are apart, unless one is a URL."""
        return self.cluster == other.cluster or self.located.is_url or other.located.is_url

    @property
    def where(self) -> str:
        return "" if self.located.is_url else f"on cluster {self.cluster!r} "


def check_paths(definitions: Definitions) -> Iterator[Problem]:
    """Templates that are too coarse or lead out, unknown variables, shared or nested paths, staging among data."""
    taken: dict[str, list[_Taken]] = {}
    for feed in definitions.feeds.values():
        for path, template in declared_templates(feed.entity):
            yield from _too_coarse(feed, path, template)
        for index, _, cluster in definitions.feed_clusters(feed):
            values = {**feed.entity.properties, **cluster.variables}
            for path, template in templates_on(feed.entity, index):
                unknown = list(_unknown_variables(feed, path, template, values, cluster))
                yield from unknown
                if unknown:
                    continue
                where = cluster_of(feed.entity, path, cluster.name)
                declared = definitions.clusters.get(where)
                try:
                    place = located(feed.entity, path, template, cluster, declared.entity if declared else None)
                except ExpressionError as error:
                    yield feed.problem(path, str(error))
                    continue
                if is_of_feed(path, template):
                    continue
                here = _Taken(feed, path, where, place)
                others = taken.setdefault(place.absolute, [])
                other = next((one for one in others if one.meets(here)), None)
                others.append(here)
                if other and (other.feed, other.path) != (feed, path) and not _side_by_side(here, other):
                    same = f"{template.text!r} is {here.where}the same path as {_declaration(other)}"
                    yield feed.problem(path, same)
    yield from _copied_onto_itself(taken)
    yield from _inside_of_instances(taken)
    prefixes = _prefixes(taken)
    for area in definitions.clusters.values():
        yield from _areas_among_data(area, {**prefixes.get(area.entity.name, {}), **prefixes.get(None, {})})


def _too_coarse(feed: Declared[Feed], path: KeyPath, template: PathTemplate) -> Iterator[Problem]:
    is_shared = is_of_feed(path, template) or (feed.entity.snapshot and path[-1] in ("data", "uri"))
    missing = () if is_shared else template.missing_for(feed.entity.frequency)
    if missing:
        names = ", ".join(f"${{{name}}}" for name in missing)
        message = f"coarser than the frequency {feed.entity.frequency}: instances would share a path without {names}"
        may_be_snapshot = path[-1] in ("data", "uri") and not template.is_timed
        hint = "; where it is replaced in place, declare snapshot: true" if may_be_snapshot else ""
        yield feed.problem(path, f"{template.text!r} is {message}{hint}")


def _unknown_variables(
    feed: Declared[Feed], path: KeyPath, template: PathTemplate, values: dict[str, str], cluster: Cluster
) -> Iterator[Problem]:
    known = {**dict.fromkeys(TIME_VARIABLES, ""), **values}
    unknown = [name for name in template.variables if name not in known]
    for name in unknown[:_UNKNOWN_SHOWN]:
        try:
            value_of(template.text, Variable(name), known)
        except ExpressionError as error:
            yield feed.problem(path, f"{error} on cluster {cluster.name!r}")


def _prefixes(taken: Mapping[str, list[_Taken]]) -> dict[str | None, dict[str, _Taken]]:
    """Cluster (None for whole URLs) -> the folders above the first time variable, or that of a snapshot.

    Everything in them belongs to the feed.
    """
    found: dict[str | None, dict[str, _Taken]] = {}
    for alike in taken.values():
        for one in alike:
            # Nothing for a table, nor for what lies right below the root.
            if one.path[-1] != "uri" and _fixed(one.located.shown):
                where = None if one.located.is_url else one.cluster
                found.setdefault(where, {}).setdefault(_fixed(one.located.absolute), one)
    return found


def _fixed(place: str) -> str:
    return place.partition("${")[0].rpartition("/")[0] if "${" in place else place


def _side_by_side(one: _Taken, other: _Taken) -> bool:
    """Statistics and metadata of one feed may share a folder: they are written and evicted together."""
    return one.feed is other.feed and {one.path[-1], other.path[-1]} <= {"stats", "meta"}


def _declaration(one: _Taken) -> str:
    return f"{key_path_text(one.path)} of feed {one.feed.entity.name!r} at {one.feed.document.position(one.path)}"


def _copied_onto_itself(taken: Mapping[str, list[_Taken]]) -> Iterator[Problem]:
    """A URL is the same place on every cluster: there is nothing to copy, and retention would delete it twice."""
    for alike in taken.values():
        for target in alike:
            source = next((one for one in alike if one.feed is target.feed and _role(one) == "source"), None)
            if source is not None and _role(target) == "target" and target.path[-1] == "data":
                where = f"where it lies on source cluster {source.cluster!r} too"
                message = f"{target.located.shown!r} is the place of target cluster {target.cluster!r}, {where}"
                yield target.feed.problem(target.path, message)


def _role(one: _Taken) -> str | None:
    entry = one.feed.entity.on(one.cluster)
    return entry.type if entry else None


def _inside_of_instances(taken: Mapping[str, list[_Taken]]) -> Iterator[Problem]:
    """Data in the folder of another feed's instance would be replaced and evicted with it."""
    for absolute, alike in taken.items():
        steps = absolute.split("/")
        outer = [one for depth in range(1, len(steps)) for one in taken.get("/".join(steps[:depth]), ())]
        for one in alike if outer else ():
            other = next((two for two in outer if two.meets(one) and not _is_own(one, two)), None)
            if other is not None and one.path[-1] != "uri":
                where = f"{one.where}inside of the instances of {_declaration(other)}"
                yield one.feed.problem(one.path, f"{one.located.shown!r} is {where}")


def _is_own(inner: _Taken, outer: _Taken) -> bool:
    if inner.feed is not outer.feed:
        return False
    return inner.path[-1] != "archive_to" or inner.feed.entity.clusters[int(inner.path[1])].name == outer.cluster


def _areas_among_data(declared: Declared[Cluster], prefixes: Mapping[str, _Taken]) -> Iterator[Problem]:
    for area in ("staging", "working"):
        folder = "/".join(piece for piece in getattr(declared.entity.locations, area).split("/") if piece)
        absolute = f"{root_of(declared.entity)}/{folder}"
        for prefix, one in prefixes.items():
            lies = f"{_fixed(one.located.shown)!r}, where feed {one.feed.entity.name!r} lies"
            if f"{absolute}/".startswith(f"{prefix}/") or f"{prefix}/".startswith(f"{absolute}/"):
                yield declared.problem(("locations", area), f"{folder!r} and {lies}, must not be inside of each other")
