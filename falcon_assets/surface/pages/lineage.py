"""Lineage: the graph of versions, which is a page by itself, in a frame."""

from __future__ import annotations

import re
from typing import Any

from starlette.responses import HTMLResponse, Response

from falcon_assets.surface.pages.visit import Visit

_POLICY = re.compile(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"')
_FIELDS = ("feed", "instance", "cluster", "version", "direction", "depth")


def page(visit: Visit) -> Response:
    values = {name: visit.value(name) for name in _FIELDS}
    found: Any = None
    if values["feed"] and values["instance"]:
        found = visit.perform(visit.asked("lineage show"))
    feeds = sorted(visit.installation.entities.feeds)
    return visit.page("lineage.html", values=values, found=found, feeds=feeds, query=visit.query)


def graph(visit: Visit) -> Response:
    """The page that ``falcon lineage show --html`` writes: it allows its own script by its hash, and nothing else."""
    from falcon_assets.features.lineage.page import page_of  # noqa: PLC0415 - the feature may be left out

    asked = visit.asked("lineage show")
    text = page_of(visit.perform(asked))
    policy = _POLICY.search(text)
    allowed = policy[1] if policy else "default-src 'none'"
    return HTMLResponse(text, headers={"Content-Security-Policy": f"{allowed}; frame-ancestors 'self'"})
