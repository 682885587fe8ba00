"""Entities: a list, one with its definition and versions, and a form that checks what is typed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from starlette.responses import Response

from falcon_assets.catalog.yaml_files.yaml_text import as_document
from falcon_assets.errors import FalconError, InvalidDefinitionsError, UnknownEntityError
from falcon_assets.features.entities.given import stored_definition
from falcon_assets.features.entities.listing import Entity
from falcon_assets.features.entities.questions import ListEntities
from falcon_assets.model.access import Role
from falcon_assets.operations.request_origin import requests_from
from falcon_assets.surface.pages.changes import COMMANDS
from falcon_assets.surface.pages.visit import PageVisit, as_data

_PAGE = 100
_FILTERS = ("kind", "status", "cluster", "pipeline", "tag", "owner")
_ACTIONS = ("entity schedule", "entity suspend", "entity resume")
_NEW = """\
kind: feed
name: new-feed
frequency: hours(1)
locations: {data: "/new-feed/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
clusters:
  - {name: primary, validity: {start: 2013-01-01T00:00Z, end: 2099-01-01T00:00Z}}
"""


def listed(visit: PageVisit) -> Response:
    asked = visit.asked("entity list")
    assert isinstance(asked, ListEntities)
    found = visit.perform(asked.model_copy(update={"limit": asked.limit or _PAGE}))
    values = {name: visit.value(name) for name in (*_FILTERS, "name", "text")}
    return visit.page(
        "part_entities.html" if visit.is_part else "entities.html", found=found, values=values, asked=asked
    )


def one(visit: PageVisit) -> Response:
    """The definition is shown as it is written; the history of a deleted entity can be read, too."""
    asked = visit.asked("entity show")
    name, kind = visit.value("name"), visit.value("kind") or None
    history = _history(visit, name, kind)
    try:
        entity = visit.perform(asked)
    except UnknownEntityError:
        if history is None:
            raise
        return visit.page("entity_deleted.html", history=history, name=name)
    text = _text(visit, entity.name, entity.kind, entity)
    is_scheduled = entity.kind in ("feed", "process")
    actions = [
        (command, COMMANDS[command], visit.why_not(command.split()[1], [entity.declared], Role.EDITOR))
        for command in (_ACTIONS if is_scheduled else ())
    ]
    why_not = visit.why_not("update", [entity.declared], Role.EDITOR)
    about = {"name": entity.name, "kind": entity.kind}
    return visit.page(
        "entity.html",
        entity=entity,
        text=text,
        history=history,
        actions=actions,
        why_not=why_not,
        is_scheduled=is_scheduled,
        dependencies=as_data(visit.ask("entity dependency", **about)),
    )


def _text(visit: PageVisit, name: str, kind: str, known: Entity | None = None) -> str:
    """As it is written; of a colo what it says."""
    if visit.prism:
        return as_document((known or visit.entity(kind, name)).definition)
    with requests_from("page", principal=visit.who):
        return stored_definition(visit.installation, name, kind)


def _history(visit: PageVisit, name: str, kind: str | None) -> Any:
    try:
        return visit.ask("entity history", name=name, kind=kind)
    except UnknownEntityError:
        return None


def diff(visit: PageVisit) -> Response:
    found = visit.perform(visit.asked("entity diff"))
    why_not = ""
    if visit.prism:
        with suppress(UnknownEntityError):
            declared = visit.entity(found.kind, found.name).declared
            why_not = visit.why_not("update", [declared], Role.EDITOR)
    elif found.kind in visit.installation.entities.by_kind:
        those = visit.installation.entities.by_kind[found.kind]
        why_not = visit.why_not("update", [those[found.name]], Role.EDITOR) if found.name in those else ""
    return visit.page("diff.html", found=found, why_not=why_not)


def edit(visit: PageVisit) -> Response:
    """A form with the definition of an entity, or with that of a new one."""
    name, kind = visit.value("name"), visit.value("kind")
    text = _text(visit, name, kind) if name else _NEW
    return _form(visit, text, is_new=not name)


def _form(visit: PageVisit, text: str, *, is_new: bool, status: int = 200, **answer: Any) -> Response:
    answer = {"result": None, "is_done": False, "problems": (), "error": "", **answer}
    why_not = visit.why_not("submit", [], Role.EDITOR) if is_new else ""
    values = {
        "text": text,
        "is_new": is_new,
        "why_not": why_not,
        "name": visit.value("name"),
        "kind": visit.value("kind"),
    }
    return visit.page("part_check.html" if visit.is_part else "edit.html", http_status=status, **values, **answer)


def check(visit: PageVisit) -> Response:
    """What would change, or what is wrong and in which line; nothing changes."""
    return _answer(visit, dry_run=True)


def save(visit: PageVisit) -> Response:
    return _answer(visit, dry_run=False)


def _answer(visit: PageVisit, *, dry_run: bool) -> Response:
    text, is_new = visit.value("definitions"), not visit.value("name")
    noun = "flow" if visit.value("kind") == "flow" or text.lstrip().startswith("kind: flow") else "entity"
    command = f"{noun} submit" if is_new else f"{noun} update"
    reason = visit.value("reason")
    try:
        result = visit.ask(command, definitions=text, reason=reason, dry_run=dry_run)
    except InvalidDefinitionsError as error:
        return _form(visit, text, is_new=is_new, status=_status(visit), problems=error.problems)
    except FalconError as error:
        return _form(visit, text, is_new=is_new, status=_status(visit), error=str(error))
    if dry_run or visit.is_part or result.partial:
        return _form(visit, text, is_new=is_new, result=result, is_done=not dry_run)
    changed = result.entities[0] if result.entities else None
    page = "flow" if changed and changed.kind == "flow" else "entity"
    about = {"name": changed.name, "kind": changed.kind} if changed else {}
    return visit.redirect(visit.link(page if changed else "entities", **about))


def _status(visit: PageVisit) -> int:
    """A part of a page that says what is wrong is an answer; a page that was to save is none."""
    return 200 if visit.is_part else 422
