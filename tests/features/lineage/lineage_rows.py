"""Versions and edges, written into the ledger as tests want them."""

from __future__ import annotations

import json
from typing import Any

from falcon_assets.history.database import upsert
from falcon_assets.history.folding.version_rows import Plans, plan_of, store_plans
from falcon_assets.history.tables import DATA_VERSIONS, VERSION_EDGES
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns

T = parse_instant("2013-01-01T00:00Z")


def version_row(number: int, feed: str, version: str, status: str = "AVAILABLE", **more: Any) -> dict[str, Any]:
    """The version of the first hour of 2013, seen in the order of the numbers."""
    key = {"cluster": "primary", "feed": feed, "instance": T, "version": version}
    told = {"id": number, "event_id": number, "status": status, "seen_at": T.replace(minute=number), "late": False}
    return {**{column.name: None for column in DATA_VERSIONS.c}, **key, **told, **more}


def made_row(
    number: int, feed: str, version: str, process: str, status: str = "AVAILABLE", **more: Any
) -> dict[str, Any]:
    """A version that a run made."""
    made = {"process": process, "nominal": T, "run_id": f"{number:08}-run", "attempt": 1, "definition": 1}
    return version_row(number, feed, version, status, **{**made, **more})


def write_versions(installation: Installation, rows: list[dict[str, Any]], edges: dict[tuple[int, int], str]) -> None:
    """Writes versions, and which was made from which by which process."""
    told = {"run_id": "run", "definition": 1, "declared": True}
    with installation.ledger.engine.begin() as connection:
        store_plans(connection, PLANS)
        upsert(connection, DATA_VERSIONS, rows)
        upsert(
            connection,
            VERSION_EDGES,
            [{"output": key[0], "input": key[1], "process": process, **told} for key, process in edges.items()],
        )


PLANS: Plans = {}
PLAN = plan_of(
    OutputColumns(
        (
            OutputColumn("total", "bigint", (("raw", "a"), ("raw", "b"))),
            OutputColumn("one", "int"),
            OutputColumn("guess", "string", (("raw", "a"),), is_opaque=True),
        ),
        (("raw", "day"),),
    ),
    PLANS,
)
FOREIGN = "s3://else/ü </script>"
"""Where the first sums were made from what is of no feed."""
ROWS = [
    version_row(1, "raw", "a1", "REPLACED", ended_at=T.replace(minute=30)),
    version_row(2, "raw", "a2", bytes=9, path="/raw"),
    made_row(3, "clean", "b1", "cleanse", "REPLACED"),
    made_row(4, "clean", "b2", "cleanse", late=True, definition=2, run_id="0123456789", plan=PLAN),
    made_row(5, "sums", "c1", "add-up", "EVICTED", archived_to="/archive", places=json.dumps([FOREIGN])),
    made_row(6, "sums", "c2", "add-up"),
]
EDGES = {(3, 1): "cleanse", (4, 2): "cleanse", (5, 3): "add-up", (6, 4): "add-up", (6, 2): "add-up"}
