"""Checks of stores, of table registries, and of Spark's access to object stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import fsspec
import sqlalchemy

from falcon_assets.catalog.store import EntityStore
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, ok, problem, warning
from falcon_assets.doctor.side_by_side import side_by_side
from falcon_assets.errors import ExpressionError, FalconError, StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.store_url import is_hdfs, is_mounted
from falcon_assets.model.table_catalog_url import shown_registry
from falcon_assets.model.table_uri import TableUri
from falcon_assets.operations.data_roots import known_roots
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import CHECK_CREDENTIALS, driver_explained, is_about_path, refuses_credentials
from falcon_assets.storage.feed_store import StoresOf, cluster_store, store_of
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.probing import probe_reading, probe_writing
from falcon_assets.storage.roots import NEVER_THERE, KnownRoot, why_away
from falcon_assets.storage.tables.table_store import TableStore

_JARS = (
    "give it the connector's jars, by the cluster's property spark.jars.packages or on its machines: for s3a, "
    "hadoop-aws of its version of Hadoop with the AWS SDK; for gs, see the guide Object stores"
)


def check_connectors(context: CheckContext) -> Iterator[Diagnosis]:
    """Shows how Spark accesses object stores, as runs do: by a session of each cluster whose processes use them."""
    entities = context.entities_if_sound()
    found = {} if entities is None else _used(entities, context)
    if not found:
        yield ok("no process reads or writes an object store")
        return
    from falcon_assets.compute.spark.sessions import stop_sessions  # noqa: PLC0415 - loads PySpark

    try:
        for cluster, stores in found.values():
            yield from _of_cluster(cluster, stores, context)
    finally:
        stop_sessions()


def _used(entities: EntityStore, context: CheckContext) -> dict[str, tuple[Cluster, dict[str, ClusterStore]]]:
    """By cluster name: the object stores that its processes read and write, each once."""
    found: dict[str, tuple[Cluster, dict[str, ClusterStore]]] = {}
    used = {(one.cluster, feed.name): feed for one in entities.process_workloads for feed in one.feeds.values()}
    stores = {name: StoresOf(entities.clusters[name], context.settings.home, context.environ) for name, _ in used}
    for (name, _), feed in used.items():
        try:
            if store := kind_of(stores[name](feed)).object_store:
                found.setdefault(name, (entities.clusters[name], {}))[1][store.endpoint] = store
        except FalconError:
            continue  # another check says it
    return found


def _of_cluster(cluster: Cluster, stores: dict[str, ClusterStore], context: CheckContext) -> Iterator[Diagnosis]:
    from falcon_assets.compute.spark.data.connectors import has_connector  # noqa: PLC0415 - loads PySpark
    from falcon_assets.compute.spark_executor import SparkExecutor  # noqa: PLC0415

    home = context.settings.home
    executor = SparkExecutor(cluster, lambda: ClusterStore(cluster, home, context.environ).working, home)
    try:
        session = executor.session()
    except FalconError as error:
        yield warning(f"how Spark accesses object stores cannot be checked: {error}", "start it, and check again")
        return
    for name, store in stores.items():
        where, scheme = f"cluster {cluster.name!r}: Spark", kind_of(store).connector
        if scheme is not None and has_connector(session, scheme):
            yield ok(f"{where} goes to {name} itself, as {scheme}://")
        elif executor.shares_folders:
            yield ok(f"{where} has no connector for {name}, and gets copies of it, in {LocalStaging.of(store)}")
        elif scheme is None:
            yield problem(f"{where} cannot get at {name}: no connector for it is used", "share a folder with it")
        else:
            yield problem(f"{where} has no connector for {name}, and shares no folder with this machine", _JARS)


ANSWER_SECONDS = 7.0
_FIX = "start it, or check interfaces.registry of the cluster, and that it can be reached from here"


def check_registries(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the registry of each cluster with table feeds answers, asked for one of these tables."""
    entities = context.entities_if_sound()
    used: dict[str, tuple[Cluster, Feed]] = {}
    for feed in entities.feeds.values() if entities else ():
        for cluster, _ in entities.feed_clusters(feed) if entities else ():
            if feed.table_on(cluster.name) is not None:
                used.setdefault(cluster.name, (cluster, feed))
    if not used:
        yield ok("no feed lies in a table")
        return
    found = side_by_side({name: partial(_probe, *one, context) for name, one in used.items()}, ANSWER_SECONDS)
    for name, (cluster, _) in used.items():
        late = problem(f"{_named(cluster)} does not answer within {ANSWER_SECONDS:.0f} s", _FIX)
        yield found.get(name, late)


def _named(cluster: Cluster) -> str:
    registry = cluster.interfaces.registry
    return f"cluster {cluster.name!r}: its registry {shown_registry(registry.endpoint) if registry else ''}"


def _probe(cluster: Cluster, feed: Feed, context: CheckContext) -> Diagnosis:
    try:
        uri = TableUri.parse(InstancePaths(feed, cluster).template.text)
        TableStore(cluster, context.settings.home, context.environ, table=uri).catalog.layout(uri.database, uri.table)
    except (StorageError, ExpressionError) as error:
        return problem(str(error), _FIX)
    return ok(f"{_named(cluster)} answers")


ANSWER_SECONDS = 7.0
_OPTIONS = "check its endpoint, its storage_options, and that it can be reached from here"
_ALLOW = "allow this user to write there, or fix interfaces.write.endpoint"


@dataclass(frozen=True, eq=False)
class _Store:
    """A store in use, or one of its volumes; ``what``: ``write``, ``readonly``, or a feed whose location is a URL."""

    cluster: Cluster
    what: str
    is_written: bool
    volume: int = 0


def load_drivers(context: CheckContext) -> None:
    """Imports the drivers of all stores: this takes seconds, which must not count for the stores."""
    entities = context.entities_if_sound()
    declared = [one.interfaces for one in entities.everywhere.values()] if entities else []
    urls = {one.storage(readonly=readonly).endpoint for one in declared for readonly in (False, True)}
    for scheme in {url.partition("://")[0] for url in urls if "://" in url and not is_hdfs(url)}:
        with suppress(ImportError, ValueError):  # the check says it
            fsspec.get_filesystem_class(scheme)


def check_stores(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the stores of all clusters answer; those that are written are tested by writing."""
    entities = context.entities_if_sound()
    if entities is None or not entities.clusters:
        yield ok("no cluster is declared")
        return
    stores, known = used_stores(entities), _known(context)
    found = side_by_side(
        {one: partial(_probe_of_store, one, entities, context, known) for one in stores}, ANSWER_SECONDS
    )
    for one in stores:
        yield found.get(one) or problem(
            f"{_named_of_store(one)} does not answer within {ANSWER_SECONDS:.0f} s", _OPTIONS
        )


def used_stores(entities: EntityStore) -> list[_Store]:
    """Returns the stores of the clusters of this colo, and those of other colos that are copied from."""
    written = {one.cluster for one in entities.workloads}
    for feed in entities.feeds.values():
        for entry in feed.clusters:
            if entry.retention:
                written |= {entry.name, entry.retention.archive_cluster or entry.name}
    found = [
        _Store(one, "write", one.name in written, number)
        for one in entities.clusters.values()
        for number in range(len(one.interfaces.write.volumes))
    ]
    found += [_Store(one, "readonly", False) for one in entities.clusters.values() if one.interfaces.readonly]
    others = sorted({one.reads_on for one in entities.workloads} - entities.clusters.keys())
    found += [_Store(entities.everywhere[name], "readonly", False) for name in others]
    for feed in entities.feeds.values():
        for cluster, entry in entities.feed_clusters(feed):
            data = feed.locations_on(cluster.name).data
            if data is not None and data.is_url:
                made = bool(entities.producers(feed.name, cluster.name)) or entry.type == "target"
                found.append(_Store(cluster, feed.name, made or entry.retention is not None))
    return found


def open_store(one: _Store, entities: EntityStore, home: Path, environ: Mapping[str, str]) -> ClusterStore:
    """Raises StorageError if it cannot be used, ExpressionError for an illegal path template."""
    if one.what in ("write", "readonly"):
        return cluster_store(one.cluster, home, environ, readonly=one.what == "readonly").volumes[one.volume]
    return store_of(entities.feeds[one.what], one.cluster, home, environ)


def _named_of_store(one: _Store) -> str:
    if one.what in ("write", "readonly"):
        return f"cluster {one.cluster.name!r}: its {one.what} endpoint"
    return f"cluster {one.cluster.name!r}: the store of feed {one.what!r}"


_Known = Mapping[tuple[str, str], tuple[KnownRoot, datetime]]


def _known(context: CheckContext) -> _Known:
    """The recorded roots; empty if the database cannot be read, which another check reports."""
    try:
        facts = context.database()
        if facts is None or facts.ledger != facts.ledger_head:
            return {}
        engine = sqlalchemy.create_engine(facts.url, poolclass=sqlalchemy.NullPool)
        with engine.connect() as connection:
            return known_roots(connection)
    except (FalconError, sqlalchemy.exc.SQLAlchemyError):
        return {}


def _probe_of_store(one: _Store, entities: EntityStore, context: CheckContext, known: _Known) -> Diagnosis:
    """Errors of drivers are explained by :func:`driver_explained`."""
    settings = context.settings
    try:
        store = open_store(one, entities, settings.home, context.environ)
        with driver_explained(one.cluster.name, f"look for the root {store.identity.shown}"):
            root = store.identity
            before = known.get((root.cluster, root.place), (None, None))[0]
            why = why_away(root, before)
        if why and before is None:
            return problem(f"{_named_of_store(one)}: there is no {root.shown}", NEVER_THERE)
        if why:
            return problem(f"{_named_of_store(one)}, {root.shown}, is away: {why}", root.advice)
        return _judge(one, store)
    except (StorageError, ExpressionError) as error:
        if "which is not set" in str(error):
            return problem(str(error), "set it here and wherever Dagster runs")
        if isinstance(error, StorageError) and refuses_credentials(error):
            return problem(f"{_named_of_store(one)} refuses access: {_without_advice(error)}", CHECK_CREDENTIALS)
        may_not = isinstance(error, StorageError) and is_about_path(error) and one.is_written
        return problem(str(error), _ALLOW if may_not else _OPTIONS)


def _without_advice(error: StorageError) -> str:
    return str(error).partition(": ")[2].removesuffix(f": {CHECK_CREDENTIALS}")


def _judge(one: _Store, store: ClusterStore) -> Diagnosis:
    shown = store.shown("")
    if not store.files.is_mounted(store.path("")):
        endpoint = one.cluster.interfaces.storage(readonly=one.what == "readonly").endpoint
        if "://" not in endpoint and store.is_volume and not store.fs.exists(store.path("")):
            return ok(f"{_named_of_store(one)}, {shown}, is created by the first write")
        return problem(f"{_named_of_store(one)}: there is no folder {shown}", "mount it, or make that folder")
    there = probe_reading(store)
    if one.is_written:
        probe_writing(store)
        return ok(f"{_named_of_store(one)}, {shown}, can be read and written")
    if not there and not is_mounted(store.endpoint):
        return warning(f"{_named_of_store(one)}, {shown}, is empty or not there", "check whether the endpoint is right")
    return ok(f"{_named_of_store(one)}, {shown}, can be read")
