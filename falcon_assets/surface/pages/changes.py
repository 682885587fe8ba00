"""Changes of instances, entities and verdicts: first the plan, then the person confirms it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from falcon_assets.errors import QueryError
from falcon_assets.operations.operation import data_of
from falcon_assets.surface.pages.visit import PageVisit

COMMANDS: Mapping[str, str] = {
    "instance rerun": "Rerun",
    "instance kill": "Kill",
    "instance suspend": "Suspend",
    "instance resume": "Resume",
    "instance resend": "Send again",
    "entity schedule": "Schedule",
    "entity suspend": "Suspend",
    "entity resume": "Resume",
    "entity touch": "Touch",
    "entity delete": "Delete",
    "entity restore": "Restore",
    "flow run": "Run",
    "flow kill": "Kill",
    "flow delete": "Delete",
    "quality accept": "Accept",
}
"""What can be asked for here; others have pages of their own, or none."""
_OWN = ("command", "dry_run", "reason", "actor")
_NEED_A_REASON = ("quality accept",)


def plan(visit: PageVisit) -> Response:
    """What would change; nothing does."""
    command = _command(visit)
    reason = visit.value("reason") or ("(not said yet)" if command in _NEED_A_REASON else "")
    result = visit.perform(visit.asked(command, dry_run=True, reason=reason))
    return _shown(visit, command, result, is_done=False)


def confirmed(visit: PageVisit) -> Response:
    command = _command(visit)
    result = visit.perform(visit.asked(command, reason=visit.value("reason")))
    return _shown(visit, command, result, is_done=True)


def _command(visit: PageVisit) -> str:
    if (command := visit.value("command")) not in COMMANDS or not visit.can(command):
        raise QueryError(f"{command[:100]!r} is nothing that can be asked for here")
    return command


def _shown(visit: PageVisit, command: str, result: Any, *, is_done: bool) -> Response:
    fields = [(name, value) for name, value in visit.form or visit.query if name not in _OWN and value]
    data = data_of(result)
    items = [one for one in data.get("items", ()) if one.get("changed")] if "items" in data else None
    return visit.page(
        "change.html",
        command=command,
        label=COMMANDS[command],
        fields=fields,
        items=items,
        left=len(data.get("items", ())) - len(items or ()),
        diff=data.get("diff", ""),
        notes=[*data.get("notes", ()), *data.get("warnings", ()), *filter(None, [data.get("reload", "")])],
        statuses=data.get("statuses", ()),
        entities=data.get("entities", ()),
        colos=data.get("colos", ()),
        has_effect=bool(data.get("changed", True)),
        other=None if "changed" in data else json.dumps(data, indent=2, ensure_ascii=False),
        needs_reason=command in _NEED_A_REASON,
        is_done=is_done,
        back=_back(visit, command),
    )


def _back(visit: PageVisit, command: str) -> str:
    noun, value = command.partition(" ")[0], visit.value
    if noun == "instance" and value("start") and not value("end"):
        about = {"name": value("name"), "cluster": value("cluster"), "instance": value("start")}
        return visit.link("instance", **about)
    if noun == "instance":
        return visit.link("instances/list", name=value("name"))
    if noun == "quality":
        about = {"feed": value("feed"), "cluster": value("cluster"), "instance": value("instance")}
        return visit.link("quality/instance", **about)
    if command.endswith(" delete"):
        return visit.link("entities")
    return visit.link("flow" if noun == "flow" else "entity", name=value("name") or value("names"), kind=value("kind"))
