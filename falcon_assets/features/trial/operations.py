"""The operation that computes an instance for inspection; nothing is published or recorded."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from falcon_assets.errors import QueryError
from falcon_assets.features.trial.run import Trial, Tried
from falcon_assets.instances.runs.instance_run import InstanceRunner
from falcon_assets.instances.store.known_instances import recorded_on
from falcon_assets.instances.store.watermarks import watermarks_on
from falcon_assets.instances.views.details import find_subject
from falcon_assets.model.instant import Instant
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.machine import require_machine
from falcon_assets.operations.operation import Given, Operation, Result
from falcon_assets.planning.workloads import ProcessWorkload


@dataclass(frozen=True)
class TryResult(Result):
    process: str
    cluster: str
    instance: Instant
    tried: Tried
    keys = (
        *("process", "cluster", "instance", "seconds", "capture=tried.usage.capture"),
        *("warnings=tried.usage.warnings", "outputs=tried.outputs"),
    )

    @property
    def seconds(self) -> float:
        return round(self.tried.seconds, 1)


class TryInstance(Operation):
    """Compute an instance of PROCESS as a trial run; publish nothing.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. Shows rows, columns, and the columns that they come from. Uses the inputs
    that exist now and the definitions and workflows as they are on disk now. Nothing is recorded in Dagster or the
    ledger. Side effects of the workflow itself do happen. Its output is written to try.log in FALCON_HOME.
    """

    command = "try"
    remote = False
    process: Annotated[str, Given("PROCESS")]
    instance: Annotated[Instant, Given("INSTANCE")]
    rows: Annotated[int, Given(shows_default=True)] = Field(20, ge=0, le=10_000, description="Number of rows to show.")
    cluster: str | None = Field(None, description="Cluster: needed if the process runs on several.")

    @contextmanager
    def trial(self, installation: Installation) -> Iterator[Trial]:
        """Prepares an instance with present data, definitions and workflows.

        Neither Dagster nor the ledger records it. Other side effects of the workflow happen.

        Raises:
            UnknownEntityError: there is no such process, or it is on several clusters and none is named.
            UnknownInstanceError: it has no such instance.
            MissingInputsError: inputs are missing; names them.
            QueryError: it has no outputs: its effects cannot be undone.
            DeniedError: the user may not read the process or its feeds.
            SettingsError: Java or disk space is missing.
        """
        settings, entities = installation.settings, installation.entities
        workload = find_subject(entities, self.process, self.instance, self.cluster, "process").workload
        if not isinstance(workload, ProcessWorkload) or not workload.outputs:
            raise QueryError(
                f"{self.process} has no outputs to look at, and what else it does cannot be undone: not tried"
            )
        declared, where = workload.entity, entities.clusters[workload.cluster]
        feeds = {one.feed for one in declared.inputs} | {one.feed for one in declared.outputs}
        require_readable(installation, "try", [declared, *(entities.feeds[name] for name in sorted(feeds))])
        require_machine(settings.environ, settings.home)
        runner = InstanceRunner.of(declared, where, entities, settings, f"try-{uuid.uuid4().hex}")
        if any(entities.feeds[one.feed].is_taken_by_record for one in declared.inputs):
            runner = replace(runner, recorded=recorded_on(installation.tables_caught_up(), where.name))
        caught_up, now = installation.tables_caught_up, settings.now
        runner = replace(runner, watermark=watermarks_on(caught_up, entities.feeds, where.name, now))
        trial = Trial(runner, runner.prepare(self.instance), self.rows)
        try:
            yield trial
        finally:
            trial.forget()

    def run(self, installation: Installation) -> TryResult:
        with self.trial(installation) as trial:
            return try_instance(trial)


def try_instance(trial: Trial) -> TryResult:
    """Computes the trial; the Spark session stays open.

    Raises:
        WorkflowError: the workflow failed.
        StorageError: a store cannot be read, or Spark shares no folder with this machine.
    """
    runner = trial.runner
    return TryResult(runner.process.name, runner.cluster.name, trial.ready.plan.nominal, trial.compute())
