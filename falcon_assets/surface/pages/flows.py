"""Flows: their status per destination; and templates, with a form for their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from falcon_assets.errors import FalconError, InvalidDefinitionsError, QueryError
from falcon_assets.model.access import Role
from falcon_assets.surface.pages.changes import COMMANDS
from falcon_assets.surface.pages.visit import PageVisit

_PAGE = 100
_PARAMETER = "parameter."
_ACTIONS = ("flow run", "flow kill")
_INPUTS: Mapping[str, str] = {"integer": "number", "number": "number"}


def listed(visit: PageVisit) -> Response:
    asked = visit.asked("flow list")
    found = visit.perform(asked.model_copy(update={"limit": visit.value("limit") or _PAGE}))
    return visit.page("flows.html", found=found)


def one(visit: PageVisit) -> Response:
    """Its newest instance that is due, or the one that is asked for, job by job."""
    name, instance = visit.value("name"), visit.value("instance") or None
    status = visit.ask("flow status", name=name, instance=instance)
    shown = visit.ask("flow show", name=name)
    explained = visit.ask("flow explain", name=name)
    flow = visit.entity("flow", name).declared if visit.prism else visit.installation.all_entities.flow(name)
    actions = [
        (command, COMMANDS[command], visit.why_not(command.split()[1], [flow], Role.LAUNCHER)) for command in _ACTIONS
    ]
    why_not = visit.why_not("update", [flow], Role.EDITOR)
    values = {"status": status, "shown": shown, "explained": explained, "actions": actions, "why_not": why_not}
    return visit.page("flow.html", name=name, **values)


def templates(visit: PageVisit) -> Response:
    return visit.page("templates.html", found=visit.perform(visit.asked("template list")))


def template(visit: PageVisit) -> Response:
    return _form(visit, {})


def _form(visit: PageVisit, given: Mapping[str, str], *, status: int = 200, **answer: Any) -> Response:
    """The fields are those of the JSON Schema of the template's parameters."""
    found = visit.ask("template show", template=visit.value("template"))
    properties = found.schema.get("properties", {})
    fields = [
        {
            "name": one.name,
            "id": f"{_PARAMETER}{one.name}",
            "description": one.description,
            "required": one.required,
            "type": one.type,
            "input": _INPUTS.get(one.type, "text"),
            "values": _values(properties.get(one.name, {})),
            "pattern": properties.get(one.name, {}).get("pattern"),
            "value": given.get(one.name, _said(one.default)),
        }
        for one in found.parameters
    ]
    answer = {"result": None, "problems": (), "error": "", **answer}
    why_not = visit.why_not("submit", [], Role.EDITOR)
    page = "part_check.html" if visit.is_part else "template.html"
    return visit.page(page, http_status=status, found=found, fields=fields, why_not=why_not, **answer)


def _values(schema: Mapping[str, Any]) -> list[str]:
    if schema.get("type") == "boolean":
        return ["true", "false"]
    constant = [schema["const"]] if "const" in schema else []
    return [str(one) for one in schema.get("enum", constant)]


def _said(default: Any) -> str:
    if isinstance(default, list | tuple):
        return ",".join(map(str, default))
    return "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def check_template(visit: PageVisit) -> Response:
    """What the template would make of these parameters, or what is wrong with them; nothing changes."""
    return _answer(visit, dry_run=True)


def save_template(visit: PageVisit) -> Response:
    return _answer(visit, dry_run=False)


def _answer(visit: PageVisit, *, dry_run: bool) -> Response:
    given = {name.removeprefix(_PARAMETER): value for name, value in visit.form if name.startswith(_PARAMETER)}
    said = {name: value for name, value in given.items() if value}
    about = {"template": visit.value("template"), "parameters": said, "reason": visit.value("reason")}
    is_part = 200 if visit.is_part else 422
    try:
        result = visit.ask("template submit", **about, dry_run=dry_run)
    except InvalidDefinitionsError as error:
        return _form(visit, given, status=is_part, problems=error.problems)
    except FalconError as error:
        return _form(visit, given, status=is_part, error=str(error))
    if dry_run or visit.is_part:
        return _form(visit, given, result=result)
    made = result.entities[0] if result.entities else None
    if made is None:
        raise QueryError("the template made nothing")
    return visit.redirect(visit.link("flow" if made.kind == "flow" else "entity", name=made.name, kind=made.kind))
