"""The executor of a run: the one that a coordinator chose, or for a run that a person started, one that answers."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.compute.spark.endpoints.reachable import silence_at
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.history.dagster_internals.runs import add_tag
from falcon_assets.history.mapping import run_tags
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.instances.coordination.executors import Executors
from falcon_assets.instances.coordination.provisioning import Provisioning
from falcon_assets.instances.spark_resource import resource_key
from falcon_assets.planning.workloads import Workload
from falcon_assets.settings import load_settings


def executor_of_run(
    context: dg.AssetExecutionContext, ledger: Ledger, store: EntityStore, workload: Workload
) -> SparkExecutor:
    """Returns where the run computes; a run that a person started is tagged with it, and counts from then on.

    Raises:
        WorkflowError: a provisioned executor was started for a run of a person, and does not answer.
    """
    cluster = store.everywhere[workload.cluster]
    resource = getattr(context.resources, resource_key(cluster))
    name, names = context.run.tags.get(run_tags.EXECUTOR, ""), {one.name for one in cluster.executors}
    if names and name not in names:
        with ledger.engine.connect() as connection:
            choice = Executors(connection, store, cluster.name, datetime.now(UTC)).choice(workload)
        chosen = choice.at_once() if choice else ""
        for one in cluster.executors:
            if one.name == chosen and one.provision and silence_at(one.endpoint):
                Provisioning(store, cluster, load_settings()).start_now(ledger, one)
        if chosen and not name:
            add_tag(context.instance, context.run.run_id, run_tags.EXECUTOR, chosen)
        name = chosen
    found: SparkExecutor = resource.executor_named(name)
    return found
