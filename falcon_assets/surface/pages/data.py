"""Pages about data: the quality of instances, with figures over time, and their lineage."""

from __future__ import annotations

import re
from typing import Any

from starlette.responses import HTMLResponse, Response

from falcon_assets.errors import QueryError
from falcon_assets.model.access import Role, may_read
from falcon_assets.surface.pages.visit import PageVisit, as_data

_POLICY = re.compile(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"')
_FIELDS = ("feed", "instance", "cluster", "version", "direction", "depth")
_LAST = 60
_WIDTH, _HEIGHT = 600.0, 80.0


def feeds(visit: PageVisit) -> Response:
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
    values: dict[str, Any] = {"feeds": checked, "name": name, "metric": metric, "history": history, "missing": missing}
    return visit.page("quality.html", **values, line=_line(history) if history else "", size=(_WIDTH, _HEIGHT))


def _line(history: Any) -> str:
    """The points of a drawing of the values; "" where there are fewer than two."""
    known = [(at, one.value) for at, one in enumerate(history.values) if one.value is not None]
    if len(known) < 2:
        return ""
    low, high = min(value for _, value in known), max(value for _, value in known)
    across, up = _WIDTH / max(len(history.values) - 1, 1), (_HEIGHT - 4) / ((high - low) or 1)
    return " ".join(f"{at * across:.1f},{_HEIGHT - 2 - (value - low) * up:.1f}" for at, value in known)


def instance(visit: PageVisit) -> Response:
    found = visit.perform(visit.asked("quality show"))
    feed = visit.installation.entities.feed(found.feed)
    why_not = visit.why_not("accept instances of", [feed], Role.LAUNCHER)
    return visit.page("verdict.html", found=found, data=as_data(found), why_not=why_not)


def lineage(visit: PageVisit) -> Response:
    values = {name: visit.value(name) for name in _FIELDS}
    found: Any = None
    if values["feed"] and values["instance"]:
        found = visit.perform(visit.asked("lineage show"))
    feeds = sorted(visit.installation.entities.feeds)
    return visit.page("lineage.html", values=values, found=found, feeds=feeds, query=visit.query)


def graph(visit: PageVisit) -> Response:
    """The page that ``falcon lineage show --html`` writes: it allows its own script by its hash, and nothing else."""
    from falcon_assets.features.lineage.page import page_of  # noqa: PLC0415 - the feature may be left out

    asked = visit.asked("lineage show")
    text = page_of(visit.perform(asked))
    policy = _POLICY.search(text)
    allowed = policy[1] if policy else "default-src 'none'"
    return HTMLResponse(text, headers={"Content-Security-Policy": f"{allowed}; frame-ancestors 'self'"})
