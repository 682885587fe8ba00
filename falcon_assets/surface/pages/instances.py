"""Instances: those of today, as a grid, as a list, and one with what can be done about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from markupsafe import Markup, escape
from starlette.responses import Response

from falcon_assets.errors import UnknownInstanceError, count_of
from falcon_assets.instances.operations.questions import InstanceList, ListInstances, ShowGrid
from falcon_assets.instances.views.grid import GRID_FIELDS, GridRow, InstanceGrid
from falcon_assets.instances.views.logs.reading import InstanceLogs
from falcon_assets.instances.views.query import InstanceInfo, InstancePage
from falcon_assets.model.access import Role
from falcon_assets.model.entity import Entity as AnyEntity
from falcon_assets.planning.instance_record import FeedState, InstanceState
from falcon_assets.planning.workloads import feed_of_workload
from falcon_assets.surface.pages.changes import COMMANDS
from falcon_assets.surface.pages.visit import PageVisit, as_data

_MOST_LINKS = 5_000
"""Runs of cells on a page that are links of their own; with more, the script makes them, and names lead to lists."""
_LABEL = 26
"""Cells that the time above them takes."""
_STEPS = ("minutes(5)", "minutes(15)", "hours(1)", "hours(6)", "days(1)", "days(7)")
_SHOWN = 20
_IN_VAIN = (InstanceState.FAILED, InstanceState.TIMED_OUT)
_OPEN = (InstanceState.RUNNING, InstanceState.READY, InstanceState.WAITING)
_ACTIONS = ("instance rerun", "instance kill", "instance suspend", "instance resume")


def today(visit: PageVisit) -> Response:
    """What needs somebody now, however old it is: what is late or about to be, what failed, what waits."""
    now = visit.installation.settings.now()

    def instances(*states: InstanceState) -> InstancePage:
        filters = tuple(("state", one.value) for one in states)
        found: InstancePage = visit.ask("instance list", filters=filters, sort="-instance", limit=_SHOWN)
        return found

    late = visit.ask("sla alerts", limit=_SHOWN) if visit.can("sla alerts") else None
    soon = visit.ask("sla pending", limit=_SHOWN) if visit.can("sla pending") else None
    values: dict[str, Any] = {"late": late, "soon": soon, "failed": instances(*_IN_VAIN), "now": now}
    waiting: dict[str, Any] = {"running": instances(_OPEN[0]), "waiting": instances(*_OPEN[1:])}
    return visit.page("part_today.html" if visit.is_part else "today.html", **values, **waiting)


def grid(visit: PageVisit) -> Response:
    asked = visit.asked("instance grid")
    assert isinstance(asked, ShowGrid)
    found: InstanceGrid = visit.perform(asked)
    rows = [(row, _cells(visit, asked.type, found, row)) for row in found.items]
    span = timedelta(seconds=found.steps * found.step_seconds)
    states = FeedState if asked.type == "feed" else InstanceState
    return visit.page(
        "part_grid.html" if visit.is_part else "grid.html",
        asked=asked,
        grid=found,
        rows=rows,
        hours=_hours(visit, found),
        fields=[one for one in GRID_FIELDS if one not in ("entity", "state")],
        values={name: next((own for known, own in asked.filters if known == name), "") for name in GRID_FIELDS},
        states=[one.value for one in states],
        steps=_STEPS,
        earlier=found.start - span,
        later=found.start + span,
        span=asked.step.length,
    )


def _cells(visit: PageVisit, kind: str, found: InstanceGrid, row: GridRow) -> Markup:
    """The runs of a row, as wide as they have steps; what is stored is escaped."""
    base = visit.link("instances/cell", type=kind, name=row.entity, cluster=row.cluster)
    are_links = sum(len(one.runs) for one in found.items) <= _MOST_LINKS
    runs = "".join(_runs(visit, found, row, base, are_links=are_links))
    return Markup(f'<td class="cells" data-link="{escape(base)}">{runs}</td>')  # noqa: S704 - what varies is escaped


def _runs(visit: PageVisit, found: InstanceGrid, row: GridRow, base: str, *, are_links: bool) -> Iterator[str]:
    at, base = 0, str(escape(base))
    for run in row.runs:
        if run.step > at:
            yield f"<span>{' ' * (run.step - at)}</span>"
        at = run.step + run.steps
        if not are_links:
            yield f'<i class="{run.state.value}">{" " * run.steps}</i>'
            continue
        first, last = found.at(run.step), found.at(at)
        times = f"from={_stamp(first)}&amp;to={_stamp(last)}"
        said = f"{run.state.value}: {count_of(run.instances, 'instance')} from {visit.instant(first)}"
        yield f'<a class="{run.state.value}" href="{base}&amp;{times}" title="{said}">{" " * run.steps}</a>'
    if at < found.steps:
        yield f"<span>{' ' * (found.steps - at)}</span>"


def _stamp(at: Any) -> str:
    return f"{at:%Y-%m-%dT%H:%M}Z" if at.year >= 1000 else at.isoformat(timespec="minutes")[:16] + "Z"


def _hours(visit: PageVisit, found: InstanceGrid) -> str:
    """The times above the cells, each where its step begins."""
    if found.steps < _LABEL:
        return visit.instant(found.at(0))
    return "".join(visit.instant(found.at(step)).ljust(_LABEL) for step in range(0, found.steps - _LABEL + 1, _LABEL))


def cell(visit: PageVisit) -> Response:
    """Goes to the instance of a cell, or to the list of those in it."""
    asked = visit.asked("instance grid")
    assert isinstance(asked, ShowGrid)
    begin, end = visit.value("from"), visit.value("to")
    listing: ListInstances = visit.asked("instance list", start=begin, end=end, limit=3)  # type: ignore[assignment]
    last = listing.end - timedelta(minutes=1) if listing.end else None
    listing = listing.model_copy(update={"end": last})
    found = visit.perform(listing).items
    if len(found) == 1:
        return visit.redirect(_place(visit, found[0], asked.type))
    about = {"type": asked.type, "name": asked.name, "cluster": asked.cluster, "start": listing.start, "end": last}
    return visit.redirect(visit.link("instances/list", **about))


def _place(visit: PageVisit, one: InstanceInfo, kind: str) -> str:
    about = {"name": one.entity, "cluster": one.cluster, "instance": one.instance}
    return visit.link("instance", **about, type=kind if kind == "feed" else None)


def listed(visit: PageVisit) -> Response:
    """Where no time and no filter is given, the newest first."""
    asked = visit.asked("instance list")
    assert isinstance(asked, ListInstances)
    if not visit.value("sort"):
        asked = asked.model_copy(update={"sort": "-instance"})
    found = visit.perform(asked)
    states = FeedState if asked.type == "feed" else InstanceState
    values = {name: next((own for known, own in asked.filters if known == name), "") for name in InstanceList.fields}
    return visit.page("instances.html", asked=asked, found=found, values=values, states=[one.value for one in states])


def _about(visit: PageVisit) -> dict[str, Any]:
    cluster, instance = visit.value("cluster") or None, visit.value("instance")
    return {"name": visit.value("name"), "instance": instance, "cluster": cluster}


def one(visit: PageVisit) -> Response:
    """An instance: its state and reason, and what the user may do; why and what it said is loaded after it."""
    about, kind = _about(visit), visit.value("type", "process")
    given = [(name, str(value)) for name, value in about.items() if name != "instance" and value]
    query = replace(visit, query=[*given, ("start", about["instance"]), ("type", kind)], form=[])
    items = visit.perform(query.asked("instance status")).items
    if not items:
        raise UnknownInstanceError(f"{about['name']} has no instance {about['instance']}")
    if len(items) > 1:
        where = {"name": about["name"], "start": about["instance"], "type": kind, "end": about["instance"]}
        return visit.redirect(visit.link("instances/list", **where))
    (info,) = items
    entity = _declared(visit, info, kind)
    commands = [] if kind == "feed" else [*_ACTIONS, *(["instance resend"] if info.kind == "export" else [])]
    actions = [
        (command, COMMANDS[command], visit.why_not(f"{command.split()[1]} instances of", [entity], Role.LAUNCHER))
        for command in commands
        if visit.can(command)
    ]
    return visit.page(
        "instance.html", info=info, entity=entity, type=kind, about=about, actions=actions, data=as_data(info)
    )


def _declared(visit: PageVisit, info: InstanceInfo, kind: str) -> AnyEntity:
    """The entity of an instance."""
    if visit.prism:
        own = "process" if kind != "feed" and info.kind == "process" else "feed"
        return visit.entity(own, feed_of_workload(info.entity)).declared
    workload = None if kind == "feed" else visit.installation.entities.workload(info.entity, info.cluster)
    return workload.entity if workload else visit.installation.entities.feed(info.entity)


def triage(visit: PageVisit) -> Response:
    """Why it is missing, as a tree."""
    kind = "feed" if "feed" in (visit.value("type"), visit.value("kind")) else None
    link = [(name, str(value)) for name, value in _about(visit).items() if value]
    query = replace(visit, query=[*link, *([("kind", kind)] if kind else [])], form=[])
    found = as_data(visit.perform(query.asked("instance triage")))
    return visit.page("part_triage.html" if visit.is_part else "triage.html", found=found)


def data(visit: PageVisit) -> Response:
    """What it reads and writes, and with which parameters."""
    asked = visit.asked("instance dependency")
    found = visit.perform(asked)
    return visit.page("part_data.html" if visit.is_part else "data.html", found=found, asked=asked)


def logs(visit: PageVisit) -> Response:
    """The end of what its run, Spark and the program said."""
    found: InstanceLogs = visit.perform(visit.asked("instance logs"))
    events, is_cut = found.last_events()
    parts: list[Mapping[str, Any]] = []
    for log in found.logs:
        lines, log_is_cut = log.tail()
        parts.append(
            {"source": log.source, "place": log.place, "shared": log.shared, "lines": lines, "is_cut": log_is_cut}
        )
    values: dict[str, Any] = {"events": events, "is_cut": is_cut, "logs": parts, "run": found.run, "runs": found.runs}
    return visit.page("part_logs.html" if visit.is_part else "logs.html", info=found.instance, **values)
