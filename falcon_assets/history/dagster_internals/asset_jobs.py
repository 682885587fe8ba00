"""Jobs of single assets, resolved from their own assets and those that they read.

Dagster goes through all assets of a code location for each job: a thousand jobs over two thousand assets take six
seconds, and ten times as many take a hundred times as long.
"""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph  # what a job is resolved from
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition  # public by its use


class AssetJob(UnresolvedAssetJobDefinition):
    """As what :func:`dagster.define_asset_job` returns."""

    def resolve(
        self,
        asset_graph: AssetGraph,
        default_executor_def: dg.ExecutorDefinition | None = None,
        resource_defs: Mapping[str, dg.ResourceDefinition] | None = None,
    ) -> dg.JobDefinition:
        return super().resolve(_around(self.selection, asset_graph), default_executor_def, resource_defs)


def _around(selection: dg.AssetSelection, graph: AssetGraph) -> AssetGraph:
    """The assets of the selection, those that are made together with them, and what all of these read; with checks."""
    own = {key for one in selection.resolve(graph) for key in graph.get(one).assets_def.keys}
    nodes = {key: graph.get(key) for one in own for key in (one, *graph.get(one).parent_keys)}
    checks = {check: graph.assets_def_for_key(check) for node in nodes.values() for check in node.check_keys}
    return AssetGraph(nodes, checks)
