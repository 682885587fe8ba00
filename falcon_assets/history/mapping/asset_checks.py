"""Asset checks whose evaluations are about partitions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import dagster as dg

from falcon_assets.history.mapping.partitions import partitions_of
from falcon_assets.planning.timeline import Timeline


class _Spec(dg.AssetCheckSpec):
    """Caches the key: each job of a code location reads the keys of all checks, and Dagster would rebuild them."""

    @cached_property
    def key(self) -> dg.AssetCheckKey:
        return dg.AssetCheckKey(self.asset_key, self.name)


def partitioned_check(
    name: str, key: dg.AssetKey, description: str, timeline: Timeline, metadata: Mapping[str, Any] | None = None
) -> dg.AssetCheckSpec:
    """The check of an asset, by the partitions of that timeline."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return _Spec(
            name, asset=key, description=description, metadata=metadata, partitions_def=partitions_of(timeline)
        )
