"""The operation that replays an instance, and its result."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from falcon_assets.errors import (
    ExpressionError,
    MissingInputsError,
    OldDefinitionError,
    QueryError,
    UnknownEntityError,
    UnknownInstanceError,
)
from falcon_assets.features.lineage.difference import changed_environment
from falcon_assets.features.replay.made_versions import MadeVersions, made_versions
from falcon_assets.features.replay.recorded_instance import RecordedInstance, recorded_instance
from falcon_assets.features.replay.recorded_world import RecordedWorld, recorded_world
from falcon_assets.features.replay.run import Replay, ReplayedOutput
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.runs.environment import run_environment
from falcon_assets.instances.runs.instance_run import InstanceRunner, ReadyInstance
from falcon_assets.instances.runs.materializations import materializations
from falcon_assets.instances.runs.outside_runs import without_runs
from falcon_assets.instances.runs.recorded_entities import OldEntity
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.access import Role
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.acting import require_change, require_read
from falcon_assets.operations.audit import audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.machine import require_machine
from falcon_assets.operations.operation import Given, Operation
from falcon_assets.planning.workloads import ProcessWorkload


@dataclass(frozen=True)
class ReplayResult:
    """The result of a replay.

    Attributes:
        at: On the falcon clock.
        definition: The version of the recorded definition; None: not recorded.
        environment: Name -> recorded and present version of Python and packages, where they differ.
        old: Recorded definitions that differ from the present ones, and present ones used for want of a record.
        impossible: Why it cannot be computed any more; empty: it was.
        folder: The place of differing outputs; empty: none are kept.
    """

    actor: str
    reason: str
    at: datetime
    process: str
    cluster: str
    instance: datetime
    definition: int | None
    recorded: dict[str, Version]
    environment: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    old: tuple[OldEntity, ...] = ()
    impossible: str = ""
    outputs: tuple[ReplayedOutput, ...] = ()
    folder: str = ""
    published: bool = False

    @property
    def failed(self) -> bool:
        return not (self.outcome == "reproduced" or self.published)

    @property
    def outcome(self) -> str:
        if self.impossible:
            return "impossible"
        return "reproduced" if all(map(self.is_reproduced, self.outputs)) else "different"

    def is_reproduced(self, output: ReplayedOutput) -> bool:
        """Compares the data of an output, or only the number of records where the recorded data is deleted."""
        if output.comparison is not None:
            return output.comparison.is_same
        recorded = self.recorded.get(output.feed)
        return recorded is not None and recorded.records == output.records

    def as_data(self) -> dict[str, Any]:
        return {
            "operation": "replay",
            "actor": self.actor,
            "reason": self.reason,
            "at": self.at.isoformat(),
            "process": self.process,
            "cluster": self.cluster,
            "instance": format_instant(self.instance),
            "definition": self.definition,
            "definitions": [asdict(one) for one in self.old],
            "environment": {name: {"recorded": was, "now": now} for name, (was, now) in self.environment.items()},
            "outcome": self.outcome,
            "impossible": self.impossible or None,
            "outputs": [self._output(one) for one in self.outputs],
            "folder": self.folder or None,
            "published": self.published,
        }

    def _output(self, one: ReplayedOutput) -> dict[str, Any]:
        recorded = self.recorded.get(one.feed)
        return {
            "feed": one.feed,
            "instance": format_instant(one.instance),
            "version": recorded and recorded.version,
            "reproduced": self.is_reproduced(one),
            "records": {"recorded": recorded and recorded.records, "replayed": one.records},
            "comparison": one.comparison and asdict(one.comparison),
        }


class ReplayInstance(Operation):
    """Compute the INSTANCE of PROCESS again from its recorded inputs, and compare.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. Code, input versions, and the definitions of the process, its feeds and the
    cluster are those recorded for the version; endpoints, storage_options and libraries are the present ones. Outputs
    are written to a separate folder; published data is not touched without --publish.

    The exit code is 0 if the result is the same, and 1 if it differs or can no longer be computed.
    """

    command = "instance replay"
    role = Role.LAUNCHER
    process: Annotated[str, Given("PROCESS")]
    instance: Annotated[Instant, Given("INSTANCE")]
    version: str | None = Field(
        None, description="Version id of an output, or its first characters (default: the present version)."
    )
    cluster: str | None = Field(None, description="Cluster: needed if the process runs on several.")
    publish: bool = Field(False, description="Publish the result, whether it is the same or not.")
    actor: str | None = Field(
        None, description="Name of the user who requests it; None: the user of the operating system."
    )
    reason: str = Field("", description="Reason for the change, kept in the audit log.")

    def run(self, installation: Installation) -> ReplayResult:
        query = InstanceQuery(self.process, start=self.instance, cluster=self.cluster)
        request = InstanceRequest(query, self.actor, self.reason)
        return replay_instance(installation, request, self.version, publish=self.publish)


_IMPOSSIBLE = (ExpressionError, MissingInputsError, OldDefinitionError, UnknownEntityError, UnknownInstanceError)


def replay_instance(
    installation: Installation, request: InstanceRequest, version: str | None = None, *, publish: bool = False
) -> ReplayResult:
    """Computes a version again, with the recorded definitions, code and input versions, and compares the outputs.

    Outputs are written to a folder of their own and compared by columns and rows, or by the number of records where the
    recorded data is deleted. Published data stays unchanged unless ``publish`` is set: then it is an ordinary
    publication to the present place of the feeds, and replaced versions are kept where the feeds keep versions.

    Process, feeds and cluster are those of then, see :func:`.recorded_world`; libraries are those of now, and the
    result has the differences. The process must be declared only for publishing. The Spark session stays open.

    Raises:
        QueryError: the query names more than one instance, or an entity that makes no data.
        UnknownEntityError: there never was such a process, it is not on the cluster, or on several and none is named;
            or it is to be published and is not declared any more.
        UnknownInstanceError: the process has no such instance, or no such version is recorded.
        WorkflowError: the workflow fails now.
        StorageError: a store refuses, or a run is writing the instance.
        DeniedError: the user may not read the process or its feeds, or change them where it is published.
        SettingsError: Java, disk space or the database is missing.
    """
    settings, entities = installation.settings, installation.entities
    query = request.query
    if query.name is None or query.start is None or query.end not in (None, query.start) or query.colo or query.filters:
        raise QueryError("say which instance is to be replayed: the process, the start, and the cluster of several")
    with audited(installation, "instance replay", request) as audit:
        audit.about([("process", query.name)], [query.start])
        if (declared := entities.processes.get(query.name)) is not None:
            feeds = {one.feed for one in declared.inputs} | {one.feed for one in declared.outputs}
            require_read(audit.principal, [declared, *(entities.feeds[name] for name in sorted(feeds))])
        with installation.tables_caught_up().connect() as connection:
            made = made_versions(connection, entities, query.name, query.start, query.cluster, version)
            recorded = recorded_instance(connection, made.wanted, made.every)
        if publish:
            require_change(audit.principal, "publish a replay of", [_publishing(made).entity], Role.LAUNCHER)
        require_machine(settings.environ, settings.home)
        who = (audit.principal.name, request.reason, settings.now())
        about = (*who, made.process, made.cluster, made.instance, made.wanted.definition, dict(recorded.outputs))
        other = changed_environment(made.wanted.environment, run_environment())
        old: tuple[OldEntity, ...] = ()
        try:
            then = recorded_world(installation, made, recorded, publish=publish)
            old = then.entities.old
            read = [entities.feeds.get(one.name, one) for one in then.entities.feeds.values()]
            require_read(audit.principal, [entities.processes.get(made.process, then.process), *read])
            replay = _replay(installation, then, made.wanted, recorded)
            ready = replay.prepare()
        except _IMPOSSIBLE as error:
            audit.result(False)
            return ReplayResult(*about, environment=other, old=old, impossible=str(error))
        outputs = _published(installation, replay, ready, _publishing(made)) if publish else replay.compare(ready)
        done = ReplayResult(*about, environment=other, old=old, outputs=tuple(outputs), published=publish)
        audit.result(publish)
    if publish:
        return done
    if done.outcome == "reproduced":
        shutil.rmtree(replay.folder, ignore_errors=True)
        return done
    return replace(done, folder=str(replay.folder))


def _publishing(made: MadeVersions) -> ProcessWorkload:
    if made.workload is None:
        raise UnknownEntityError(
            f"process {made.process!r} is not declared on cluster {made.cluster!r} any more: it can be replayed, "
            "and what that makes be published only when it is declared again"
        )
    made.workload.timeline.require(made.instance, f"{made.process!r} on cluster {made.cluster!r}")
    return made.workload


def _replay(installation: Installation, then: RecordedWorld, wanted: Version, recorded: RecordedInstance) -> Replay:
    name, process = f"replay-{uuid.uuid4().hex}", then.process
    present = InstanceRunner.of(process, then.cluster, installation.entities, installation.settings, name)
    feeds = {**present.feeds, **then.entities.feeds}
    runner = replace(present, feeds=feeds, store_of=then.stores, entity_root=then.root)
    nominal = wanted.nominal or wanted.instance
    folder = Path(runner.store.working) / "replays" / process.name / nominal.strftime("%Y-%m-%dT%H-%MZ")
    return Replay(runner, nominal, recorded, folder)


def _published(
    installation: Installation, replay: Replay, ready: ReadyInstance, workload: ProcessWorkload
) -> list[ReplayedOutput]:
    ledger, runner = installation.ledger, replay.runner
    with without_runs(ledger, workload, replay.nominal, "replay it"):
        outputs, result = replay.publish(ready)
        timeline, partition = workload.partitions.timeline, workload.partitions.partition_of(replay.nominal)
        definition = next(iter(replay.recorded.outputs.values())).definition
        common = (runner.process.name, workload.cluster, key_of(timeline, partition), installation.settings.now())
        for event in materializations(result, *common, definition):
            ledger.instance.report_runless_asset_event(event)
        ledger.catch_up()
    return outputs
