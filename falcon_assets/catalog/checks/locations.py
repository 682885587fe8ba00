"""Checks of storage: files or a table, never both, and some on each cluster of a feed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from falcon_assets.catalog.checks.names import feed_references
from falcon_assets.catalog.checks.paths import LOCATIONS, kind_of_files, lies_in_folders, lies_on_object_store
from falcon_assets.catalog.declared import Declared, Definitions
from falcon_assets.catalog.validation import SECRET_RULES
from falcon_assets.catalog.yaml_files.documents import KeyPath
from falcon_assets.errors import ExpressionError, Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.expression import Call
from falcon_assets.model.feed import Feed, FeedCluster, Locations
from falcon_assets.model.path_template import is_within, legal_path
from falcon_assets.model.process import Process
from falcon_assets.model.secret_values import SECRET_KEY
from falcon_assets.model.spark_schema import schema_mistake
from falcon_assets.model.store_url import canonical_url, is_hdfs, is_mounted
from falcon_assets.model.table_catalog_url import is_hive, is_rest, registry_problem
from falcon_assets.model.table_uri import TableUri
from falcon_assets.model.template import Variable, parse_template, value_of

TABLE_FORMATS = ("parquet", "orc")


def check_files_or_table(definitions: Definitions) -> Iterator[Problem]:
    """Both kinds of storage or none, tables without a registry, and tables that processes cannot write."""
    for feed in definitions.feeds.values():
        yield from _both_kinds(feed)
        yield from _no_storage(feed)
        for index, entry, cluster in definitions.feed_clusters(feed):
            if feed.entity.table_on(entry.name) is not None and cluster.interfaces.registry is None:
                message = f"a table feed needs a registry, and cluster {entry.name!r} declares no interfaces.registry"
                yield feed.problem(("clusters", index, "name"), message)
            elif feed.entity.table_on(entry.name) is not None:
                where = f"feed {feed.entity.name!r} is a table on cluster {entry.name!r}"
                if entry.type is not None and entry.partition is not None:
                    rule = "a table is replicated from one source: remove partition"
                    yield feed.problem(("clusters", index, "partition"), f"{where}, and {rule}")
                elif entry.type is not None:
                    yield from _replicated(feed, index, cluster, where)
                if entry.retention is not None and entry.retention.action == "archive":
                    yield from _archived(feed, index, cluster, where)
        if feed.entity.table is not None:
            yield from _of_files(feed)
    yield from _registries(definitions)
    for process in definitions.processes.values():
        for path, name in feed_references(process.entity):
            stored = definitions.feeds.get(name)
            if stored is not None and path[0] == "outputs":
                yield from _written_table(definitions, process, path, stored.entity)
                yield from _not_mounted(definitions, process, path, stored.entity)


def _open_keys(feed: Feed, cluster: str) -> set[str]:
    table = feed.table_on(cluster)
    return {key.lower() for key in TableUri.parse(table.uri).open_keys} if table else set()


def _replicated(feed: Declared[Feed], index: int, cluster: Cluster, where: str) -> Iterator[Problem]:
    """Copies are written as by processes: into Parquet or ORC; on a file system, or on an object store."""
    is_target = feed.entity.clusters[index].type == "target"
    opened = _open_keys(feed.entity, cluster.name)
    others = (one.name for one in feed.entity.clusters if is_target and one.type == "source")
    for there in (_open_keys(feed.entity, one) for one in others if feed.entity.table_on(one) is not None):
        if there != opened:
            rule = f"the keys that are * have to be those of the source: {', '.join(sorted(there)) or 'none'}"
            yield feed.problem(("clusters", index, "type"), f"{where}, and {rule}")
    if is_target and feed.entity.format not in TABLE_FORMATS:
        rule = f"tables are written in {' and '.join(TABLE_FORMATS)}, not in {feed.entity.format}"
        yield feed.problem(("clusters", index, "type"), f"{where}, and {rule}")
    if is_target and (why := _why_not_made(feed.entity, cluster)):
        yield feed.problem(("clusters", index, "type"), f"{where}, and {why}")
        return
    is_hadoop_or_mounted = kind_of_files(feed.entity, cluster, readonly=not is_target) is not None
    if not (is_hadoop_or_mounted or lies_on_object_store(feed.entity, cluster)):
        rule = "tables are replicated where their cluster is a file://, on HDFS or an object store"
        yield feed.problem(("clusters", index, "type"), f"{where}, and {rule}")


def _why_not_made(feed: Feed, cluster: Cluster) -> str | None:
    """Returns why tables of the cluster, which are created below its endpoint, cannot be written; None: they can."""
    if not (lies_in_folders(feed, cluster) or lies_on_object_store(feed, cluster)):
        return "tables are written where their cluster is a file://, on HDFS or an object store"
    registry = cluster.interfaces.registry
    if registry and not is_hive(registry.endpoint) and kind_of_files(feed, cluster, readonly=False) == "HDFS":
        return "Iceberg tables cannot be written on HDFS, which PyIceberg does not support: use a Hive table"
    return None


def _archived(feed: Declared[Feed], index: int, cluster: Cluster, where: str) -> Iterator[Problem]:
    """Archiving copies the table to the cluster's own storage."""
    action = ("clusters", index, "retention", "action")
    if not (lies_in_folders(feed.entity, cluster) or lies_on_object_store(feed.entity, cluster)):
        rule = "tables are archived where their cluster is a file://, on HDFS or an object store"
        yield feed.problem(action, f"{where}, and {rule}")


def _not_mounted(definitions: Definitions, process: Declared[Process], path: KeyPath, feed: Feed) -> Iterator[Problem]:
    for entry in process.entity.clusters:
        cluster = definitions.clusters.get(entry.name)
        if cluster is None or feed.on(entry.name) is None or feed.table_on(entry.name) is not None:
            continue
        if lies_in_folders(feed, cluster.entity):
            continue
        where = f"feed {feed.name!r} lies on no file:// store on cluster {entry.name!r}"
        if not lies_on_object_store(feed, cluster.entity):
            yield process.problem(
                path, f"{where}, and outputs of processes are published on such, on HDFS and on object stores only"
            )
        elif feed.availability_flag is None:
            yield process.problem(path, f"{where}, and is published by setting the flag: declare availability_flag")


def _of_files(feed: Declared[Feed]) -> Iterator[Problem]:
    if feed.entity.availability_flag is not None:
        rule = "a partition of a table is complete when it exists: remove availability_flag"
        yield feed.problem(("availability_flag",), rule, at_key=True)
    if feed.entity.partitions:
        yield feed.problem(("partitions",), "the uri of a table says how it is partitioned", at_key=True)


def _registries(definitions: Definitions) -> Iterator[Problem]:
    used = {
        entry.name
        for feed in definitions.feeds.values()
        for entry in feed.entity.clusters
        if feed.entity.table_on(entry.name) is not None
    }
    for cluster in definitions.clusters.values():
        registry = cluster.entity.interfaces.registry
        if registry is None or cluster.entity.name not in used:
            continue
        if why := registry_problem(registry.endpoint):
            yield cluster.problem(("interfaces", "registry", "endpoint"), why)
        elif registry.storage_options and not is_rest(registry.endpoint):
            rule = "only Iceberg's REST services (iceberg+https://...) take options"
            yield cluster.problem(("interfaces", "registry", SECRET_KEY), rule, at_key=True)


def _written_table(
    definitions: Definitions, process: Declared[Process], path: KeyPath, feed: Feed
) -> Iterator[Problem]:
    for entry in process.entity.clusters:
        table = feed.table_on(entry.name)
        if table is None or feed.on(entry.name) is None:
            continue
        where = f"feed {feed.name!r} is a table on cluster {entry.name!r}"
        cluster = definitions.clusters.get(entry.name)
        if cluster and (why := _why_not_made(feed, cluster.entity)):
            yield process.problem(path, f"{where}, and {why}")
        if feed.format not in TABLE_FORMATS:
            rule = f"processes write tables in {' and '.join(TABLE_FORMATS)}, not in {feed.format}"
            yield process.problem(path, f"{where}, and {rule}")


def _both_kinds(feed: Declared[Feed]) -> Iterator[Problem]:
    rule = "a feed has either locations or a table, never both"
    if feed.entity.table is not None and feed.entity.locations is not None:
        yield feed.problem(("table",), rule, at_key=True)
    for index, entry in enumerate(feed.entity.clusters):
        if entry.table is not None and (entry.locations is not None or feed.entity.locations is not None):
            yield feed.problem(("clusters", index, "table"), rule, at_key=True)
        elif entry.locations is not None and feed.entity.table is not None:
            yield feed.problem(("clusters", index, "locations"), rule, at_key=True)


def _no_storage(feed: Declared[Feed]) -> Iterator[Problem]:
    for index, entry in enumerate(feed.entity.clusters if feed.entity.rollup is None else ()):
        if feed.entity.table_on(entry.name) is None and feed.entity.locations_on(entry.name).data is None:
            message = f"there is no location for the data on cluster {entry.name!r}: declare locations.data or a table"
            yield feed.problem(("clusters", index), message)


_HOLE = re.compile(r"\$\{[^{}]*\}")


def components(partition: str | None) -> tuple[str, ...]:
    """Returns the parts of a partition expression, one per sub-partition (``*/US``)."""
    whole = _HOLE.sub("*", partition or "")  # a hole is one level, whatever stands in it
    return tuple(piece for piece in whole.split("/") if piece)


def check_partitions(definitions: Definitions) -> Iterator[Problem]:
    """Partitions of clusters and inputs that are deeper than the feed's, or of clusters with unknown variables."""
    for feed in definitions.feeds.values():
        yield from _deep_clusters(feed)
        for index, entry, cluster in definitions.feed_clusters(feed):
            path = ("clusters", index, "partition")
            yield from (feed.problem(path, text) for text in _unknown_variables(entry.partition, cluster))
            yield from (feed.problem(path, text) for text in _no_folder(entry.partition))
    for process in definitions.processes.values():
        for index, declared in enumerate(process.entity.inputs):
            path = ("inputs", index, "partition")
            yield from (process.problem(path, text) for text in _no_folder(declared.partition))
            read = definitions.feeds.get(declared.feed)
            if read is not None and len(components(declared.partition)) > len(read.entity.partitions):
                yield process.problem(path, f"{declared.partition!r} is {_deeper(read.entity)}")


def _no_folder(partition: str | None) -> Iterator[str]:
    try:
        legal_path(partition or "")
    except ExpressionError as error:
        yield str(error)


def _deep_clusters(feed: Declared[Feed]) -> Iterator[Problem]:
    allowed = len(feed.entity.partitions)
    sources = [entry for entry in feed.entity.clusters if entry.type == "source"]
    for index, entry in enumerate(feed.entity.clusters):
        path: KeyPath = ("clusters", index, "partition")
        own = len(components(entry.partition))
        if own > allowed:
            yield feed.problem(path, f"{entry.partition!r} is {_deeper(feed.entity)}")
        elif own and entry.type == "target":
            yield from _deep_pairs(feed, path, entry, sources)


def _deep_pairs(
    feed: Declared[Feed], path: KeyPath, target: FeedCluster, sources: list[FeedCluster]
) -> Iterator[Problem]:
    """A target's partition is below that of its source (source of the rule: Falcon's feed validation)."""
    allowed = len(feed.entity.partitions)
    for source in sources:
        depth = len(components(source.partition))
        if depth <= allowed < depth + len(components(target.partition)):
            both = f"{target.partition!r} below {source.partition!r} of source {source.name!r}"
            yield feed.problem(path, f"{both} is {_deeper(feed.entity)}")


def _deeper(feed: Feed) -> str:
    names = ", ".join(feed.partitions) or "none"
    return f"deeper than feed {feed.name!r} is partitioned (partitions: {names})"


def _unknown_variables(partition: str | None, cluster: Cluster) -> Iterator[str]:
    text = partition or ""
    try:
        for part in parse_template(text):
            if isinstance(part, Call):
                yield f"{text!r}: only variables may stand in a partition, not {part.name}(...)"
            elif isinstance(part, Variable):
                value_of(text, part, cluster.variables)
    except ExpressionError as error:
        yield f"{error} on cluster {cluster.name!r}"


def check_schemas(definitions: Definitions) -> Iterator[Problem]:
    """Schemas that Spark will not read; only on request, as Spark may learn more types than are known here."""
    for feed in definitions.feeds.values():
        if feed.entity.schema_ is not None and (mistake := schema_mistake(feed.entity.schema_)):
            yield feed.document.problem(("schema",), f"not a Spark schema: {mistake}")


def check_storage_options(definitions: Definitions) -> Iterator[Problem]:
    """Mappings where fsspec takes none: its own are ``client_kwargs``, ``config_kwargs`` and so on."""
    for cluster in definitions.clusters.values():
        for name in _without_place(cluster.entity.storage_options):
            yield cluster.problem((SECRET_KEY, name), SECRET_RULES[True])
    for feed in definitions.feeds.values():
        for path, locations in _locations(feed):
            for name in _without_place(locations.storage_options or {}):
                yield feed.problem((*path, SECRET_KEY, name), SECRET_RULES[True])
            if locations.storage_options is not None and not _has_url(feed.entity, path):
                message = "no location is a whole URL, and all others take the options of the cluster"
                yield feed.problem((*path, SECRET_KEY), message, at_key=True)


def _without_place(options: Mapping[str, object]) -> Iterator[str]:
    return (name for name, value in options.items() if isinstance(value, dict) and not name.endswith("_kwargs"))


def _locations(feed: Declared[Feed]) -> Iterator[tuple[KeyPath, Locations]]:
    if feed.entity.locations is not None:
        yield ("locations",), feed.entity.locations
    for index, entry in enumerate(feed.entity.clusters):
        if entry.locations is not None:
            yield ("clusters", index, "locations"), entry.locations


def _has_url(feed: Feed, path: KeyPath) -> bool:
    entries = feed.clusters if len(path) == 1 else (feed.clusters[int(path[1])],)
    for entry in entries:
        in_force = feed.locations_on(entry.name)
        archive_to = entry.retention.archive_to if entry.retention else None
        templates = (archive_to, *(getattr(in_force, kind) for kind in LOCATIONS))
        if any(template is not None and template.is_url for template in templates):
            return True
    return False


def _server(endpoint: str) -> str:
    """Returns what a store is reached by; empty: by the file system of the machine."""
    return "" if is_mounted(endpoint) else "/".join(canonical_url(endpoint).split("/")[:3])


def check_volumes(definitions: Definitions) -> Iterator[Problem]:
    """Volumes that are no folders of one kind of disk, or within one another; what cannot be spread over several."""
    several = {name: one for name, one in definitions.clusters.items() if len(one.entity.interfaces.write.volumes) > 1}
    for cluster in several.values():
        interfaces, where = cluster.entity.interfaces, ("interfaces", "write", "endpoints")
        if interfaces.readonly is not None:
            message = "names one place, and endpoints several: remove it, so that all volumes are read"
            yield cluster.problem(("interfaces", "readonly"), message, at_key=True)
        endpoints = interfaces.write.endpoints
        places = [canonical_url(one if "://" in one else f"home://{one}") for one in endpoints]
        legal = [one for one in endpoints if is_mounted(one) or is_hdfs(one)]
        for number, endpoint in enumerate(endpoints):
            if endpoint not in legal:
                rule = (
                    "this store does not say how much is free on it, by which a volume is chosen: volumes are folders "
                    "on file://, below FALCON_HOME or on one HDFS; give another store a cluster of its own"
                )
                yield cluster.problem((*where, number), rule)
            elif _server(endpoint) != _server(legal[0]):
                message = (
                    f"{endpoint!r} is on another file system than {legal[0]!r}: volumes are all on file:// or below "
                    "FALCON_HOME, or all on one HDFS; give the other a cluster of its own"
                )
                yield cluster.problem((*where, number), message)
            for other, place in zip(endpoints[:number], places, strict=False):
                if is_within(places[number], place) or is_within(place, places[number]):
                    message = f"{endpoint!r} and {other!r} must not be inside of each other, or the same"
                    yield cluster.problem((*where, number), message)
    for feed in definitions.feeds.values():
        for index, entry in enumerate(feed.entity.clusters):
            if entry.name in several and feed.entity.table_on(entry.name) is not None:
                message = (
                    f"a table lies where its catalog says, and cluster {entry.name!r} spreads files over volumes: put "
                    "the feed on a cluster with one endpoint"
                )
                yield feed.problem(("clusters", index, "name"), message)
