"""The table of Apache Falcon's paths, and their routes."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from falcon_assets.errors import DeniedError, FalconError
from falcon_assets.features.entities import operations as changing
from falcon_assets.instances.operations import questions, rerunning, stopping
from falcon_assets.model.access import Principal
from falcon_assets.operations.installation import Installation
from falcon_assets.surface.rest.falcon import answers, entities, instances, metadata
from falcon_assets.surface.rest.falcon.answers import FalconAnswer
from falcon_assets.surface.rest.falcon.request import SHOWN, Answer, FalconRequest
from falcon_assets.surface.rest.problems import status_of
from falcon_assets.surface.rest.requests import body_of
from falcon_assets.surface.rest.routes import guarded
from falcon_assets.surface.served import ServedInstallation

PATHS: Mapping[tuple[str, str], Answer] = {
    ("POST", "/api/entities/submit/{kind}"): entities.submitted,
    ("POST", "/api/entities/submitAndSchedule/{kind}"): entities.submitted_and_scheduled,
    ("POST", "/api/entities/validate/{kind}"): entities.validated,
    ("POST", "/api/entities/update/{kind}/{name}"): entities.updated,
    ("DELETE", "/api/entities/delete/{kind}/{name}"): entities.deleted,
    ("POST", "/api/entities/schedule/{kind}/{name}"): entities.status_set(changing.ScheduleEntities, "scheduled"),
    ("POST", "/api/entities/suspend/{kind}/{name}"): entities.status_set(changing.SuspendEntities, "suspended"),
    ("POST", "/api/entities/resume/{kind}/{name}"): entities.status_set(changing.ResumeEntities, "resumed"),
    ("POST", "/api/entities/touch/{kind}/{name}"): entities.touched,
    ("GET", "/api/entities/status/{kind}/{name}"): entities.status,
    ("GET", "/api/entities/definition/{kind}/{name}"): entities.definition,
    ("GET", "/api/entities/list"): entities.listed,
    ("GET", "/api/entities/list/{kind}"): entities.listed,
    ("GET", "/api/entities/dependencies/{kind}/{name}"): entities.dependencies,
    ("GET", "/api/entities/lookup/feed"): entities.looked_up,
    ("GET", "/api/entities/summary/{kind}/{cluster}"): entities.summarized,
    ("GET", "/api/entities/sla-alert/feed"): entities.sla_alerts,
    ("GET", "/api/instance/running/{kind}/{name}"): instances.found_by(questions.ListRunning, "Running Instances"),
    ("GET", "/api/instance/status/{kind}/{name}"): instances.found_by(questions.InstanceStatus, "STATUS"),
    ("GET", "/api/instance/list/{kind}/{name}"): instances.found_by(questions.ListInstances, "STATUS"),
    ("GET", "/api/instance/listing/feed/{name}"): instances.listing,
    ("GET", "/api/instance/search"): instances.search,
    ("GET", "/api/instance/summary/{kind}/{name}"): instances.summary,
    ("POST", "/api/instance/kill/{kind}/{name}"): instances.changed(stopping.KillInstances, "KILL", "KILLED"),
    ("POST", "/api/instance/suspend/{kind}/{name}"): instances.changed(
        stopping.SuspendInstances, "SUSPEND", "SUSPENDED"
    ),
    ("POST", "/api/instance/resume/{kind}/{name}"): instances.changed(stopping.ResumeInstances, "RESUME", "RUNNING"),
    ("POST", "/api/instance/rerun/{kind}/{name}"): instances.changed(rerunning.RerunInstances, "RERUN", "RUNNING"),
    ("GET", "/api/instance/logs/{kind}/{name}"): instances.logs,
    ("GET", "/api/instance/params/{kind}/{name}"): instances.params,
    ("GET", "/api/instance/dependencies/{kind}/{name}"): instances.dependencies,
    ("GET", "/api/instance/triage/{kind}/{name}"): instances.triage,
    ("GET", "/api/admin/version"): metadata.version,
    ("GET", "/api/metadata/discovery/{dimension}/list"): metadata.discovered,
    ("GET", "/api/metadata/discovery/{dimension}/{name}/relations"): metadata.related,
    ("GET", "/api/metadata/lineage/entities"): metadata.pipeline,
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
                raise DeniedError(f"{who.name} may not act for {query['doAs'][:SHOWN]!r}: leave doAs out")

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
