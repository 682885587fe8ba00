"""What needs somebody now: what is late or about to be, what failed, what waits."""

from __future__ import annotations

from datetime import timedelta

from starlette.responses import Response

from falcon_assets.instances.views.query import InstancePage
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.surface.pages.visit import Visit

_SHOWN = 20
_HOURS = 24
_IN_VAIN = (InstanceState.FAILED, InstanceState.TIMED_OUT)
_OPEN = (InstanceState.RUNNING, InstanceState.READY, InstanceState.WAITING)


def today(visit: Visit) -> Response:
    now = visit.installation.settings.now()
    since = now - timedelta(hours=_HOURS)

    def instances(*states: InstanceState) -> InstancePage:
        filters = tuple(("state", one.value) for one in states)
        found: InstancePage = visit.ask(
            "instance list", start=since, end=now, filters=filters, sort="-instance", limit=_SHOWN
        )
        return found

    late = visit.ask("sla alerts", limit=_SHOWN) if visit.can("sla alerts") else None
    soon = visit.ask("sla pending", limit=_SHOWN) if visit.can("sla pending") else None
    values = {"late": late, "soon": soon, "failed": instances(*_IN_VAIN), "now": now, "since": since}
    waiting = {"running": instances(_OPEN[0]), "waiting": instances(*_OPEN[1:])}
    return visit.page("part_today.html" if visit.is_part else "today.html", **values, **waiting)
