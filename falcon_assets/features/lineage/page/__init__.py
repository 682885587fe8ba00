"""A graph of versions as one HTML page: no server, no network, nothing beside it."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from falcon_assets.errors import UsageError, printable
from falcon_assets.features.lineage.asking import Lineage
from falcon_assets.features.lineage.datasets import DatasetEdge
from falcon_assets.features.lineage.places import WITH, PlaceEdge

LARGEST = 5000
"""The largest number of versions on a page: browsers become slow with more, and the page unreadable."""
_SCRIPT = [f"script/{one}.js" for one in ["data", "layout", "groups", "drawing", "view", "columns", "details", "start"]]
"""Each part uses those before it."""
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src {style_hash}; script-src {script_hash}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<input id="filter" type="search" placeholder="Filter: words of names, versions, runs ..." aria-label="Filter">
<select id="status" aria-label="Status"><option value="">every status</option></select>
<output id="count"></output>
<button id="smaller" title="Smaller">&minus;</button>
<button id="larger" title="Larger">+</button>
<button id="fit" title="The whole graph">Fit</button>
<button id="close" title="One box for each feed">By feed</button>
<button id="open" title="Every version">Open all</button>
</header>
<main>
<svg id="graph" role="img" aria-label="{title}"></svg>
<aside id="details" aria-live="polite"></aside>
</main>
<script id="data" type="application/json">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def page_of(found: Lineage) -> str:
    """Returns the page in ASCII; names, paths and versions in it are text and never a script.

    Raises:
        UsageError: the graph has more than :data:`LARGEST` versions.
    """
    graph, more = found.graph, found.other_nodes
    if (count := len(graph.versions) + len(more)) > LARGEST:
        raise UsageError(
            f"{count:,} {'nodes' if more else 'versions'} are too many for a page, which shows {LARGEST:,}: "
            "ask for fewer (show has --depth), or take --json or --dot"
        )
    nodes = [{**one.as_data(), "plan": one.plan} for one in graph.versions.values()] + more
    order, ids = {number: at for at, number in enumerate(graph.versions)}, [one["id"] for one in nodes]
    nodes[order[found.version.number]].update({**found.lifecycle.as_data(), "code": found.code and found.code.code})
    edges: list[tuple[Any, ...]] = [
        (order[one.input], order[one.output], one.process, one.run, one.definition, one.declared) for one in graph.edges
    ]
    at = {one: place for place, one in enumerate(ids)}
    edges += [
        (at[one.source], at[one.target], WITH)
        if one.is_relation
        else (at[one.source], at[one.target], one.process, one.run, *_how(one))
        for one in found.outside
    ]
    edges += [(at[one.source], at[one.target.id], one.label) for one in found.metadata]
    data = {
        "nodes": nodes,
        "edges": edges,
        "plans": {plan: one.as_data() for plan, one in found.columns.items()},
        "chosen": order[found.version.number],
        "column": found.column,
        "hidden": found.hidden,
    }
    style, *parts = (files(__name__).joinpath(name).read_text("utf-8") for name in ("page.css", *_SCRIPT))
    script = "\n".join(['\n"use strict";\n(() => {', *parts, "})();\n"])
    return _PAGE.format_map(
        {
            "title": _ascii(escape(f"Lineage of {printable(found.version.id)}")),
            "data": _in_script(data),
            "style": style,
            "style_hash": _allowed(style),
            "script": script,
            "script_hash": _allowed(script),
        }
    )


def _how(edge: PlaceEdge | DatasetEdge) -> tuple[int | None, bool]:
    """Its definition, and whether it is declared."""
    return (edge.definition, False) if isinstance(edge, PlaceEdge) else (None, True)


def _in_script(data: Mapping[str, Any]) -> str:
    """Escapes JSON such that it cannot end its element."""
    return json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")


def _allowed(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _ascii(text: str) -> str:
    return text.encode("ascii", "xmlcharrefreplace").decode()
