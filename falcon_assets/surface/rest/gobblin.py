"""Gobblin's ``/flowconfigs`` and ``/flowstatuses`` on top of flows, as its service answers them in JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias
from urllib.parse import unquote

import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from falcon_assets.errors import FalconError, UnknownEntityError, UsageError
from falcon_assets.features.flows.operations import DeleteFlows, ShowFlow, SubmitFlows, UpdateFlows
from falcon_assets.features.flows.running import FlowStatusOf, KillFlow, RunFlow
from falcon_assets.model.access import Principal
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.audit import perform_for
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation
from falcon_assets.surface.rest.problems import status_of
from falcon_assets.surface.rest.requests import body_of, made, read_json
from falcon_assets.surface.rest.routes import guarded
from falcon_assets.surface.served import ServedInstallation

_FLOW = "falcon.flow"
"""The property of a flow's configuration that holds its definition in YAML, without kind, name and group."""
_ID = "(flowGroup:{group},flowName:{name})"
_STATES = {
    "": "PENDING",
    "WAITING": "PENDING",
    "READY": "PENDING",
    "RUNNING": "RUNNING",
    "SUSPENDED": "PENDING_RESUME",
    "SUCCEEDED": "COMPLETE",
    "SKIPPED": "COMPLETE",
    "FAILED": "FAILED",
    "TIMED_OUT": "FAILED",
    "KILLED": "CANCELLED",
}
"""The state of an instance -> Gobblin's status of an execution."""


@dataclass(frozen=True)
class _Asked:
    installation: Installation
    who: Principal
    request: Request
    body: bytes

    def perform(self, operation: type[Operation], **given: Any) -> Any:
        return perform_for(self.installation, self.who, "rest", made(operation, given))

    def key(self) -> dict[str, str]:
        """The parts of the key in the path, ``(flowGroup:g,flowName:n)`` in Rest.li's notation."""
        text = unquote(self.request.path_params["key"]).strip()
        pairs = (one.partition(":") for one in text.strip("()").split(","))
        found = {name.strip(): value.strip() for name, _, value in pairs}
        if not found.get("flowName"):
            raise UsageError(f"write {_ID.format(group='GROUP', name='NAME')}, not {text[:200]!r}")
        return found

    def flow(self, key: Mapping[str, str]) -> Any:
        """Raises UnknownEntityError where there is none of that name and group."""
        flow = self.installation.all_entities.flow(key["flowName"])
        if (flow.group or "") != key.get("flowGroup", ""):
            raise UnknownEntityError(f"there is no flow {flow.name!r} in the group {key.get('flowGroup', '')!r}")
        return flow


Answer: TypeAlias = Callable[[_Asked], Response]


def _create(asked: _Asked) -> Response:
    config = _config(asked)
    key = config.get("id") or {}
    asked.perform(SubmitFlows, definitions=_definition(config, key))
    place = _ID.format(group=key.get("flowGroup", ""), name=key.get("flowName", ""))
    return Response(status_code=201, headers={"Location": f"/flowconfigs/{place}", "X-RestLi-Id": place})


def _get(asked: _Asked) -> Response:
    flow = asked.flow(asked.key())
    shown = asked.perform(ShowFlow, name=flow.name)
    schedule = {"cronSchedule": flow.schedule.text} if flow.schedule else {}
    properties = {_FLOW: shown.definition}
    config = {"id": _identity(flow), "properties": properties, "templateUris": ""}
    return JSONResponse({**config, **({"schedule": schedule} if schedule else {})})


def _update(asked: _Asked) -> Response:
    key = asked.key()
    asked.flow(key)
    asked.perform(UpdateFlows, definitions=_definition(_config(asked), key))
    return Response(status_code=200)


def _delete(asked: _Asked) -> Response:
    asked.perform(DeleteFlows, names=(asked.flow(asked.key()).name,))
    return Response(status_code=200)


def _run(asked: _Asked) -> Response:
    """Action ``runImmediately``: the newest instance that is due runs again."""
    name = asked.flow(asked.key()).name
    asked.perform(RunFlow, name=name)
    status = asked.perform(FlowStatusOf, name=name)
    return JSONResponse({"value": str(_milliseconds(status.instance))})


def _status(asked: _Asked) -> Response:
    key = asked.key()
    return JSONResponse(_execution(asked, key))


def _latest(asked: _Asked) -> Response:
    query = asked.request.query_params
    if query.get("q") != "latestFlowStatus":
        raise UsageError("q: there is latestFlowStatus")
    key = dict(one.partition(":")[::2] for one in query.get("flowId", "").strip("()").split(","))
    if not key.get("flowName"):
        raise UsageError(f"flowId: write {_ID.format(group='GROUP', name='NAME')}")
    return JSONResponse({"elements": [_execution(asked, key)], "paging": {"start": 0, "count": 1, "links": []}})


def _kill(asked: _Asked) -> Response:
    key = asked.key()
    instance = _instance(key)
    asked.perform(KillFlow, name=asked.flow(key).name, **({"instance": instance} if instance else {}))
    return Response(status_code=200)


def _execution(asked: _Asked, key: Mapping[str, str]) -> dict[str, Any]:
    flow, instance = asked.flow(key), _instance(key)
    found = asked.perform(FlowStatusOf, name=flow.name, **({"instance": instance} if instance else {}))
    jobs = [
        {
            "jobName": job.job,
            "jobGroup": flow.group or "",
            "executionStatus": _STATES.get(job.state, "PENDING"),
            "message": job.message,
        }
        for job in found.jobs
    ]
    states = {job.state for job in found.jobs}
    state = "KILLED" if "KILLED" in states and not states & {"FAILED", "TIMED_OUT"} else found.state
    return {
        "id": {**_identity(flow), "flowExecutionId": _milliseconds(found.instance)},
        "executionStatus": _STATES.get(state, "PENDING"),
        "message": found.message,
        "jobStatuses": jobs,
    }


def _identity(flow: Any) -> dict[str, str]:
    return {"flowGroup": flow.group or "", "flowName": flow.name}


def _milliseconds(instance: datetime | None) -> int:
    """Gobblin numbers executions by time: ours by their nominal time."""
    return int(instance.timestamp() * 1000) if instance else 0


def _instance(key: Mapping[str, str]) -> str | None:
    text = key.get("flowExecutionId")
    if not text:
        return None
    try:
        return format_instant(datetime.fromtimestamp(int(text) / 1000, UTC))
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"flowExecutionId: {text[:200]!r} is no time in milliseconds") from error


def _config(asked: _Asked) -> dict[str, Any]:
    found = read_json(asked.body)
    if not isinstance(found, dict) or not isinstance(found.get("properties"), dict):
        raise UsageError(f"send a flow's configuration: id, schedule and properties, with {_FLOW}")
    return found


def _definition(config: Mapping[str, Any], key: Mapping[str, str]) -> str:
    text = config["properties"].get(_FLOW)
    if not isinstance(text, str):
        raise UsageError(
            f"properties: {_FLOW} is missing: the flow in YAML, with source and destinations; templates of Gobblin "
            "are not known here"
        )
    try:
        written = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"properties: {_FLOW} is no YAML") from error
    if not isinstance(written, dict):
        raise UsageError(f"properties: {_FLOW} is no mapping in YAML")
    named = {"kind": "flow", "name": key.get("flowName", "")}
    group = {"group": key["flowGroup"]} if key.get("flowGroup") else {}
    schedule = config.get("schedule") or {}
    times: dict[str, Any] = {}
    if isinstance(cron := schedule.get("cronSchedule"), str) and cron:
        times["schedule"] = _five_fields(cron)
    if schedule.get("runImmediately") is True:
        times["run_immediately"] = True
    return yaml.safe_dump({**written, **named, **group, **times}, sort_keys=False, allow_unicode=True)


def _five_fields(cron: str) -> str:
    """Quartz writes seconds first and perhaps years last; raises UsageError for what has other seconds or years."""
    fields = cron.replace("?", "*").split()
    if len(fields) == 5:
        return " ".join(fields)
    if len(fields) not in (6, 7) or fields[0] != "0" or fields[6:] not in ([], ["*"]):
        raise UsageError(f"schedule: cronSchedule {cron[:200]!r}: there are no seconds and no years here")
    return " ".join(fields[1:6])


PATHS: Mapping[tuple[str, str], tuple[Answer, str]] = {
    ("POST", "/flowconfigs"): (_create, "flow submit"),
    ("GET", "/flowconfigs/{key}"): (_get, "flow show"),
    ("PUT", "/flowconfigs/{key}"): (_update, "flow update"),
    ("DELETE", "/flowconfigs/{key}"): (_delete, "flow delete"),
    ("POST", "/flowconfigs/{key}"): (_run, "flow run"),
    ("GET", "/flowstatuses"): (_latest, "flow status"),
    ("GET", "/flowstatuses/{key}"): (_status, "flow status"),
    ("DELETE", "/flowstatuses/{key}"): (_kill, "flow kill"),
}
"""Method and path -> how it is answered, and by which operation."""


def gobblin_routes(served: ServedInstallation) -> list[BaseRoute]:
    """The routes of these paths."""
    return [_route(served, method, path, answer) for (method, path), (answer, _) in PATHS.items()]


def _route(served: ServedInstallation, method: str, path: str, answer: Answer) -> Route:
    async def handle(request: Request, who: Principal) -> Response:
        try:
            body = await body_of(request)
            if (action := request.query_params.get("action")) not in (None, "runImmediately"):
                raise UsageError(f"action {action[:200]!r}: there is runImmediately")
            return await served.call(lambda installation: answer(_Asked(installation, who, request, body)))
        except FalconError as error:
            status = status_of(error)
            return JSONResponse({"status": status, "message": str(error)}, status)

    return Route(path, guarded(handle), methods=[method])
