"""Apache Falcon's own paths (``/api/...``), for its clients: each is an operation of ours, answered in its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from falcon_assets.errors import DefinitionStoreError, DeniedError, FalconError, UsageError
from falcon_assets.features.entities import operations as changing
from falcon_assets.features.entities.given import stored_definition
from falcon_assets.features.entities.questions import EntityDependencies, ListEntities, LookUpPath, ShowEntityStatus
from falcon_assets.features.entities.results import OperationResult
from falcon_assets.instances.operations import questions, rerunning, stopping
from falcon_assets.model.access import Principal
from falcon_assets.operations.audit import perform_for
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Operation
from falcon_assets.operations.request_origin import requests_from
from falcon_assets.surface.rest import falcon_answers as answers
from falcon_assets.surface.rest.falcon_answers import FalconAnswer
from falcon_assets.surface.rest.problems import status_of
from falcon_assets.surface.rest.requests import body_of, made
from falcon_assets.surface.rest.routes import guarded
from falcon_assets.surface.served import ServedInstallation

Answer: TypeAlias = "Callable[[FalconRequest], FalconAnswer | Response]"
_MOST = 10_000
_SHOWN = 200
_KINDS = ("cluster", "datasource", "feed", "process")


@dataclass(frozen=True)
class FalconRequest:
    """A request, whose operations are performed for who asks."""

    installation: Installation
    who: Principal
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = field(repr=False)

    def perform(self, operation: type[Operation], **given: Any) -> Any:
        own = {name: value for name, value in given.items() if value not in (None, "")}
        return perform_for(self.installation, self.who, "rest", made(operation, own))

    @property
    def kind(self) -> str:
        """Of the path; raises UsageError for what is none."""
        kind = self.path["kind"].lower()
        if kind not in _KINDS:
            raise UsageError(f"Invalid entity type: {kind[:_SHOWN]}; there is: {', '.join(_KINDS)}")
        return kind

    @property
    def name(self) -> str:
        return self.path["name"]

    @property
    def times(self) -> dict[str, str | None]:
        return {"start": self.query.get("start"), "end": self.query.get("end")}

    def definitions(self, kind: str) -> tuple[str, str]:
        """Name and YAML of the entity in the body, which is XML or YAML; raises UsageError."""
        text = self.body.decode(errors="replace")
        if not text.lstrip().startswith("<"):
            return "", text
        # Imported here: the feature may not be there.
        from falcon_assets.features.falcon_xml.conversion import Imported, convert  # noqa: PLC0415 - said above
        from falcon_assets.features.falcon_xml.elements import UnfitXmlError  # noqa: PLC0415 - likewise

        try:
            found = convert(self.body, "definition")
        except UnfitXmlError as error:
            raise UsageError(f"definition:{error.line}: {error}") from error
        if not isinstance(found, Imported):
            raise UsageError("; ".join(f"definition:{one.line}: {one.name}: {one.message}" for one in found))
        if found.kind != kind:
            raise UsageError(f"the body has a {found.kind}, the path says {kind}")
        return found.name, found.text().text


def _submitted(asked: FalconRequest) -> FalconAnswer:
    name, text = asked.definitions(asked.kind)
    result = asked.perform(changing.SubmitEntities, definitions=text)
    return _done(f"Submit successful ({asked.kind}) {name or _names(result)}", result)


def _submitted_and_scheduled(asked: FalconRequest) -> FalconAnswer:
    name, text = asked.definitions(asked.kind)
    result = asked.perform(changing.SubmitAndScheduleEntities, definitions=text)
    name = name or _names(result)
    return _done(f"{name}({asked.kind}) scheduled successfully\n\nSubmit successful ({asked.kind}) {name}")


def _validated(asked: FalconRequest) -> FalconAnswer:
    name, text = asked.definitions(asked.kind)
    try:
        result = asked.perform(changing.SubmitEntities, definitions=text, dry_run=True)
    except DefinitionStoreError:  # it is there with another definition
        result = asked.perform(changing.UpdateEntities, definitions=text, dry_run=True)
    message = f"Validated successfully ({asked.kind.upper()}) {name or _names(result)}"
    return FalconAnswer({**answers.said(message), "message": message})


def _updated(asked: FalconRequest) -> FalconAnswer:
    name, text = asked.definitions(asked.kind)
    if name and name != asked.name:
        raise UsageError(f"the body has {asked.kind} {name}, the path says {asked.name[:_SHOWN]}")
    result = asked.perform(changing.UpdateEntities, definitions=text)
    return _done(f"{asked.name} updated successfully", result)


def _deleted(asked: FalconRequest) -> FalconAnswer:
    result = asked.perform(changing.DeleteEntities, names=(asked.name,), kind=asked.kind)
    return _done(f"{asked.name}({asked.kind}) removed successfully", result)


def _touched(asked: FalconRequest) -> FalconAnswer:
    asked.perform(changing.TouchEntities, names=(asked.name,), kind=asked.kind)
    return _done(f"{asked.name} updated successfully")


def _status_set(operation: type[Operation], done: str) -> Answer:
    def answer(asked: FalconRequest) -> FalconAnswer:
        result = asked.perform(operation, names=(asked.name,), kind=asked.kind)
        return _done(f"{asked.name}({asked.kind}) {done} successfully", result)

    return answer


def _status(asked: FalconRequest) -> FalconAnswer:
    return _done(asked.perform(ShowEntityStatus, name=asked.name, kind=asked.kind).status)


def _definition(asked: FalconRequest) -> Response:
    with requests_from("rest", principal=asked.who):
        return PlainTextResponse(stored_definition(asked.installation, asked.name, asked.kind))


_LISTED = {"NAME": "name", "STATUS": "status", "PIPELINES": "pipeline", "CLUSTER": "cluster", "TYPE": "kind"}
_SORTED = {"name": "name", "type": "kind", "status": "status"}


def _entities(asked: FalconRequest) -> FalconAnswer:
    kinds = [one for one in asked.path.get("kind", "").lower().split(",") if one]
    if wrong := [one for one in kinds if one not in _KINDS]:
        raise UsageError(f"Invalid entity type: {wrong[0][:_SHOWN]}; there is: {', '.join(_KINDS)}")
    filters = [("kind", kind) for kind in kinds or _KINDS]
    filters += _filters(asked, _LISTED)
    filters += [("tag", one) for one in asked.query.get("tags", "").split(",") if one]
    offset, number = _part(asked)
    found = asked.perform(
        ListEntities,
        filters=tuple(filters),
        sort=_order(asked, _SORTED),
        text=asked.query.get("nameseq"),
    )
    fields = asked.query.get("fields", "").upper().split(",")
    return answers.entities(found.items[offset : offset + number], found.total, fields)


def _dependencies(asked: FalconRequest) -> FalconAnswer:
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


def _looked_up(asked: FalconRequest) -> FalconAnswer:
    found = asked.perform(LookUpPath, path=asked.query.get("path", ""))
    shown = [
        {"feedName": one.feed, "locationType": one.location.upper(), "clusterName": one.cluster} for one in found.items
    ]
    return FalconAnswer({"feeds": shown}, "feeds")


_OF_INSTANCES = {"STATUS": "state", "CLUSTER": "cluster"}
_INSTANCE_ORDERS = {"starttime": "started", "status": "entity", "cluster": "entity", "nominaltime": "instance"}


def _instances(operation: type[Operation], message: str) -> Answer:
    def answer(asked: FalconRequest) -> FalconAnswer:
        return answers.instances(_found(asked, operation, name=asked.name), message)

    return answer


def _found(asked: FalconRequest, operation: type[Operation], **more: Any) -> Sequence[Any]:
    filters = [(name, value.replace("TIMEDOUT", "TIMED_OUT")) for name, value in _filters(asked, _OF_INSTANCES)]
    offset, number = _part(asked)
    sort = _order(asked, _INSTANCE_ORDERS)
    given = {**asked.times, "filters": tuple(filters), "sort": sort, "limit": min(offset + number, _MOST), **more}
    items: Sequence[Any] = asked.perform(operation, **given).items
    return items[offset : offset + number]


def _listing(asked: FalconRequest) -> FalconAnswer:
    found = _found(asked, questions.InstanceStatus, name=asked.name, type="feed")
    return answers.listed_instances(found)


def _search(asked: FalconRequest) -> FalconAnswer:
    states = tuple(("state", one.upper()) for one in asked.query.get("instanceStatus", "").split(",") if one)
    offset, number = _part(asked)
    found = asked.perform(
        questions.ListInstances,
        **asked.times,
        filters=states,
        sort=_order(asked, _INSTANCE_ORDERS),
        limit=_MOST,
    )
    text = asked.query.get("nameseq", "").lower()
    fitting = [one for one in found.items if text in one.entity.lower()]
    return answers.searched_instances(fitting[offset : offset + number])


def _summary(asked: FalconRequest) -> FalconAnswer:
    return answers.summary(asked.perform(questions.SummarizeInstances, name=asked.name, **asked.times).items)


def _changed(operation: type[Operation], message: str, state: str) -> Answer:
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


def _version(asked: FalconRequest) -> FalconAnswer:
    from falcon_assets.doctor.admin import ShowVersions  # noqa: PLC0415 - it loads all checks

    found = asked.perform(ShowVersions)
    pairs = {"Version": found.falcon_assets, "Mode": "embedded", "authentication": asked.who.way, "safemode": "false"}
    return FalconAnswer({"properties": [{"key": key, "value": value} for key, value in pairs.items()]}, "properties")


_DIMENSIONS = {f"{kind}_entity": kind for kind in _KINDS}


def _discovered(asked: FalconRequest) -> FalconAnswer:
    dimension = asked.path["dimension"].lower()
    cluster = asked.query.get("cluster")
    filters = (("cluster", cluster),) if cluster else ()
    if dimension in _DIMENSIONS:
        found = asked.perform(ListEntities, filters=(("kind", _DIMENSIONS[dimension]), *filters)).items
        names = [one.name for one in found]
    else:
        found = asked.perform(ListEntities, filters=filters).items
        values: dict[str, Callable[[Any], Iterable[str]]] = {
            "user": lambda one: [one.owner] if one.owner else [],
            "colo": lambda one: [one.declared.colo] if one.kind == "cluster" else [],
            "tags": lambda one: [f"{name}={value}" for name, value in one.tags.items()],
            "pipelines": lambda one: one.pipelines,
            "groups": lambda one: getattr(one.declared, "groups", ()),
        }
        if dimension not in values:
            known = ", ".join([*_DIMENSIONS, *values])
            raise UsageError(f"Invalid dimension type: {dimension[:_SHOWN]}; there is: {known}")
        names = [*dict.fromkeys(value for one in found for value in values[dimension](one))]
    return FalconAnswer({"results": names, "totalSize": len(names)}, "results")


def _done(message: str, result: OperationResult | None = None) -> FalconAnswer:
    return FalconAnswer(answers.said(message) if result is None else answers.changed(message, result))


def _names(result: Any) -> str:
    return ",".join(one.name for one in result.entities)


def _filters(asked: FalconRequest, known: Mapping[str, str]) -> list[tuple[str, str]]:
    found = []
    for one in filter(None, asked.query.get("filterBy", "").split(",")):
        name, _, value = one.partition(":")
        if name.upper() not in known:
            raise UsageError(f"filterBy: there is no {name[:_SHOWN]}; there is: {', '.join(known)}")
        found.append((known[name.upper()], value))
    return found


def _order(asked: FalconRequest, known: Mapping[str, str]) -> str | None:
    order = asked.query.get("orderBy", "").lower()
    if not order:
        return None
    if order not in known:
        raise UsageError(f"orderBy: there is no {order[:_SHOWN]}; there is: {', '.join(known)}")
    return ("-" if asked.query.get("sortOrder", "asc").lower() == "desc" else "") + known[order]


def _part(asked: FalconRequest) -> tuple[int, int]:
    try:
        offset, number = (int(asked.query.get(name) or usual) for name, usual in (("offset", 0), ("numResults", 10)))
    except ValueError as error:
        raise UsageError("offset and numResults are numbers") from error
    if not (0 <= offset <= _MOST and 0 <= number <= _MOST):
        raise UsageError(f"offset and numResults are from 0 to {_MOST}")
    return offset, number


PATHS: Mapping[tuple[str, str], Answer] = {
    ("POST", "/api/entities/submit/{kind}"): _submitted,
    ("POST", "/api/entities/submitAndSchedule/{kind}"): _submitted_and_scheduled,
    ("POST", "/api/entities/validate/{kind}"): _validated,
    ("POST", "/api/entities/update/{kind}/{name}"): _updated,
    ("DELETE", "/api/entities/delete/{kind}/{name}"): _deleted,
    ("POST", "/api/entities/schedule/{kind}/{name}"): _status_set(changing.ScheduleEntities, "scheduled"),
    ("POST", "/api/entities/suspend/{kind}/{name}"): _status_set(changing.SuspendEntities, "suspended"),
    ("POST", "/api/entities/resume/{kind}/{name}"): _status_set(changing.ResumeEntities, "resumed"),
    ("POST", "/api/entities/touch/{kind}/{name}"): _touched,
    ("GET", "/api/entities/status/{kind}/{name}"): _status,
    ("GET", "/api/entities/definition/{kind}/{name}"): _definition,
    ("GET", "/api/entities/list"): _entities,
    ("GET", "/api/entities/list/{kind}"): _entities,
    ("GET", "/api/entities/dependencies/{kind}/{name}"): _dependencies,
    ("GET", "/api/entities/lookup/feed"): _looked_up,
    ("GET", "/api/instance/running/{kind}/{name}"): _instances(questions.ListRunning, "Running Instances"),
    ("GET", "/api/instance/status/{kind}/{name}"): _instances(questions.InstanceStatus, "STATUS"),
    ("GET", "/api/instance/list/{kind}/{name}"): _instances(questions.ListInstances, "STATUS"),
    ("GET", "/api/instance/listing/feed/{name}"): _listing,
    ("GET", "/api/instance/search"): _search,
    ("GET", "/api/instance/summary/{kind}/{name}"): _summary,
    ("POST", "/api/instance/kill/{kind}/{name}"): _changed(stopping.KillInstances, "KILL", "KILLED"),
    ("POST", "/api/instance/suspend/{kind}/{name}"): _changed(stopping.SuspendInstances, "SUSPEND", "SUSPENDED"),
    ("POST", "/api/instance/resume/{kind}/{name}"): _changed(stopping.ResumeInstances, "RESUME", "RUNNING"),
    ("POST", "/api/instance/rerun/{kind}/{name}"): _changed(rerunning.RerunInstances, "RERUN", "RUNNING"),
    ("GET", "/api/admin/version"): _version,
    ("GET", "/api/metadata/discovery/{dimension}/list"): _discovered,
}
"""Method and path -> how it is answered."""


def falcon_routes(served: ServedInstallation) -> list[BaseRoute]:
    """The routes of these paths, and an answer in Falcon's shape to others below ``/api``."""
    own = [_route(served, method, path, answer) for (method, path), answer in PATHS.items()]
    return [*own, Route("/api/{path:path}", guarded(_unknown))]


async def _unknown(request: Request, _: Principal) -> Response:
    text = "it is none of the paths of Apache Falcon that are answered here, or has another method"
    return answers.failure(404, text).response(request)


def _route(served: ServedInstallation, method: str, path: str, answer: Answer) -> Route:
    async def handle(request: Request, who: Principal) -> Response:
        try:
            body = await body_of(request)
            query = dict(request.query_params)
            if query.get("doAs") not in (None, "", who.name):
                raise DeniedError(f"{who.name} may not act for {query['doAs'][:_SHOWN]!r}: leave doAs out")

            def answered(installation: Installation) -> FalconAnswer | Response:
                return answer(FalconRequest(installation, who, request.path_params, query, body))

            found = await served.call(answered)
        except FalconError as error:
            found = answers.failure(_falcons(status_of(error)), str(error))
        return found if isinstance(found, Response) else found.response(request)

    return Route(path, guarded(handle), methods=[method])


def _falcons(status: int) -> int:
    """Falcon's clients know 400, 403, 404 and 5xx."""
    return 400 if status in (409, 413, 415, 422) else status
