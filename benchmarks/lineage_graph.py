"""Questions about a large graph: ``python -m benchmarks.lineage_graph`` prints their seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

import networkx
from sqlalchemy import Connection, Engine, func, select, text

from benchmarks.lineage import FEEDS, FOLDED, HOURS, LAYERS
from falcon_assets.features.lineage.asking import Lineage, lineage_impact, show_lineage
from falcon_assets.features.lineage.lifecycle_operations import expire_lineage, prune_plan
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.folding.fold import fold
from falcon_assets.history.tables import DATA_VERSIONS, FOLD, VERSION_EDGES
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.audit import PlainRequest
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.planning.instance_record import InstanceState

FIRST, HOUR = parse_instant("2013-01-01T00:00Z"), timedelta(hours=1)
_VERSIONS = """
INSERT INTO falcon.data_versions (id, event_id, cluster, feed, instance, version, status, seen_at, process, late)
SELECT number, number, 'primary', 'feed-' || layer || '-' || feed,
       CAST(:first AS timestamptz) + hour * interval '1 hour', md5(number::text), 'AVAILABLE', :first, 'p', false
FROM generate_series(0, :layers - 1) layer, generate_series(0, :feeds - 1) feed, generate_series(0, :hours - 1) hour,
     LATERAL (SELECT (layer * :feeds + feed) * :hours + hour + 1 AS number) numbered
"""
_EDGES = """
INSERT INTO falcon.version_edges (output, input, process, run_id, definition, declared)
SELECT (layer * :feeds + feed) * :hours + hour + 1,
       ((layer - 1) * :feeds + (feed + beside) % :feeds) * :hours + greatest(hour - before, 0) + 1,
       'process-' || layer, md5(hour::text), 1, true
FROM generate_series(1, :layers - 1) layer, generate_series(0, :feeds - 1) feed, generate_series(0, :hours - 1) hour,
     generate_series(0, 1) beside, generate_series(0, 1) before
ON CONFLICT DO NOTHING
"""
_GONE = "UPDATE falcon.data_versions SET status = 'EVICTED', ended_at = seen_at WHERE id % 2 = 0"


def main() -> None:
    """Fills the tables, asks from a version in the middle of the hours, and folds some history."""
    with open_installation() as installation:
        engine = installation.ledger.engine
        with engine.begin() as connection:
            size = {"layers": LAYERS, "feeds": FEEDS, "hours": HOURS, "first": FIRST}
            for statement in (_VERSIONS, _EDGES):
                connection.execute(text(statement), size)
        found = {**_asked(installation), **_planned(installation), "fold": _fold(engine)}
    print(json.dumps(found))


def _asked(installation: Installation) -> dict[str, float]:
    middle = FIRST + HOURS // 2 * HOUR
    last, first = (VersionQuery(f"feed-{layer}-0", middle) for layer in (LAYERS - 1, 0))
    show_lineage(installation, first)  # opens the database, as both sides have it open then
    questions: dict[str, Callable[[], Lineage]] = {
        "up": lambda: show_lineage(installation, last),
        "down": lambda: lineage_impact(installation, first),
    }
    found: dict[str, float] = {}
    for name, ask in questions.items():
        started = time.perf_counter()
        answer = ask()
        found |= {name: time.perf_counter() - started, f"{name} versions": len(answer.graph.versions)}
        with installation.ledger.engine.connect() as connection:
            started = time.perf_counter()
            others = _by_networkx(connection, answer.version.number, up=name == "up")
            found[f"networkx {name}"] = time.perf_counter() - started
            found["edges"] = connection.execute(select(func.count()).select_from(VERSION_EDGES)).scalar_one()
        assert others | {answer.version.number} == answer.graph.versions.keys()
    return found


def _planned(installation: Installation) -> dict[str, float]:
    """Seconds for what can go, and for what the graph may forget where every other version went long ago."""
    last = VersionQuery(f"feed-{LAYERS - 1}-0", FIRST + HOURS // 2 * HOUR)
    started = time.perf_counter()
    prune_plan(installation, [last])
    found = {"prune": time.perf_counter() - started}
    with installation.ledger.engine.begin() as connection:
        connection.execute(text(_GONE))
    started = time.perf_counter()
    expire_lineage(installation, PlainRequest(dry_run=True))
    return {**found, "expire": time.perf_counter() - started}


def _by_networkx(connection: Connection, number: int, *, up: bool) -> set[int]:
    graph = networkx.DiGraph()
    columns = (VERSION_EDGES.c.input, VERSION_EDGES.c.output)
    graph.add_edges_from(tuple(row) for row in connection.execute(select(*columns)))
    found: set[int] = (networkx.ancestors if up else networkx.descendants)(graph, number)
    return found


def _fold(engine: Engine) -> float:
    """Seconds for instances that start, publish and succeed, each made from its hour and the one before."""
    with engine.connect() as connection:
        after = connection.execute(select(func.max(FOLD.c.event_id))).scalar() or 0
    facts: list[list[Logged]] = []
    for number in range(FOLDED):
        hour, run = FIRST + number * HOUR, f"run-{number // 24:032}"
        read = {"rows": tuple(Consumption("raw", hour - back * HOUR, f"{number - back:032}") for back in range(2))}
        told = {"process": "p", "nominal": hour, "inputs": read, "definition": 1}
        made = FeedInstanceAvailable("primary", "made", hour, f"{number:032}", hour, **told)  # type: ignore[arg-type]
        states = [
            InstanceChanged("p", "primary", hour, state, hour, inputs=inputs, definition=1)
            for state, inputs in ((InstanceState.RUNNING, None), (InstanceState.SUCCEEDED, read))
        ]
        event = after + 2 * number + 1
        facts += [[Logged(event, states[0], run)], [Logged(event + 1, made, run), Logged(event + 1, states[1], run)]]

    def history(_: Connection, place: int, limit: int) -> tuple[Sequence[Logged], int | None]:
        chunk = facts[place - after : place - after + limit]
        return [fact for event in chunk for fact in event], chunk[-1][0].event_id if chunk else None

    started = time.perf_counter()
    fold(engine, history)
    seconds = time.perf_counter() - started
    with engine.connect() as connection:
        own = select(func.count()).select_from(DATA_VERSIONS).where(DATA_VERSIONS.c.feed == "made")
        assert connection.execute(own).scalar_one() == FOLDED
    return seconds


if __name__ == "__main__":
    main()
