"""An operation by command, by the Python API and by job: what it says, and what it leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
from click.testing import CliRunner
from sqlalchemy import Engine, Table, select

from falcon_assets.errors import FalconError
from falcon_assets.features.entities.changing import apply, delete, submit, submit_and_schedule, touch, update
from falcon_assets.features.entities.results import OperationResult, Request
from falcon_assets.features.entities.status import resume_entities, schedule_entities, suspend_entities
from falcon_assets.features.entities.versions import restore_entity
from falcon_assets.features.versions.operations import RestoreResult, restore_instance
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import CommandResult, InstanceRequest
from falcon_assets.instances.operations.stopping import kill_instances, resume_instances, suspend_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.surface.cli.main import falcon
from falcon_assets.surface.jobs.operation_jobs import falcon_entity_operation, falcon_instance_operation

JOBS = {"entity": falcon_entity_operation, "instance": falcon_instance_operation}
OF_ENTITIES: Mapping[str, Callable[[Installation, Request], OperationResult]] = {
    "submit": submit,
    "update": update,
    "apply": apply,
    "delete": delete,
    "submit-and-schedule": submit_and_schedule,
    "schedule": schedule_entities,
    "suspend": suspend_entities,
    "resume": resume_entities,
    "touch": touch,
}
OF_INSTANCES: Mapping[str, Callable[[Installation, InstanceRequest], CommandResult]] = {
    "kill": kill_instances,
    "suspend": suspend_instances,
    "resume": resume_instances,
}


@dataclass(frozen=True)
class Case:
    """An operation.

    Attributes:
        operation: Its name.
        given: What is named, or the names of files.
        result: What the audit says of it; None: it is not written down.
        says: What the refusal says; empty: it is done.
        options: What is asked for besides, as the job has it.
        files: What is in the files.
        before: What was done to entities before.
        noun: Of what it is: ``entity`` or ``instance``.
    """

    operation: str
    given: tuple[str, ...]
    result: str | None = "done"
    says: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    noun: str = "entity"


@dataclass(frozen=True)
class Outcome:
    """What an operation leaves behind."""

    said: Any
    audit: list[dict[str, Any]]
    ledger: list[list[dict[str, Any]]]
    tree: dict[str, bytes]


def by_command(case: Case) -> Any:
    options = dict(case.options)
    version = options.pop("version", None) if case.noun == "entity" else None
    flags = [part for name, value in options.items() for part in _flags(name.replace("_", "-"), value)]
    arguments = [*case.given, *([] if version is None else [str(version)]), *flags, "--json"]
    result = CliRunner().invoke(falcon, [case.noun, case.operation, *arguments])
    if isinstance(result.exception, FalconError):
        return str(result.exception)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def _flags(name: str, value: Any) -> Iterator[str]:
    for one in value if isinstance(value, list) else [value]:
        yield from [f"--{name}"] if one is True else [f"--{name}", one]
    if name == "downstream":
        yield "--yes"


def by_api(case: Case) -> Any:
    with open_installation() as installation:
        try:
            told = _of_entities(installation, case) if case.noun == "entity" else _of_instances(installation, case)
        except FalconError as error:
            return str(error)
    return told.as_data()


def _of_entities(installation: Installation, case: Case) -> OperationResult:
    options = dict(case.options)
    version = options.pop("version", None)
    request = Request(case.given, **options)
    if version is not None:
        return restore_entity(installation, version, request)
    return OF_ENTITIES[case.operation](installation, request)


def _of_instances(installation: Installation, case: Case) -> CommandResult | RestoreResult:
    options = dict(case.options)
    times = {name: parse_instant(options.pop(name)) for name in ("start", "end") if name in options}
    states = tuple(("state", state) for state in options.pop("status", ()))
    told = {name: options.pop(name) for name in ("reason", "dry_run") if name in options}
    request = InstanceRequest(InstanceQuery(case.given[0], filters=states, **times), **told)
    if case.operation == "restore":
        return restore_instance(installation, options["version"], request)
    if case.operation == "rerun":
        return rerun_instances(installation, request, RerunOptions(**options))
    return OF_INSTANCES[case.operation](installation, request)


def by_job(case: Case, instance: dg.DagsterInstance) -> Any:
    """A job reads no files: it is told what is in them."""
    files = [one for one in case.given if Path(one).is_file()]
    told = {"definitions": "---\n".join(Path(one).read_text() for one in files)} if files else {}
    names: dict[str, Any] = {"names": [one for one in case.given if one not in files], **told}
    named = names if case.noun == "entity" else {"name": case.given[0]}
    return in_job(instance, case.noun, operation=case.operation, **named, **case.options)


def in_job(
    instance: dg.DagsterInstance, noun: str = "entity", tags: Mapping[str, str] | None = None, **config: Any
) -> Any:
    """What comes of the job, or the sentence in which it is refused."""
    done = JOBS[noun].execute_in_process(
        {"ops": {f"{noun}_operation": {"config": config}}},
        instance=instance,
        raise_on_error=False,
        tags=dict(tags or {}),
    )
    if not done.success:
        failure = next(one for one in done.all_events if one.is_step_failure).step_failure_data
        assert failure.user_failure_data is not None, failure.error
        return failure.user_failure_data.description
    (output,) = (one for one in done.all_events if one.event_type is dg.DagsterEventType.STEP_OUTPUT)
    return output.step_output_data.metadata["result"].value


def rows(engine: Engine, table: Table, *but: str) -> list[dict[str, Any]]:
    columns = [column for column in table.columns if column.name not in but]
    with engine.connect() as connection:
        found = [dict(row._mapping) for row in connection.execute(select(*columns))]
    return sorted(found, key=str)


def column(engine: Engine, table: Table, name: str) -> list[Any]:
    """In the order in which the rows were written."""
    with engine.connect() as connection:
        return list(connection.execute(select(table.c[name]).order_by(table.c.id)).scalars())
