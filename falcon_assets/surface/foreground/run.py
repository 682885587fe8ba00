"""``falcon run``: everything that is ready, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from datetime import datetime
from typing import Annotated

from pydantic import Field

from falcon_assets.catalog.store import EntityStore
from falcon_assets.compute.engines.computing.programs import kill_programs
from falcon_assets.compute.spark.endpoints.reachable import require_reachable
from falcon_assets.compute.spark.sessions import interrupt_sessions, stop_sessions
from falcon_assets.errors import SettingsError, UnknownEntityError
from falcon_assets.history.dagster_internals.storage import DATABASE_ERRORS
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.platform.postgres import database_url, leave_embedded, unreachable
from falcon_assets.history.platform.reconnecting import in_the_foreground
from falcon_assets.instances.coordination.coordinator import pipelines
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import Instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.machine import require_machine
from falcon_assets.operations.operation import Given, Operation
from falcon_assets.planning.workloads import Workload
from falcon_assets.surface.dagster.code_location import definitions_of
from falcon_assets.surface.foreground.foreground import Foreground, ForegroundResult
from falcon_assets.surface.foreground.foreground_runs import Display


def silently() -> AbstractContextManager[Display]:
    return nullcontext(Display(*[lambda *_: None] * len(fields(Display))))


class RunReady(Operation):
    """Run all due instances in this process, until nothing more is ready.

    Finds delivered data, runs scheduled processes, replications, compactions, imports and exports in the order of their
    inputs, waits for retries, and ends when all remaining instances wait for data. Clusters and stores that cannot be
    reached or read are skipped and named. The exit code is 1 where something was skipped, or an instance failed or
    timed out for good.
    """

    command = "run"
    remote = False
    until: Instant | None = Field(None, description="Leave out instances after this time (YYYY-MM-DDTHH:MMZ).")
    pipeline: Annotated[str | None, Given(metavar="NAME")] = Field(
        None,
        description=(
            "Only this pipeline; replications to CLUSTER are the pipeline CLUSTER.replication, compactions there "
            "CLUSTER.compaction."
        ),
    )
    process: Annotated[str | None, Given(metavar="NAME")] = Field(None, description="Only this process.")

    def run(
        self,
        installation: Installation,
        shown: Callable[[], AbstractContextManager[Display]] = silently,
    ) -> ForegroundResult:
        """Opens the display once everything else is ready.

        Raises:
            UnknownEntityError: there is no such process or pipeline.
            SettingsError: the database cannot be reached, has another clock, or became unreachable; or another
                ``falcon run`` works on one of the pipelines; or the machine has no Java or no room.
        """
        require_machine(installation.settings.environ, installation.settings.home)
        chosen = _chosen(installation.entities, self.pipeline, self.process)
        installation.set_clock(anew=False)
        try:
            ledger = installation.ledger  # what is wrong with it is said before anything is shown
            with shown() as display:
                try:
                    return run_workloads(installation, ledger, display, _require_reachable, chosen, self.until)
                finally:
                    stop_sessions()
        except DATABASE_ERRORS as error:
            gone = unreachable(database_url(installation.settings), error)
            raise SettingsError(f"{gone}; what was finished is recorded, the rest runs the next time") from error


def run_workloads(
    installation: Installation,
    ledger: Ledger,
    display: Display,
    prepare: Callable[[Cluster], None],
    workloads: Sequence[Workload],
    until: datetime | None,
) -> ForegroundResult:
    """Runs ready instances of some workloads up to ``until``; Spark sessions stay open. Raises as :meth:`RunReady.run`.

    ``prepare`` is called before a run on a cluster; if it raises a FalconError, nothing runs there.
    """
    entities, settings = installation.entities, installation.settings
    definitions = definitions_of(entities, settings, display.copying)
    with in_the_foreground():
        return Foreground(entities, settings, definitions, ledger, display, prepare).run(workloads, until)


def abandon() -> None:
    """Ends programs, Spark jobs and the embedded server, for a process that cannot wait for an orderly interruption."""
    kill_programs()
    interrupt_sessions()
    leave_embedded()


def _chosen(entities: EntityStore, pipeline: str | None, process: str | None) -> Sequence[Workload]:
    if process is not None:
        if pipeline is not None and pipeline not in entities.process(process).pipelines:
            raise UnknownEntityError(f"process {process!r} is not in the pipeline {pipeline!r}")
        return entities.workloads_of(process)
    if pipeline is None:
        return entities.workloads
    chosen = [one for one in entities.workloads if pipeline in one.pipelines]
    if not chosen:
        there = ", ".join(pipelines(entities.workloads))
        raise UnknownEntityError(f"no process is in a pipeline {pipeline!r}; there is: {there}")
    return chosen


def _require_reachable(cluster: Cluster) -> None:
    """One error before its first run, instead of one for each of its instances."""
    require_reachable(cluster.name, cluster.interfaces.execute.endpoint)
