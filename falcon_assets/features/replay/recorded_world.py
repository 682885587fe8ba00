"""Definitions and stores for a replay, as far as they are recorded and still available."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from falcon_assets.entities.definition_versions import definition_version
from falcon_assets.errors import FalconError, OldDefinitionError
from falcon_assets.features.replay.made_versions import MadeVersions
from falcon_assets.features.replay.recorded_instance import RecordedInstance
from falcon_assets.history.events.data_version import Version
from falcon_assets.instances.runs.recorded_entities import OldEntity, RecordedEntities, moved, recorded_entities
from falcon_assets.instances.runs.run_definitions import OldDefinitions
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.rollups import RolledUp
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.kind_of import kind_of


@dataclass(frozen=True)
class RecordedWorld:
    """The definitions and stores of a replay; workflows are relative to ``root``."""

    process: Process
    root: Path
    entities: RecordedEntities
    stores: StoresOf

    @property
    def cluster(self) -> Cluster:
        return self.entities.cluster


def recorded_world(
    installation: Installation, made: MadeVersions, recorded: RecordedInstance, *, publish: bool
) -> RecordedWorld:
    """Returns the process in its recorded version, with cluster and feeds as of the time when the version was made.

    Windows, time zones, paths, formats, schemas, ``partitions`` and properties that affect the result are of then;
    access is of now: endpoints, storage options, memory and jars of Spark. Data that is not at the feed's old place is
    searched for at its present one. Outputs to be published use the present place and format of their feeds.

    Raises:
        OldDefinitionError: a definition was not recorded or cannot be used any more, or outputs to be published are
            written by other processes now.
        FalconError: a recorded template does not fit the cluster.
    """
    wanted = made.wanted
    if wanted.definition is None:
        raise OldDefinitionError("which version of the definition made it is not recorded")
    settings, now = installation.settings, installation.entities
    old = OldDefinitions(made.process, made.cluster, now, settings.home, installation.tables)
    process, root = old.of(wanted.definition, with_feeds=False)
    if publish:
        _require_outputs(old, process)
    inputs, outputs = {one.feed for one in process.inputs}, {one.feed for one in process.outputs}
    with installation.tables.connect() as connection:
        made_with = definition_version(connection, "process", process.name, wanted.definition)
        # Not since when it is there: it may have been made again with the same content, or restored.
        at = max(wanted.made_at or wanted.seen_at or made_with.since, made_with.since)
        then = recorded_entities(connection, now, made.cluster, inputs | outputs, at)
    if made.workload is None:
        gone = OldEntity("process", made.process, wanted.definition, is_gone=True)
        then = replace(then, old=(gone, *then.old))
    feeds = dict(then.feeds)
    if publish:
        feeds |= {name: now.feeds[name] for name in outputs}
    rollups = {name for name, one in feeds.items() if one.rollup}
    written = outputs if publish else outputs - inputs
    for name in feeds.keys() - rollups - written:
        other = moved(feeds[name], now.feeds.get(name), made.cluster)
        if other is not None and not _lie_there(installation, then.cluster, feeds[name], recorded.inputs.get(name, {})):
            feeds[name] = other
    stores = StoresOf(then.cluster, settings.home, settings.environ, roots_of(settings))
    return RecordedWorld(process, root, replace(then, feeds=RolledUp(feeds, rollups)), stores)


def _require_outputs(old: OldDefinitions, process: Process) -> None:
    try:
        old.require_outputs(process)
    except OldDefinitionError as error:
        raise OldDefinitionError(f"what it makes cannot be published: {error}; it can be compared") from error


def _lie_there(installation: Installation, cluster: Cluster, feed: Feed, versions: Mapping[datetime, Version]) -> bool:
    """Returns whether all these versions are at the place of the feed."""
    settings = installation.settings
    try:
        kind = kind_of(StoresOf(cluster, settings.home, settings.environ, roots_of(settings))(feed))
        paths = InstancePaths(feed, cluster)
        return all(kind.path_of_version(feed, at, paths.data(at), one.version) for at, one in versions.items())
    except FalconError:  # the store is gone
        return False
