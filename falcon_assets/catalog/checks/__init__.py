"""Checks across entities: one file per family, each a function from the definitions to their problems."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.dependencies.cycles import check_cycles
from falcon_assets.catalog.checks.dependencies.own_outputs import check_own_outputs
from falcon_assets.catalog.checks.dependencies.producers import check_producers
from falcon_assets.catalog.checks.lifecycle.deadlines import check_deadlines
from falcon_assets.catalog.checks.lifecycle.replication import check_replication, check_replication_options
from falcon_assets.catalog.checks.lifecycle.retention import check_retention
from falcon_assets.catalog.checks.names.dagster_names import check_dagster_names
from falcon_assets.catalog.checks.names.references import check_references
from falcon_assets.catalog.checks.names.unique_names import check_unique_names
from falcon_assets.catalog.checks.processes.spark_settings import check_spark_settings
from falcon_assets.catalog.checks.processes.variables import check_variables
from falcon_assets.catalog.checks.processes.workflows import check_workflows
from falcon_assets.catalog.checks.storage.files_or_table import check_files_or_table
from falcon_assets.catalog.checks.storage.partitions import check_partitions
from falcon_assets.catalog.checks.storage.paths import check_paths
from falcon_assets.catalog.checks.storage.snapshots import check_snapshots
from falcon_assets.catalog.checks.storage.storage_options import check_storage_options
from falcon_assets.catalog.checks.storage.versions import check_versions
from falcon_assets.catalog.checks.time.calendars import check_calendars
from falcon_assets.catalog.checks.time.output_validity import check_output_validity
from falcon_assets.catalog.checks.time.path_zones import check_path_zones
from falcon_assets.catalog.checks.time.windows import check_windows
from falcon_assets.catalog.declared import Definitions
from falcon_assets.errors import Problem

CHECKS = (
    check_unique_names,
    check_dagster_names,
    check_references,
    check_files_or_table,
    check_storage_options,
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
    check_variables,
    check_spark_settings,
    check_workflows,
    check_cycles,
    check_own_outputs,
)
"""All families."""


def check_all(definitions: Definitions) -> Iterator[Problem]:
    """Every problem and warning between entities, and those of one entity that its model does not know."""
    for check in CHECKS:
        yield from check(definitions)
