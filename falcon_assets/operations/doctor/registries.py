"""Check of the registries that say where tables are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from falcon_assets.errors import ExpressionError, StorageError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.registry import shown_registry
from falcon_assets.model.table_uri import TableUri
from falcon_assets.operations.doctor.context import CheckContext
from falcon_assets.operations.doctor.judgement import Judgement, ok, problem
from falcon_assets.operations.doctor.side_by_side import side_by_side
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.storage.tables.table_store import TableStore

ANSWER_SECONDS = 7.0
_FIX = "start it, or check interfaces.registry of the cluster, and that it can be reached from here"


def check_registries(context: CheckContext) -> Iterator[Judgement]:
    """Whether the registry of each cluster that has feeds in tables answers, asked for the table of one of them."""
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


def _probe(cluster: Cluster, feed: Feed, context: CheckContext) -> Judgement:
    try:
        uri = TableUri.parse(InstancePaths(feed, cluster).template.text)
        TableStore(cluster, context.settings.home, context.environ, table=uri).catalog.layout(uri.database, uri.table)
    except (StorageError, ExpressionError) as error:
        return problem(str(error), _FIX)
    return ok(f"{_named(cluster)} answers")
