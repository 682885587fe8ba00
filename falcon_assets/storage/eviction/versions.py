"""Evicts versions that were replaced; killed at any point, the same call again completes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from falcon_assets.errors import StorageError
from falcon_assets.planning.eviction import StoredLocation, VersionVerdict
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import explanation
from falcon_assets.storage.kinds.kind_of import kind_of


def evict_versions(
    store: ClusterStore, paths: InstancePaths, verdicts: Iterable[VersionVerdict]
) -> Iterator[tuple[VersionVerdict, StorageError | None]]:
    """Removes versions, which no run may be restoring, as :func:`evict`; gives the error if one is still there."""
    removal = kind_of(store).removal(paths.feed.availability_flag)
    prefix = paths.template.fixed_prefix({})
    for verdict in verdicts:
        if not verdict.goes:
            continue
        kept, error = verdict.kept, None
        instance = StoredLocation("data", paths.data(kept.nominal), prefix)
        try:
            if kept.path:
                with removal.held(instance):
                    location = StoredLocation("version", kept.path, kept.prefix)
                    removal.remove(location, removal.place(location))
        except OSError as refusal:
            error = explanation(store.cluster.name, f"evict {kept.path}", refusal)
        except StorageError as refusal:
            error = refusal
        yield verdict, error
