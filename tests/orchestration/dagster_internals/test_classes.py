"""What we use and override in classes of Dagster's is still there, and asked with the arguments that we take."""

from __future__ import annotations

import inspect
from inspect import Parameter

import dagster as dg
import pytest
from dagster_postgres import PostgresEventLogStorage, PostgresRunStorage, PostgresScheduleStorage

from falcon_assets.history.dagster_internals import compute_logs, launching, permissions, storage, webserver
from falcon_assets.history.dagster_internals import partitions as partition_mapping

OVERRIDDEN = {
    storage._PooledRunStorage: (PostgresRunStorage, "dispose add_run add_backfill handle_run_event"),
    permissions.RequestContext: (
        permissions.WorkspaceRequestContext,
        "permissions permissions_for_location permissions_for_owner viewer_has_any_owner_definition_permissions",
    ),
    permissions.ProcessContext: (permissions.WorkspaceProcessContext, "create_request_context"),
    webserver.Webserver: (
        webserver.DagsterWebserver,
        "build_graphql_schema build_graphql_validation_rules build_middleware build_routes "
        "execute_graphql_subscription",
    ),
    storage._PooledScheduleStorage: (
        PostgresScheduleStorage,
        "has_instigators_table _has_instigators_table has_built_index all_instigator_state get_instigator_state "
        "get_ticks update_tick",
    ),
    storage._PooledEventLogStorage: (
        PostgresEventLogStorage,
        "dispose store_event_batch get_dynamic_partitions get_paginated_dynamic_partitions has_dynamic_partition "
        "get_existing_dynamic_partitions",
    ),
    storage.PooledStorage: (
        (storage.DagsterStorage, storage.ConfigurableClass),
        "inst_data config_type run_storage event_log_storage schedule_storage",
    ),
    launching.RunLauncher: (dg.DefaultRunLauncher, "launch_run terminate dispose"),
    compute_logs.LocalLogs: (
        compute_logs.LocalComputeLogManager,
        "from_config_value capture_logs open_log_stream",
    ),
    partition_mapping.KeyMapping: (
        dg.SpecificPartitionsPartitionMapping,
        "get_upstream_mapped_partitions_result_for_partitions get_downstream_partitions_for_partitions",
    ),
}
USED = {
    dg.DagsterInstance: (
        "report_run_failed report_run_canceling report_run_canceled add_run_tags event_log_storage get_ref "
        "run_storage get_backfill optimize_for_webserver"
    ),
    permissions.WorkspaceRequestContext: "source instance has_code_location has_job get_asset_keys_in_job",
    permissions.WorkspaceProcessContext: "get_current_workspace read_only instance version",
    webserver.DagsterWebserver: "create_asgi_app graphql_ws_endpoint",
    storage.PartitionBackfill: "_replace asset_selection tags",
    PostgresRunStorage: "get_runs get_cursor_values set_cursor_values",
    dg.Definitions: "resolve_job_def",
    dg.OpExecutionContext: "op_handle",
    dg.DagsterRun: "job_code_origin remote_job_origin",
    dg.DefaultRunLauncher: "_instance",
    dg.PartitionsDefinition: "empty_subset subset_with_partition_keys",
    partition_mapping.PartitionsSubset: "get_partition_keys",
    PostgresEventLogStorage: ("_store_asset_event_tags _store_asset_event index_transaction"),
    launching.LaunchRunContext: "dagster_run workspace",
    storage.InstigatorState: "instigator_data with_data",
    compute_logs.LocalComputeLogManager: "get_captured_local_path",
}
CASES = [
    pytest.param(ours, bases if isinstance(bases, tuple) else (bases,), name, id=f"{ours.__name__}.{name}")
    for ours, (bases, names) in OVERRIDDEN.items()
    for name in names.split()
]


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(owner, name, id=f"{owner.__name__}.{name}")
        for owner, names in USED.items()
        for name in names.split()
    ],
)
def test_dagster_has_what_we_use(owner: type, name: str) -> None:
    assert hasattr(owner, name), f"Dagster's {owner.__name__} has no {name} any more: dagster_internals uses it"


@pytest.mark.parametrize(("ours", "bases", "name"), CASES)
def test_dagster_has_what_we_override(ours: type, bases: tuple[type, ...], name: str) -> None:
    theirs = [base for base in bases if hasattr(base, name)]
    assert theirs, f"Dagster's {bases[0].__name__} has no {name} any more: nobody asks the one of {ours.__name__}"
    mine, other = getattr(ours, name), getattr(theirs[0], name)
    if callable(mine) and callable(other):
        kinds = {one.kind for one in _parameters(mine)}
        if not kinds & {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}:
            expected = [one.name for one in _parameters(other)]
            assert [one.name for one in _parameters(mine)] == expected, (
                f"Dagster asks {theirs[0].__name__}.{name} with other arguments ({', '.join(expected)}): "
                f"{ours.__name__} does not take them"
            )


@pytest.mark.parametrize(
    "storage_class",
    [PostgresRunStorage, PostgresEventLogStorage, PostgresScheduleStorage],
    ids=lambda one: one.__name__,
)
def test_storages_take_what_we_give_them(storage_class: type) -> None:
    names = [one.name for one in _parameters(storage_class.__init__)]
    assert names[:2] == ["self", "postgres_url"], f"{storage_class.__name__} is built with other arguments: {names}"
    assert "should_autocreate_tables" in names, (
        f"{storage_class.__name__} takes no should_autocreate_tables any more: it would look for its tables on a "
        "connection of its own, for every tick"
    )


def _parameters(function: object) -> list[Parameter]:
    assert callable(function)
    return list(inspect.signature(function).parameters.values())
