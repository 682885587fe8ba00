"""What Falcon's clients do with instances, and ask about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from falcon_assets.instances.operations import questions
from falcon_assets.instances.operations.logs import LogsOfInstance
from falcon_assets.instances.operations.one_instance import InstanceDependencies, InstanceParams
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.operation import Operation
from falcon_assets.planning.instance_record import FeedState
from falcon_assets.surface.rest.falcon import answers
from falcon_assets.surface.rest.falcon.answers import FalconAnswer
from falcon_assets.surface.rest.falcon.request import (
    MOST,
    Answer,
    FalconRequest,
    filters_of,
    instant_of,
    order_of,
    part_of,
)
from falcon_assets.surface.rest.openapi import PREFIX

_OF_INSTANCES = {"STATUS": "state", "CLUSTER": "cluster"}
_INSTANCE_ORDERS = {"starttime": "started", "status": "entity", "cluster": "entity", "nominaltime": "instance"}


def found_by(operation: type[Operation], message: str) -> Answer:
    def answer(asked: FalconRequest) -> FalconAnswer:
        return answers.instances(_found(asked, operation, name=asked.name), message)

    return answer


def _found(asked: FalconRequest, operation: type[Operation], **more: Any) -> Sequence[Any]:
    filters = [(name, value.replace("TIMEDOUT", "TIMED_OUT")) for name, value in filters_of(asked, _OF_INSTANCES)]
    offset, number = part_of(asked)
    sort = order_of(asked, _INSTANCE_ORDERS)
    given = {**asked.times, "filters": tuple(filters), "sort": sort, "limit": min(offset + number, MOST), **more}
    items: Sequence[Any] = asked.perform(operation, **given).items
    return items[offset : offset + number]


def listing(asked: FalconRequest) -> FalconAnswer:
    found = _found(asked, questions.InstanceStatus, name=asked.name, type="feed")
    return answers.listed_instances(found)


def search(asked: FalconRequest) -> FalconAnswer:
    states = tuple(("state", one.upper()) for one in asked.query.get("instanceStatus", "").split(",") if one)
    offset, number = part_of(asked)
    found = asked.perform(
        questions.ListInstances,
        **asked.times,
        filters=states,
        sort=order_of(asked, _INSTANCE_ORDERS),
        limit=MOST,
    )
    text = asked.query.get("nameseq", "").lower()
    fitting = [one for one in found.items if text in one.entity.lower()]
    return answers.searched_instances(fitting[offset : offset + number])


def summary(asked: FalconRequest) -> FalconAnswer:
    return answers.summary(asked.perform(questions.SummarizeInstances, name=asked.name, **asked.times).items)


def changed(operation: type[Operation], message: str, state: str) -> Answer:
    """As Falcon answers: the instances that were changed, with their new status."""

    def answer(asked: FalconRequest) -> FalconAnswer:
        given: dict[str, Any] = {"name": asked.name, **asked.times}
        if "force" in operation.model_fields:
            given["force"] = asked.query.get("force") == "true"
        found = [one.instance for one in asked.perform(operation, **given).items if one.changed]
        content = answers.instances(found, message)
        shown = [{**one, "status": state} for one in content.content["instances"]]
        return replace(content, content={**content.content, "instances": shown})

    return answer


def logs(asked: FalconRequest) -> FalconAnswer:
    """Where the logs are: each attempt is an action."""
    shown = []
    for one in _found(asked, questions.InstanceStatus, name=asked.name):
        place = f"{PREFIX}/instances/{quote(one.entity)}/{format_instant(one.instance)}/logs?cluster={one.cluster}"
        known = asked.perform(LogsOfInstance, name=one.entity, instance=one.instance, cluster=one.cluster)
        actions = [
            {"action": f"attempt {run.attempt}", "status": run.status, "logFile": f"{place}&attempt={run.attempt}"}
            for run in known.runs
        ]
        shown.append({**answers.instance(one), "logFile": place, "actions": actions})
    return FalconAnswer({**answers.said("STATUS"), "instances": shown}, "instancesResult")


def params(asked: FalconRequest) -> FalconAnswer:
    shown = []
    for one in _found(asked, questions.InstanceStatus, name=asked.name):
        found = asked.perform(InstanceParams, name=one.entity, instance=one.instance, cluster=one.cluster)
        entries = [{"key": key, "value": str(value)} for key, value in found["params"].items()]
        shown.append({**answers.instance(one), "params": {"entry": entries}})
    return FalconAnswer({**answers.said("PARAMS"), "instances": shown}, "instancesResult")


def dependencies(asked: FalconRequest) -> FalconAnswer:
    """What the instance reads and writes; of a feed: what writes and reads it."""
    about = {"name": asked.name, "instance": instant_of(asked, "instanceTime"), "cluster": asked.query.get("cluster")}
    found = asked.perform(InstanceDependencies, **about, type=asked.kind)
    if asked.kind == "feed":
        ways = (("Output", "written_by", "entity"), ("Input", "read_by", "entity"))
    else:
        ways = (("Input", "inputs", "feed"), ("Output", "outputs", "feed"))
    shown = [
        {
            "cluster": one.get("cluster", found["cluster"]),
            "entityName": one[name],
            "entityType": "PROCESS" if asked.kind == "feed" else "FEED",
            "instanceTime": one["instance"],
            "type": label,
        }
        for label, way, name in ways
        for one in found[way]
    ]
    return FalconAnswer({**answers.said("Success!"), "dependencies": shown}, "instanceDependencyResult")


def triage(asked: FalconRequest) -> FalconAnswer:
    """The graph of causes; of instances that are alike the first is shown."""
    about = {"name": asked.name, "instance": instant_of(asked, "start"), "cluster": asked.query.get("cluster")}
    found = asked.perform("instance triage", **about, kind=asked.kind)
    vertices, edges = [], []
    causes = [found.cause]
    while causes:
        one = causes.pop()
        vertices.append(_vertex(one))
        label = "produces" if one.kind == "feed" else "consumed by"
        edges += [(_vertex(cause), _vertex(one), label) for cause in one.causes]
        causes += reversed(one.causes)
    return answers.graph(vertices, edges)


def _vertex(one: Any) -> str:
    time = f" ({format_instant(one.first)})" if one.first else ""
    state = one.state
    if one.kind == "feed":
        state = "Available" if state == FeedState.AVAILABLE.value else "Unavailable"
    return f"({one.kind.upper()}) {one.name}{time} [{answers.STATES.get(state, state)}]"
