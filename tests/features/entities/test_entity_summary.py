"""Feeds and processes with their latest instances."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from falcon_assets.errors import QueryError, UnknownEntityError
from falcon_assets.features.entities.summary import summarize_entities
from falcon_assets.instances.views.listing import list_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.paging import Query
from falcon_assets.planning.instance_record import InstanceState
from tests.operations.rows import NOW, feed_row, process_row, write

SPAN = "validity: {start: 2013-04-01T00:00Z, end: 2014-01-01T00:00Z}"
CLUSTERS = "".join(
    f"""
kind: cluster
name: {name}
interfaces: {{write: {{endpoint: data/{name}}}, execute: {{endpoint: "local[1]"}}}}
---"""
    for name in ("primary", "backup")
)


def entities(number: int) -> str:
    """So many feeds and processes, some on two clusters, of several frequencies; and one feed that is not born yet."""
    found = [CLUSTERS]
    for n in range(number):
        frequency = ("hours(1)", "minutes(45)", "days(1)")[n % 3]
        places = f"[{{name: primary, {SPAN}}}" + f", {{name: backup, {SPAN}}}" * (n % 2) + "]"
        found.append(f"""
kind: feed
name: feed{n}
frequency: {frequency}
locations: {{data: "/feed{n}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}-${{MINUTE}}"}}
clusters: {places}
---
kind: process
name: process{n}
pipelines: [pipe{n % 2}]
frequency: {frequency}
clusters: {places}
inputs: [{{name: rows, feed: feed{n}, start: "now(0,0)", end: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
---""")
    found.append("""
kind: feed
name: unborn
frequency: hours(1)
locations: {data: "/unborn/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-05-01T00:00Z, end: 2014-01-01T00:00Z}}]
""")
    return "".join(found)


@pytest.fixture
def installation(installed: Callable[[str], Installation]) -> Installation:
    return installed(entities(3))


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_end_of_each_list(installation: Installation, seed: int) -> None:
    chance = random.Random(seed)
    for n in range(3):
        for cluster in ("primary", "backup")[: 1 + n % 2]:
            for number in range(-2, 9):
                at = NOW.replace(minute=0) - timedelta(hours=number)
                if chance.random() < 0.5:
                    state = chance.choice(["AVAILABLE", "EVICTED"])
                    write(installation, feed_row(f"feed{n}", at, cluster, state=state))
                if chance.random() < 0.5:
                    state = chance.choice([state.value for state in InstanceState])
                    write(installation, process_row(f"process{n}", at, state, cluster))
    for limit in (1, 4, 30):
        items = summarize_entities(installation, Query(), limit).items
        assert len(items) == 7
        for one in items:
            expected = []
            for cluster in sorted(one.entity.clusters):
                type_: Any = one.entity.kind
                query = InstanceQuery(one.entity.name, type_, cluster=cluster, sort="-instance", limit=limit)
                expected += list_instances(installation, query).items
            found = [(own.cluster, own.instance, own.state) for own in one.instances]
            assert found == [(own.cluster, own.instance, own.state) for own in expected]


def test_the_number_of_statements_is_that_of_one_entity(installed: Callable[[str], Installation]) -> None:
    def statements(number: int) -> int:
        installation, asked = installed(entities(number)), []
        engine = installation.ledger.engine

        def note(*said: Any) -> None:
            asked.append(said[2])

        summarize_entities(installation, Query(), 7)
        event.listen(engine, "before_cursor_execute", note)
        try:
            summarize_entities(installation, Query(), 7)
        finally:
            event.remove(engine, "before_cursor_execute", note)
        return len(asked)

    assert statements(12) == statements(2)


def test_which_entities(installation: Installation) -> None:
    def names(query: Query, cluster: str | None = None) -> list[str]:
        return [one.entity.name for one in summarize_entities(installation, query, 2, cluster).items]

    assert names(Query((("pipeline", "pipe1"),))) == ["process1"]
    assert names(Query((("kind", "process"),), sort="-name", offset=1, limit=1)) == ["process1"]
    assert names(Query(), "backup") == ["feed1", "process1"]
    (one,) = summarize_entities(installation, Query((("kind", "feed"),)), 2, "backup").items
    assert {own.cluster for own in one.instances} == {"backup"}
    with pytest.raises(UnknownEntityError, match="there is no cluster 'bakup'"):
        names(Query(), "bakup")
    with pytest.raises(QueryError, match="there is no field 'x'"):
        names(Query((("x", "y"),)))
