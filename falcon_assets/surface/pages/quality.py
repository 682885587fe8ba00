"""Quality: which feeds are checked, the verdicts about their instances, and their figures over time."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from falcon_assets.errors import QueryError
from falcon_assets.model.access import Role, may_read
from falcon_assets.surface.pages.visit import Visit, as_data

_LAST = 60
_WIDTH, _HEIGHT = 600.0, 80.0


def feeds(visit: Visit) -> Response:
    """The feeds with checks; of one that is asked for its last instances."""
    entities = visit.installation.entities
    checked = [one for one in entities.feeds.values() if (one.checks or one.profile) and may_read(one.acl, visit.who)]
    name, metric = visit.value("feed"), visit.value("metric", "records")
    history, missing = None, ""
    if name:
        try:
            asked = visit.asked("quality history", metric=metric, last=int(visit.value("last") or _LAST))
            history = visit.perform(asked)
        except (QueryError, ValueError) as error:
            missing = str(error)
    values = {"feeds": checked, "name": name, "metric": metric, "history": history, "missing": missing}
    return visit.page("quality.html", **values, line=_line(history) if history else "", size=(_WIDTH, _HEIGHT))


def _line(history: Any) -> str:
    """The points of a drawing of the values; "" where there are fewer than two."""
    known = [(at, one.value) for at, one in enumerate(history.values) if one.value is not None]
    if len(known) < 2:
        return ""
    low, high = min(value for _, value in known), max(value for _, value in known)
    across, up = _WIDTH / max(len(history.values) - 1, 1), (_HEIGHT - 4) / ((high - low) or 1)
    return " ".join(f"{at * across:.1f},{_HEIGHT - 2 - (value - low) * up:.1f}" for at, value in known)


def instance(visit: Visit) -> Response:
    found = visit.perform(visit.asked("quality show"))
    feed = visit.installation.entities.feed(found.feed)
    why_not = visit.why_not("accept instances of", [feed], Role.LAUNCHER)
    return visit.page("verdict.html", found=found, data=as_data(found), why_not=why_not)
