"""Versions leave the graph, with their edges and what people said of them."""

from __future__ import annotations

from sqlalchemy import Engine

from falcon_assets.features.lineage.store import every_version, graph_of, versions_of_instance
from falcon_assets.features.lineage.stored_lifecycle import SetStatus, expired_versions, forget, set_status, status_set
from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.folding.fold import fold, rebuild
from falcon_assets.history.folding.version_rows import columns_of_plans, version_of_row
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns
from tests.hours import hour
from tests.ledger.histories import content, history_of
from tests.ledger.test_lineage import Key, made


def landed(key: Key, at: int) -> Fact:
    return FeedInstanceAvailable(*key, hour(at))


RAW, SUMS = ("primary", "a", hour(0)), ("primary", "b", hour(0))
FACTS = [
    landed((*RAW, "v1"), 0),
    made((*SUMS, "s1"), [(*RAW, "v1"), ("primary", "c", hour(0), "x")]),
    landed((*RAW, "v2"), 1),
    made((*SUMS, "s2"), [(*RAW, "v2")]),
    landed((*RAW, "v3"), 9),
]
"""v1 and s1 went early, v2 at nine; c was only read for s1."""


def test_versions_that_have_been_gone_for_long_are_forgotten(engine: Engine) -> None:
    history = history_of([Logged(number, fact, "run") for number, fact in enumerate(FACTS, 1)])
    fold(engine, history)
    whole = content(engine)
    with engine.begin() as connection:
        old = versions_of_instance(connection, "b", hour(0))[0]
        set_status(connection, old, SetStatus("validated", hour(2), "ann", "why"))
    with engine.begin() as connection:
        found = expired_versions(connection, (), hour(5))
        assert [f"{one.feed} {one.version}" for one in found] == ["a v1", "b s1", "c x"]
        forget(connection, found)
    with engine.connect() as connection:
        left = {one.number: one for one in map(version_of_row, connection.execute(every_version()))}
        assert sorted(one.version for one in left.values()) == ["s2", "v2", "v3"]
        edges = [(left[one.output].version, left[one.input].version) for one in graph_of(connection, left).edges]
        assert edges == [("s2", "v2")]
        assert status_set(connection, old) is None
        assert expired_versions(connection, (), hour(5)) == []
    rebuild(engine, history)
    assert content(engine) == whole


def test_columns_of_no_version_are_forgotten_with_it(engine: Engine) -> None:
    old, both = (OutputColumns((OutputColumn(name, "int"),)) for name in "ab")
    facts = [
        landed((*RAW, "v1"), 0),
        *(made((*SUMS, version), [(*RAW, "v1")], columns) for version, columns in (("s1", old), ("s2", both))),
        landed((*RAW, "v2"), 1),
        made((*SUMS, "s3"), [(*RAW, "v2")], both),
    ]
    fold(engine, history_of([Logged(number, fact, "run") for number, fact in enumerate(facts, 1)]))
    with engine.begin() as connection:
        plans = {one.plan for one in map(version_of_row, connection.execute(every_version())) if one.plan}
        assert len(columns_of_plans(connection, plans)) == 2
        forget(connection, expired_versions(connection, (), hour(5)))
        assert [*columns_of_plans(connection, plans).values()] == [both]


def test_what_is_critical_and_what_it_was_made_from_stays_known(engine: Engine) -> None:
    fold(engine, history_of([Logged(number, fact, "run") for number, fact in enumerate(FACTS, 1)]))
    with engine.begin() as connection:
        old = versions_of_instance(connection, "b", hour(0))[0]
        set_status(connection, old, SetStatus("critical", hour(2), "ann", "why"))
        assert expired_versions(connection, (), hour(5)) == []
        assert [one.version for one in expired_versions(connection, (), hour(10))] == ["v2"]
        assert expired_versions(connection, ("b",), hour(10)) == []
