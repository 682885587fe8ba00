"""What Falcon's clients do with entities, and ask about them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from starlette.responses import PlainTextResponse, Response

from falcon_assets.errors import DefinitionStoreError, UsageError
from falcon_assets.features.entities import operations as changing
from falcon_assets.features.entities.given import stored_definition
from falcon_assets.features.entities.questions import (
    EntityDependencies,
    ListEntities,
    LookUpPath,
    ShowEntityStatus,
    SummarizeEntities,
)
from falcon_assets.model.instant import format_instant
from falcon_assets.model.sla import SlaLevel
from falcon_assets.operations.operation import Operation
from falcon_assets.operations.request_origin import requests_from
from falcon_assets.surface.rest.falcon import answers
from falcon_assets.surface.rest.falcon.answers import FalconAnswer
from falcon_assets.surface.rest.falcon.request import (
    KINDS,
    MOST,
    SHOWN,
    Answer,
    FalconRequest,
    done,
    filters_of,
    instant_of,
    names,
    number_of,
    order_of,
    part_of,
)


def submitted(asked: FalconRequest) -> FalconAnswer:
    name, text = asked.definitions(asked.kind)
    result = asked.perform(changing.SubmitEntities, definitions=text)
    return done(f"Submit successful ({asked.kind}) {name or names(result)}", result)


def submitted_and_scheduled(asked: FalconRequest) -> FalconAnswer:
    name, text = asked.definitions(asked.kind)
    result = asked.perform(changing.SubmitAndScheduleEntities, definitions=text)
    name = name or names(result)
    return done(f"{name}({asked.kind}) scheduled successfully\n\nSubmit successful ({asked.kind}) {name}")


def validated(asked: FalconRequest) -> FalconAnswer:
    name, text = asked.definitions(asked.kind)
    try:
        result = asked.perform(changing.SubmitEntities, definitions=text, dry_run=True)
    except DefinitionStoreError:  # it is there with another definition
        result = asked.perform(changing.UpdateEntities, definitions=text, dry_run=True)
    message = f"Validated successfully ({asked.kind.upper()}) {name or names(result)}"
    return FalconAnswer({**answers.said(message), "message": message})


def updated(asked: FalconRequest) -> FalconAnswer:
    name, text = asked.definitions(asked.kind)
    if name and name != asked.name:
        raise UsageError(f"the body has {asked.kind} {name}, the path says {asked.name[:SHOWN]}")
    result = asked.perform(changing.UpdateEntities, definitions=text)
    return done(f"{asked.name} updated successfully", result)


def deleted(asked: FalconRequest) -> FalconAnswer:
    result = asked.perform(changing.DeleteEntities, names=(asked.name,), kind=asked.kind)
    return done(f"{asked.name}({asked.kind}) removed successfully", result)


def touched(asked: FalconRequest) -> FalconAnswer:
    asked.perform(changing.TouchEntities, names=(asked.name,), kind=asked.kind)
    return done(f"{asked.name} updated successfully")


def status_set(operation: type[Operation], what: str) -> Answer:
    def answer(asked: FalconRequest) -> FalconAnswer:
        result = asked.perform(operation, names=(asked.name,), kind=asked.kind)
        return done(f"{asked.name}({asked.kind}) {what} successfully", result)

    return answer


def status(asked: FalconRequest) -> FalconAnswer:
    return done(asked.perform(ShowEntityStatus, name=asked.name, kind=asked.kind).status)


def definition(asked: FalconRequest) -> Response:
    with requests_from("rest", principal=asked.who):
        return PlainTextResponse(stored_definition(asked.installation, asked.name, asked.kind))


_LISTED = {"NAME": "name", "STATUS": "status", "PIPELINES": "pipeline", "CLUSTER": "cluster", "TYPE": "kind"}
_SORTED = {"name": "name", "type": "kind", "status": "status"}


def listed(asked: FalconRequest) -> FalconAnswer:
    kinds = [one for one in asked.path.get("kind", "").lower().split(",") if one]
    if wrong := [one for one in kinds if one not in KINDS]:
        raise UsageError(f"Invalid entity type: {wrong[0][:SHOWN]}; there is: {', '.join(KINDS)}")
    offset, number = part_of(asked)
    found = asked.perform(
        ListEntities,
        filters=_wanted(asked, kinds or KINDS),
        sort=order_of(asked, _SORTED),
        text=asked.query.get("nameseq"),
    )
    return answers.entities(found.items[offset : offset + number], found.total, _fields(asked))


def summarized(asked: FalconRequest) -> FalconAnswer:
    offset, number = part_of(asked)
    instances = number_of(asked, "numInstances", 7)
    found = asked.perform(
        SummarizeEntities,
        filters=_wanted(asked, [asked.kind]),
        sort=order_of(asked, _SORTED),
        cluster=asked.path["cluster"],
        number=min(max(instances, 1), 1000),
    )
    first, last = (asked.query.get(name) and instant_of(asked, name) for name in ("start", "end"))
    return answers.summarized_entities(
        [
            (
                one.entity,
                [
                    it
                    for it in one.instances
                    if (not first or it.instance >= first) and (not last or it.instance < last)
                ],
            )
            for one in found.items[offset : offset + number]
        ],
        _fields(asked),
    )


def _wanted(asked: FalconRequest, kinds: Iterable[str]) -> tuple[tuple[str, str], ...]:
    tags = [("tag", one) for one in asked.query.get("tags", "").split(",") if one]
    return (*(("kind", kind) for kind in kinds), *filters_of(asked, _LISTED), *tags)


def _fields(asked: FalconRequest) -> list[str]:
    return asked.query.get("fields", "").upper().split(",")


def dependencies(asked: FalconRequest) -> FalconAnswer:
    found = asked.perform(EntityDependencies, name=asked.name, kind=asked.kind)
    below = (*found.needs.below, *found.needed_by.below)
    shown = [
        {
            "name": one.name,
            "type": one.kind,
            **({"tag": [role.capitalize() for role in one.roles]} if one.roles else {}),
        }
        for one in below
    ]
    return FalconAnswer({"entity": shown}, "entities")


def looked_up(asked: FalconRequest) -> FalconAnswer:
    found = asked.perform(LookUpPath, path=asked.query.get("path", ""))
    shown = [
        {"feedName": one.feed, "locationType": one.location.upper(), "clusterName": one.cluster} for one in found.items
    ]
    return FalconAnswer({"feeds": shown}, "feeds")


_SLA = {SlaLevel.LOW: "Missed SLA Low", SlaLevel.HIGH: "Missed SLA High"}


def sla_alerts(asked: FalconRequest) -> FalconAnswer:
    """Instances of feeds that are late and not there yet, each once with the higher level that it missed."""
    start, end = (asked.query.get(name) and instant_of(asked, name) for name in ("start", "end"))
    name = asked.query.get("entity-name", "")
    filters = [("kind", "feed"), ("state", "OPEN"), *([("entity", name)] if name else [])]
    found: dict[tuple[str, str, datetime], dict[str, str]] = {}
    for one in asked.perform("sla alerts", filters=tuple(filters), sort="deadline", limit=MOST).items:
        if (not start or one.instance >= start) and (not end or one.instance < end):
            about = (one.entity, one.cluster, one.instance)
            if one.level is SlaLevel.HIGH or about not in found:
                found[about] = {
                    "cluster": one.cluster,
                    "entityName": one.entity,
                    "entityType": "FEED",
                    "instanceTime": format_instant(one.instance),
                    "tags": _SLA[one.level],
                }
    return FalconAnswer({**answers.said("Success!"), "instances": [*found.values()]}, "schedulableEntityInstanceResult")
