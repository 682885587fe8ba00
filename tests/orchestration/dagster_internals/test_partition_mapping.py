"""A mapping of our own works in Dagster, and reaches its daemon and its UI."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg
from dagster._core.definitions.partitions.subset import PartitionsSubset
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import deserialize_value, serialize_value

from falcon_assets.history.dagster_internals.partitions import KeyMapping, known_to_daemon_and_ui


@known_to_daemon_and_ui
class Prefixed(KeyMapping):
    """The key above has the text before it."""

    def upstream_keys(self, keys: Iterable[str]) -> Iterable[str]:
        return (self.text + key for key in keys)

    def downstream_keys(self, keys: Iterable[str]) -> Iterable[str]:
        return (key.removeprefix(self.text) for key in keys)


BELOW = dg.StaticPartitionsDefinition(["a", "b"])
ABOVE = dg.StaticPartitionsDefinition(["xa", "xb"])
MAPPING = Prefixed.of_text("x")


@dg.asset(partitions_def=ABOVE)
def above() -> None:
    """Is read."""


@dg.asset(partitions_def=BELOW, deps=[dg.AssetDep(above, partition_mapping=MAPPING)])
def below() -> None:
    """Reads it."""


def keys(subset: PartitionsSubset) -> list[str]:
    return sorted(subset.get_partition_keys())


def test_it_maps_in_both_directions() -> None:
    up = MAPPING.get_upstream_mapped_partitions_result_for_partitions(
        BELOW.subset_with_partition_keys(["a"]), BELOW, ABOVE
    )
    assert keys(up.partitions_subset) == ["xa"]
    assert keys(up.required_but_nonexistent_subset) == []
    down = MAPPING.get_downstream_partitions_for_partitions(ABOVE.subset_with_partition_keys(["xb"]), ABOVE, BELOW)
    assert keys(down) == ["b"]


def test_dagster_goes_by_it(instance: dg.DagsterInstance) -> None:
    """As its UI and its backfills do: by the assets as another process has them."""
    snapped = RepositorySnap.from_def(dg.Definitions(assets=[above, below]).get_repository_def())
    text = serialize_value(snapped)
    nodes = {node.asset_key: node for node in deserialize_value(text, RepositorySnap).asset_nodes}
    (edge,) = nodes[below.key].parent_edges
    assert edge.partition_mapping == MAPPING, (
        f"Dagster hands {edge.partition_mapping} to its daemon and its UI in the place of a subclass of "
        "SpecificPartitionsPartitionMapping: they would go by other windows than the runs"
    )
    assert type(edge.partition_mapping) is Prefixed
