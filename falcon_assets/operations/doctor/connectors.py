"""Check of how the Spark of each cluster gets at object stores."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import FalconError
from falcon_assets.model.cluster import Cluster
from falcon_assets.operations.doctor.context import CheckContext
from falcon_assets.operations.doctor.judgement import Judgement, ok, problem, warning
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.local_staging import LocalStaging

_JARS = (
    "give it the jars (hadoop-aws with the AWS SDK bundle, or gcs-connector) of its version of Hadoop, by the "
    "cluster's property spark.jars.packages or on its machines"
)


def check_connectors(context: CheckContext) -> Iterator[Judgement]:
    """Which way the data goes, found out as runs do: by a session of each cluster whose processes use such stores."""
    entities = context.entities_if_sound()
    found = {} if entities is None else _used(entities, context)
    if not found:
        yield ok("no process reads or writes an object store")
        return
    from falcon_assets.spark.session.sessions import stop_sessions  # noqa: PLC0415 - loads PySpark

    try:
        for cluster, stores in found.values():
            yield from _of_cluster(cluster, stores, context)
    finally:
        stop_sessions()


def _used(entities: EntityStore, context: CheckContext) -> dict[str, tuple[Cluster, dict[str, ClusterStore]]]:
    """By the name of the cluster: the object stores that its processes read and write, each once."""
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


def _of_cluster(cluster: Cluster, stores: dict[str, ClusterStore], context: CheckContext) -> Iterator[Judgement]:
    from falcon_assets.spark.data.connectors import has_connector  # noqa: PLC0415 - loads PySpark
    from falcon_assets.spark.endpoints.shared_folders import shares_folders  # noqa: PLC0415
    from falcon_assets.spark.session.sessions import session_for  # noqa: PLC0415

    shared, home = shares_folders(cluster), context.settings.home
    try:
        session = session_for(cluster, ClusterStore(cluster, home, context.environ).working, home)
    except FalconError as error:
        yield warning(f"how Spark gets at object stores is not known: {error}", "start it, and ask again")
        return
    for name, store in stores.items():
        where, scheme = f"cluster {cluster.name!r}: Spark", kind_of(store).connector
        if scheme is not None and has_connector(session, scheme):
            yield ok(f"{where} goes to {name} itself, as {scheme}://")
        elif shared:
            yield ok(f"{where} has no connector for {name}, and gets copies of it, in {LocalStaging.of(store)}")
        elif scheme is None:
            yield problem(f"{where} cannot get at {name}: no connector for it is used", "share a folder with it")
        else:
            yield problem(f"{where} has no connector for {name}, and shares no folder with this machine", _JARS)
