"""Checks across entities: one file per family, each a function from the definitions to their problems."""

from __future__ import annotations

from collections.abc import Iterator

from falcon_assets.catalog.checks.calendars import check_calendars
from falcon_assets.catalog.checks.cycles import check_cycles
from falcon_assets.catalog.checks.dagster_names import check_dagster_names
from falcon_assets.catalog.checks.deadlines import check_deadlines
from falcon_assets.catalog.checks.lives import check_lives
from falcon_assets.catalog.checks.names import check_names
from falcon_assets.catalog.checks.own_outputs import check_own_outputs
from falcon_assets.catalog.checks.partitions import check_partitions
from falcon_assets.catalog.checks.paths import check_paths
from falcon_assets.catalog.checks.producers import check_producers
from falcon_assets.catalog.checks.references import check_references
from falcon_assets.catalog.checks.replication import check_replication
from falcon_assets.catalog.checks.replication_options import check_replication_options
from falcon_assets.catalog.checks.retention import check_retention
from falcon_assets.catalog.checks.spark_settings import check_spark_settings
from falcon_assets.catalog.checks.storage import check_storage
from falcon_assets.catalog.checks.storage_options import check_storage_options
from falcon_assets.catalog.checks.variables import check_variables
from falcon_assets.catalog.checks.windows import check_windows
from falcon_assets.catalog.checks.workflows import check_workflows
from falcon_assets.catalog.declared import Definitions
from falcon_assets.errors import Problem

CHECKS = (
    check_names,
    check_dagster_names,
    check_references,
    check_storage,
    check_storage_options,
    check_paths,
    check_partitions,
    check_replication,
    check_replication_options,
    check_retention,
    check_deadlines,
    check_producers,
    check_calendars,
    check_windows,
    check_lives,
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
