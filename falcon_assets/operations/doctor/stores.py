"""Checks of stores: whether those of each cluster answer, and can be written where that has to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import sqlalchemy

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import ExpressionError, FalconError, StorageError
from falcon_assets.ledger.data_roots import known_roots
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.store_url import is_mounted
from falcon_assets.operations.doctor.context import CheckContext
from falcon_assets.operations.doctor.judgement import Judgement, ok, problem, warning
from falcon_assets.operations.doctor.side_by_side import side_by_side
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained, is_about_path
from falcon_assets.storage.feed_store import store_of
from falcon_assets.storage.probing import probe_reading, probe_writing
from falcon_assets.storage.roots import NEVER_THERE, KnownRoot, why_away

ANSWER_SECONDS = 7.0
_OPTIONS = "check its endpoint, its storage_options, and that it can be reached from here"
_ALLOW = "let this user write there, or mend interfaces.write.endpoint"


@dataclass(frozen=True, eq=False)
class _Store:
    """A store that is used.

    Attributes:
        cluster: Whose.
        what: ``write``, ``readonly``, or the feed whose location is a URL.
        is_written: Whether something is written there.
    """

    cluster: Cluster
    what: str
    is_written: bool


def check_stores(context: CheckContext) -> Iterator[Judgement]:
    """Whether the stores of all clusters answer; those that are written to, by writing."""
    entities = context.entities_if_sound()
    if entities is None or not entities.clusters:
        yield ok("no cluster is declared")
        return
    stores, known = used_stores(entities), _known(context)
    found = side_by_side({one: partial(_probe, one, entities, context, known) for one in stores}, ANSWER_SECONDS)
    for one in stores:
        yield found.get(one) or problem(f"{_named(one)} does not answer within {ANSWER_SECONDS:.0f} s", _OPTIONS)


def used_stores(entities: EntityStore) -> list[_Store]:
    """The stores of the clusters of this colo, and those of others that are copied from."""
    written = {one.cluster for one in entities.workloads}
    for feed in entities.feeds.values():
        for entry in feed.clusters:
            if entry.retention:
                written |= {entry.name, entry.retention.archive_cluster or entry.name}
    found = [_Store(one, "write", one.name in written) for one in entities.clusters.values()]
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
    """The store itself.

    Raises:
        StorageError: it cannot be used.
        ExpressionError: the path template names an unknown variable or leaves its root.
    """
    if one.what in ("write", "readonly"):
        return ClusterStore(one.cluster, home, environ, readonly=one.what == "readonly")
    return store_of(entities.feeds[one.what], one.cluster, home, environ)


def _named(one: _Store) -> str:
    if one.what in ("write", "readonly"):
        return f"cluster {one.cluster.name!r}: its {one.what} endpoint"
    return f"cluster {one.cluster.name!r}: the store of feed {one.what!r}"


_Known = Mapping[tuple[str, str], tuple[KnownRoot, datetime]]


def _known(context: CheckContext) -> _Known:
    """The roots that were used; none where the database cannot say so, which another check tells."""
    try:
        facts = context.database()
        if facts is None or facts.ledger != facts.ledger_head:
            return {}
        engine = sqlalchemy.create_engine(facts.url, poolclass=sqlalchemy.NullPool)
        with engine.connect() as connection:
            return known_roots(connection)
    except (FalconError, sqlalchemy.exc.SQLAlchemyError):
        return {}


def _probe(one: _Store, entities: EntityStore, context: CheckContext, known: _Known) -> Judgement:
    """What the store says; whatever a driver raises is told as :func:`driver_explained` does."""
    settings = context.settings
    try:
        store = open_store(one, entities, settings.home, context.environ)
        with driver_explained(one.cluster.name, f"look for the root {store.identity.shown}"):
            root = store.identity
            before = known.get((root.cluster, root.place), (None, None))[0]
            why = why_away(root, before)
        if why and before is None:
            return problem(f"{_named(one)}: there is no {root.shown}", NEVER_THERE)
        if why:
            return problem(f"{_named(one)}, {root.shown}, is away: {why}", root.advice)
        return _judge(one, store)
    except (StorageError, ExpressionError) as error:
        if "which is not set" in str(error):
            return problem(str(error), "set it here and wherever Dagster runs")
        may_not = isinstance(error, StorageError) and is_about_path(error) and one.is_written
        return problem(str(error), _ALLOW if may_not else _OPTIONS)


def _judge(one: _Store, store: ClusterStore) -> Judgement:
    shown = store.shown("")
    if not store.files.is_mounted(store.path("")):
        endpoint = one.cluster.interfaces.storage(readonly=one.what == "readonly").endpoint
        if "://" not in endpoint and store.root is None and not store.fs.exists(store.path("")):
            return ok(f"{_named(one)}, {shown}, is made when it is written to first")
        return problem(f"{_named(one)}: there is no folder {shown}", "mount it, or make that folder")
    there = probe_reading(store)
    if one.is_written:
        probe_writing(store)
        return ok(f"{_named(one)}, {shown}, can be read and written")
    if not there and not is_mounted(store.endpoint):
        return warning(f"{_named(one)}, {shown}, is empty or not there", "look whether the endpoint is the right one")
    return ok(f"{_named(one)}, {shown}, can be read")
