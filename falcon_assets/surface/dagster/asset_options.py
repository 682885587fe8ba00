"""Options of a code location: how its assets look, which of them it has, and how their ops run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import UsageError
from falcon_assets.instances.assets import OpOptions
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process

_ALL = "*"
_FIXED = {"key": "key", "deps": "dependencies", "partitions_def": "partitions", "skippable": "value of skippable"}
"""Attribute of an asset that follows from its entity -> its name in a sentence."""


@dataclass(frozen=True)
class AssetSource:
    """The entities that an asset is made of.

    Attributes:
        feed: None: the asset stands for the effect of a process without outputs. Of a compaction or export, its feed.
        process: The process that makes it; None: another workload does, or it lands from outside.
    """

    cluster: Cluster
    feed: Feed | None
    process: Process | None


Translation: TypeAlias = Callable[[dg.AssetSpec, AssetSource], dg.AssetSpec]


@dataclass(frozen=True)
class AssetOptions:
    """Options of :func:`falcon_assets.build_definitions`, which explains them."""

    translation: Translation | None = None
    select: str = _ALL
    exclude: str = ""
    op: OpOptions = field(default_factory=OpOptions)

    def applied(
        self,
        store: EntityStore,
        assets: Sequence[dg.AssetsDefinition | dg.AssetSpec],
        resources: Mapping[str, Any],
    ) -> tuple[EntityStore, Sequence[dg.AssetsDefinition | dg.AssetSpec]]:
        """Returns the assets translated and selected, and the store without what is left out.

        Raises:
            UsageError: the translation changes what follows from the entity, or only a part of a process is kept.
        """
        if self.translation is not None:
            assets = list(dg.map_asset_specs(_translating(self.translation, store), assets))
        if self.select == _ALL and not self.exclude:
            return store, assets
        # Resolved as definitions: an asset selection also follows the graph.
        graph = dg.Definitions(assets=assets, resources=resources).resolve_asset_graph()
        keys = {key for one in assets for key in _keys(one)}
        chosen = keys if self.select == _ALL else dg.AssetSelection.from_string(self.select).resolve(graph)
        if self.exclude:
            chosen = chosen - dg.AssetSelection.from_string(self.exclude).resolve(graph)
        kept = [one for one in assets if _is_kept(one, chosen)]
        excluded = frozenset((key.path[0], key.path[1]) for key in keys - chosen)
        return store.without(excluded, {key.path[0] for key in keys & chosen}), kept


def _translating(translation: Translation, store: EntityStore) -> Callable[[dg.AssetSpec], dg.AssetSpec]:
    effects = {(one.cluster, one.name): one.entity for one in store.process_workloads if not one.outputs}
    beside = {(one.cluster, one.assets[0]): one.entity.name for one in (*store.compactions, *store.exports)}

    def translated(spec: dg.AssetSpec) -> dg.AssetSpec:
        cluster, name = spec.key.path
        makers = (one.entity for one in store.producers(name, cluster))
        process = next((one for one in makers if isinstance(one, Process)), effects.get((cluster, name)))
        feed = None if (cluster, name) in effects else store.feeds[beside.get((cluster, name), name)]
        found = translation(spec, AssetSource(store.clusters[cluster], feed, process))
        for attribute, what in _FIXED.items():
            if getattr(found, attribute) != getattr(spec, attribute):
                raise UsageError(
                    f"the translation of {cluster}/{name} changes its {what}, which follows from its entity"
                )
        return found

    return translated


def _keys(asset: dg.AssetsDefinition | dg.AssetSpec) -> set[dg.AssetKey]:
    return {asset.key} if isinstance(asset, dg.AssetSpec) else set(asset.keys)


def _is_kept(asset: dg.AssetsDefinition | dg.AssetSpec, chosen: Set[dg.AssetKey]) -> bool:
    keys = _keys(asset)
    left_out = sorted(key.to_user_string() for key in keys - chosen)
    kept = sorted(key.to_user_string() for key in keys & chosen)
    if kept and left_out:
        raise UsageError(
            f"select and exclude keep {', '.join(kept)} and leave out {', '.join(left_out)}: "
            "one process makes them together, so both are kept or none"
        )
    return bool(kept)
