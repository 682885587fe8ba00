"""Answers in the shape of Apache Falcon's, as JSON or XML."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from starlette.requests import Request
from starlette.responses import Response

from falcon_assets.features.entities.listing import Entity
from falcon_assets.features.entities.results import OperationResult
from falcon_assets.instances.views.listing import InstanceCounts
from falcon_assets.instances.views.query import InstanceInfo
from falcon_assets.model.instant import format_instant

SUCCEEDED, PARTIAL, FAILED = "SUCCEEDED", "PARTIAL", "FAILED"
_PLAIN = "default"
"""Falcon names the colo that answers in front of each message."""
STATES = {"TIMED_OUT": "TIMEDOUT"}


@dataclass(frozen=True)
class FalconAnswer:
    """An answer; ``root`` is the name of the element that XML has around it."""

    content: Mapping[str, Any]
    root: str = "result"
    status: int = 200

    def response(self, request: Request) -> Response:
        """XML if the client accepts it and no JSON; as Falcon's examples, JSON to those who accept all."""
        accepted = request.headers.get("accept", "")
        if "xml" in accepted and "json" not in accepted:
            head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
            text = head + "".join(_element(self.root, self.content))
            return Response(text, self.status, media_type="text/xml" if "text/xml" in accepted else "application/xml")
        return Response(json.dumps(self.content), self.status, media_type="application/json")


def _element(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for one in value:
            yield from _element(name, one)
        return
    yield f"<{name}>"
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _element(key, inner)
    elif value is not None:
        yield escape("".join(one for one in str(value) if one.isprintable() or one in "\n\t"))
    yield f"</{name}>"


def said(message: str, *, status: str = SUCCEEDED, colo: str = _PLAIN) -> dict[str, Any]:
    """What every answer has."""
    return {"status": status, "message": f"{colo}/{message}\n", "requestId": f"{colo}/{uuid.uuid4()}\n"}


def changed(message: str, result: OperationResult) -> dict[str, Any]:
    """Of several colos, what each has said."""
    if not result.colos:
        return said(message)
    sentences = (f"{one.colo}/{one.message if one.is_missing else message}\n" for one in result.colos)
    request = f"{_PLAIN}/{uuid.uuid4()}\n"
    return {"status": PARTIAL if result.partial else SUCCEEDED, "message": "".join(sentences), "requestId": request}


def failure(status: int, message: str) -> FalconAnswer:
    return FalconAnswer({**said(message, status=FAILED), "message": message}, status=status)


def instances(found: Sequence[InstanceInfo], message: str) -> FalconAnswer:
    return FalconAnswer({**said(message), "instances": [*map(instance, found)]}, "instancesResult")


def instance(one: InstanceInfo) -> dict[str, Any]:
    state = one.state.value
    shown: dict[str, Any] = {
        "instance": format_instant(one.instance),
        "status": STATES.get(state, state),
        "cluster": one.cluster,
        "details": (one.reason or {}).get("text", ""),
        "runId": max(one.attempt - 1, 0),
    }
    if one.run:
        shown["logFile"] = f"/runs/{one.run}"
    for name, time in (("startTime", one.started), ("endTime", one.ended)):
        if time is not None:
            shown[name] = time.isoformat(timespec="seconds")
    return shown


def listed_instances(found: Sequence[InstanceInfo]) -> FalconAnswer:
    """Of feeds, as ``listing`` has them."""
    shown = [
        {
            "instance": format_instant(one.instance),
            "status": one.state.value,
            "cluster": one.cluster,
        }
        for one in found
    ]
    return FalconAnswer({**said("LISTING"), "instances": shown}, "feedInstanceResult")


def searched_instances(found: Sequence[InstanceInfo]) -> FalconAnswer:
    shown = [{"name": one.entity, "type": one.kind.upper(), **_searched(one)} for one in found]
    content = {"status": SUCCEEDED, "message": "Instances Search Results", "requestId": str(uuid.uuid4())}
    return FalconAnswer({**content, "instances": shown}, "instancesResult")


def _searched(one: InstanceInfo) -> dict[str, Any]:
    shown = instance(one)
    return {"nominalTime": shown.pop("instance"), **shown}


def summary(found: Sequence[InstanceCounts]) -> FalconAnswer:
    shown = [
        {
            "cluster": one.cluster,
            "map": {"entry": [{"key": state.value, "value": str(number)} for state, number in one.states.items()]},
        }
        for one in found
    ]
    return FalconAnswer({**said("SUMMARY"), "instancesSummary": shown}, "instancesSummaryResult")


def entities(found: Sequence[Entity], total: int, fields: Sequence[str]) -> FalconAnswer:
    return FalconAnswer({"totalResults": total, "entity": [entity(one, fields) for one in found]}, "entities")


def entity(one: Entity, fields: Sequence[str]) -> dict[str, Any]:
    shown: dict[str, Any] = {"type": one.kind, "name": one.name}
    if "STATUS" in fields:
        shown["status"] = one.status
    if "TAGS" in fields and one.tags:
        shown["tags"] = {"tag": [f"{name}={value}" for name, value in one.tags.items()]}
    if "PIPELINES" in fields and one.pipelines:
        shown["pipelines"] = {"pipeline": [*one.pipelines]}
    if "CLUSTERS" in fields and one.clusters:
        shown["clusters"] = {"cluster": [*one.clusters]}
    return shown


def summarized_entities(found: Iterable[tuple[Entity, Sequence[InstanceInfo]]], fields: Sequence[str]) -> FalconAnswer:
    shown = [{**entity(one, fields), "instances": [*map(instance, own)]} for one, own in found]
    return FalconAnswer({**said("STATUS"), "entitySummary": shown}, "entitySummaryResult")


def graph(vertices: Iterable[str], edges: Iterable[tuple[str, str, str]]) -> FalconAnswer:
    """``edges`` are from, to and label."""
    shown = [dict(zip(("from", "to", "label"), one, strict=True)) for one in dict.fromkeys(edges)]
    return FalconAnswer({"vertices": [*dict.fromkeys(vertices)], "edges": shown}, "graph")
