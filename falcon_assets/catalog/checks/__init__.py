"""Checks across entities: one file per family, each a function from the definitions to their problems."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.calendars import check_calendars, check_path_zones
from falcon_assets.catalog.checks.dependencies import check_cycles, check_own_outputs, check_producers
from falcon_assets.catalog.checks.executors import check_executors
from falcon_assets.catalog.checks.flows import check_flows
from falcon_assets.catalog.checks.kept_versions import check_snapshots, check_versions
from falcon_assets.catalog.checks.lifecycle import (
    check_deadlines,
    check_replication,
    check_replication_options,
    check_retention,
)
from falcon_assets.catalog.checks.locations import (
    check_files_or_table,
    check_partitions,
    check_storage_options,
    check_volumes,
)
from falcon_assets.catalog.checks.names import check_dagster_names, check_references, check_unique_names
from falcon_assets.catalog.checks.paths import check_paths
from falcon_assets.catalog.checks.processes import (
    check_batches,
    check_places,
    check_queues,
    check_spark_settings,
    check_variables,
    check_workflows,
)
from falcon_assets.catalog.checks.windows import check_output_validity, check_windows
from falcon_assets.catalog.declared import Definitions
from falcon_assets.errors import Problem
from falcon_assets.hooks import hooks

CHECKS = (
    check_unique_names,
    check_dagster_names,
    check_references,
    check_flows,
    check_files_or_table,
    check_storage_options,
    check_volumes,
    check_snapshots,
    check_versions,
    check_paths,
    check_partitions,
    check_replication,
    check_replication_options,
    check_retention,
    check_deadlines,
    check_producers,
    check_calendars,
    check_path_zones,
    check_windows,
    check_output_validity,
    check_queues,
    check_executors,
    check_variables,
    check_spark_settings,
    check_workflows,
    check_places,
    check_batches,
    check_cycles,
    check_own_outputs,
)


def check_all(definitions: Definitions) -> Iterator[Problem]:
    """Yields every problem and warning between entities, and those within one that its model does not check."""
    for check in CHECKS:
        yield from check(definitions)
    for found in hooks().definition_problems(definitions=definitions, programs=False):
        yield from found
