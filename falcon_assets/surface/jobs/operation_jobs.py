"""The jobs ``falcon_entity_operation`` and ``falcon_instance_operation``, from declared operations.

An operation in a Dagster run records its result or refusal.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import dagster as dg
from pydantic import Field, ValidationError, create_model

from falcon_assets.errors import FalconError, UsageError
from falcon_assets.history.dagster_internals.stamps import principal_of, signing_key
from falcon_assets.operations.audit import perform_for
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.operations.job_powers import why_jobs_may_not
from falcon_assets.operations.operation import Operation, data_of, plain_type
from falcon_assets.operations.request_origin import ORIGIN, requests_from
from falcon_assets.settings import JobPower
from falcon_assets.surface.registry import changes

PLACEHOLDER = ""
"""Shown in the launchpad where users must enter a value; every operation refuses it."""
RESULT = "result"
"""Key of the op's output metadata with the data of ``--json``."""
_PRINCIPAL = "User to act for; only accepted if FALCON_JOBS and FALCON_PROXY_USERS allow it."


def operation_job(noun: str, power: JobPower, begin: Mapping[str, Any], description: str) -> dg.JobDefinition:
    """A job that performs one of the changes of a noun; ``begin`` is what the launchpad begins with."""
    by_name = {one.command.removeprefix(f"{noun} "): one for one in changes(noun)}
    config_class = _config(by_name)

    @dg.op(
        name=f"{noun}_operation",
        out=dg.Out(dg.Nothing),
        description="Performs the operation; the result is in the metadata of its output.",
    )
    def operate(context: dg.OpExecutionContext, config: config_class) -> dg.Output[None]:  # type: ignore[valid-type]
        given: dict[str, Any] = {name: getattr(one, "value", one) for name, one in vars(config).items() if one}
        principal = given.pop("principal", None)
        by_front = principal_of(context.run.tags, signing_key(context.instance))
        try:
            with open_installation(instance=context.instance) as installation:
                refusal = None if by_front else why_jobs_may_not(installation.settings, power, principal)
                with requests_from("job", refusal, principal=by_front):
                    data = _perform(installation, by_name, actor=principal, **given)
        except FalconError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from None
        context.log.info(json.dumps(data, indent=2))
        return dg.Output(None, metadata={RESULT: dg.MetadataValue.json(data)})

    @dg.job(
        name=f"falcon_{noun}_operation",
        executor_def=dg.in_process_executor,
        config={"ops": {f"{noun}_operation": {"config": dict(begin)}}},
        description=description,
    )
    def job() -> None:
        operate()

    return job


def _perform(
    installation: Installation, operations: Mapping[str, type[Operation]], operation: str, **given: Any
) -> dict[str, Any]:
    """Raises UsageError for what the operation does not take, or lacks."""
    kind = operations[operation]
    if "name" in kind.model_fields and len(given.get("names", ())) == 1:
        (given["name"],) = given.pop("names")
    try:
        asked = kind(**given)
        who = ORIGIN.get().principal
        data: dict[str, Any] = data_of(perform_for(installation, who, "job", asked) if who else asked.run(installation))
    except ValidationError as error:
        found = {str(one["loc"][0]): one for one in error.errors()}
        others = [name for name, one in found.items() if one["type"] == "extra_forbidden"]
        lacking = [one for one in found.values() if one["type"] in ("missing", "too_short")]
        if lacking:
            raise UsageError(f"{operation} needs {kind.needs}") from error
        if others:
            raise UsageError(f"{operation} takes {kind.needs}, no {', '.join(others)}") from error
        raise UsageError("; ".join(f"{name}: {one['msg']}" for name, one in found.items())) from error
    return data


def _config(operations: Mapping[str, type[Operation]]) -> type[dg.Config]:
    """All that any of the operations takes, each field with which of them do."""
    found: dict[str, Any] = {
        "operation": (
            Literal[tuple(operations)],
            Field(description="Name of the operation, as after `falcon entity` or `falcon instance`."),
        )
    }
    found |= _fields(operations)
    found["principal"] = (str | None, Field(None, description=_PRINCIPAL))
    made: type[dg.Config] = create_model("OperationConfig", __base__=dg.Config, **found)
    return made


def _fields(operations: Mapping[str, type[Operation]]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    every = dict.fromkeys(name for one in operations.values() for name in one.model_fields)
    hidden = {"actor", "name"} if "names" in every else {"actor"}
    for name in (one for one in every if one not in hidden):
        takers = {one: kind.model_fields[name] for one, kind in operations.items() if name in kind.model_fields}
        field = next(iter(takers.values()))
        of = "" if len(takers) == len(operations) else f"Of {', '.join(takers)}: "
        kind, default = _config_type(name, plain_type(field.annotation))
        if not of and all(one.is_required() for one in takers.values()):
            yield name, (kind, Field(description=field.description))
        else:
            yield name, (kind | None, Field(default, description=f"{of}{field.description}"))


def _config_type(name: str, kind: Any) -> tuple[Any, Any]:
    """Returns the type that a configuration of Dagster can have instead, and its default."""
    origin = get_origin(kind)
    if origin is tuple:
        return list[str], []
    if origin is dict:
        return dict[str, str], {}
    if kind is bool:
        return bool, False
    if origin is Literal:  # Dagster shows the names of members
        return Enum(name.title(), {one: one for one in get_args(kind)}), None
    return str if kind is datetime else kind, None


falcon_entity_operation = operation_job(
    "entity",
    "entities",
    {"operation": "submit", "names": [PLACEHOLDER]},
    "Submits, updates, deletes, schedules, suspends, resumes or restores entities, as falcon entity does.",
)
falcon_instance_operation = operation_job(
    "instance",
    "instances",
    {"operation": "rerun", "name": PLACEHOLDER, "start": PLACEHOLDER},
    "Reruns, kills, suspends or resumes instances of processes and replications, or restores a version of one of a "
    "feed, as falcon instance does.",
)
