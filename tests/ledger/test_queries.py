from __future__ import annotations

from datetime import timedelta
from operator import attrgetter

import pytest
from sqlalchemy import Engine, event, text

from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.process_instances import InstanceChanged, RunQueued
from falcon_assets.history.folding.fold import fold
from falcon_assets.history.queries import available, evicted, progress, records, seen, set_progress, signatures
from falcon_assets.instances.store.known_instances import ended_since, newest_event
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from tests.hours import hour
from tests.ledger.histories import history_of

S = InstanceState


def landed(event_id: int, feed: str, number: int, cluster: str = "primary", signature: str | None = None) -> Logged:
    return Logged(event_id, FeedInstanceAvailable(cluster, feed, hour(number), "v1", hour(50), signature=signature))


def changed(event_id: int, process: str, number: int, state: InstanceState, cluster: str = "primary") -> Logged:
    changed = InstanceChanged(process, cluster, hour(number), state, hour(50), "why")
    return Logged(event_id, changed, f"run-{event_id}")


def count_statements(engine: Engine) -> list[str]:
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    return statements


@pytest.fixture
def feeds(engine: Engine) -> Engine:
    facts = [landed(number + 1, "raw", number, signature=f"s{number}") for number in range(6)]
    facts += [landed(11, "raw", 3, "backup"), landed(12, "other", 2), landed(13, "other", 9)]
    fold(engine, history_of(facts))
    return engine


def test_available_within_spans_ends_included(feeds: Engine) -> None:
    minute = timedelta(minutes=1)
    with feeds.begin() as connection:
        found = available(
            connection,
            {
                ("primary", "raw"): (hour(1), hour(3)),
                ("backup", "raw"): (hour(3), hour(3)),
                ("primary", "other"): (hour(2) + minute, hour(9) - minute),
                ("primary", "unknown"): (hour(0), hour(9)),
            },
        )
    assert found == {("primary", "raw"): {hour(1), hour(2), hour(3)}, ("backup", "raw"): {hour(3)}}
    assert all(instant.utcoffset() == timedelta(0) for instant in found["primary", "raw"])


def test_available_of_nothing(feeds: Engine) -> None:
    with feeds.begin() as connection:
        assert available(connection, {}) == {}
        assert available(connection, {("primary", "raw"): (hour(3), hour(2))}) == {}


def test_one_statement_for_many_feeds(feeds: Engine) -> None:
    spans = {("primary", f"feed-{number}"): (hour(0), hour(1)) for number in range(3000)}
    statements = count_statements(feeds)
    with feeds.begin() as connection:
        assert available(connection, {**spans, ("primary", "raw"): (hour(5), hour(9))}) == {
            ("primary", "raw"): {hour(5)}
        }
    assert len(statements) == 1


def test_what_was_evicted_is_not_available(feeds: Engine) -> None:
    fold(feeds, history_of([Logged(20, FeedInstanceEvicted("primary", "raw", hour(2), "delete", hour(60), 5), "run")]))
    spans = {("primary", "raw"): (hour(1), hour(3)), ("backup", "raw"): (hour(0), hour(9))}
    with feeds.begin() as connection:
        assert available(connection, spans)["primary", "raw"] == {hour(1), hour(3)}
        assert evicted(connection, spans) == {("primary", "raw"): {hour(2): hour(60)}}
        assert evicted(connection, {}) == {}
        assert signatures(connection, spans)["primary", "raw"][hour(2)] == "s2"


def test_when_instances_were_seen_that_were_seen_or_are_dated_after_a_time(feeds: Engine) -> None:
    fold(feeds, history_of([Logged(20, FeedInstanceEvicted("primary", "raw", hour(2), "delete", hour(60), 5), "run")]))
    numbers = {
        feed: (hour(since), there)
        for feed, since, there in [("raw", 49, (0, 1, 3, 4, 5)), ("other", 8, (2, 9)), ("unknown", 0, ())]
    }
    statements = count_statements(feeds)
    with feeds.begin() as connection:
        assert seen(connection, "primary", {feed: since for feed, (since, _) in numbers.items()}) == {
            feed: {hour(number): hour(50) for number in there} for feed, (_, there) in numbers.items() if there
        }
        assert seen(connection, "primary", {"raw": hour(50), "other": hour(50)}) == {}
        assert seen(connection, "primary", {}) == {}
    assert len(statements) == 2


def test_signatures_within_spans_ends_included(feeds: Engine) -> None:
    spans = {
        ("primary", "raw"): (hour(2), hour(4)),
        ("primary", "other"): (hour(2), hour(9)),
        ("backup", "raw"): (hour(4), hour(9)),
    }
    with feeds.begin() as connection:
        assert signatures(connection, spans) == {
            ("primary", "raw"): {hour(2): "s2", hour(3): "s3", hour(4): "s4"},
            ("primary", "other"): {hour(2): None, hour(9): None},
        }
        assert signatures(connection, {}) == {}


def test_records_from_an_instance_on_and_what_is_in_flight(engine: Engine) -> None:
    facts = [
        changed(1, "p", 0, S.SUCCEEDED),
        changed(2, "p", 1, S.RUNNING),
        Logged(3, RunQueued("p", "primary", (hour(0), hour(2))), "run-3"),
        changed(4, "p", 3, S.SUCCEEDED),
        changed(5, "p", 4, S.SUCCEEDED),
        changed(6, "p", 5, S.TIMED_OUT),
        changed(7, "q", 0, S.FAILED),
        changed(8, "p", 1, S.RUNNING, "backup"),
        changed(9, "not-asked", 4, S.RUNNING),
        changed(10, "r", 0, S.WAITING),
        changed(11, "r", 1, S.FAILED),
        changed(12, "r", 2, S.TIMED_OUT),
        changed(13, "r", 3, S.KILLED),
    ]
    fold(engine, history_of(facts))
    with engine.begin() as connection:
        found = records(connection, "primary", {"p": hour(4), "q": hour(1), "unknown": hour(0)})
    assert found == {
        "p": {
            hour(0): InstanceRecord(hour(0), S.WAITING, "", 2, 0, "run-3", "run-1", None, hour(50)),
            hour(1): InstanceRecord(hour(1), S.RUNNING, "why", 1, 0, None, "run-2", hour(50), None),
            hour(2): InstanceRecord(hour(2), S.WAITING, "", 1, 0, "run-3"),
            hour(4): InstanceRecord(hour(4), S.SUCCEEDED, "why", 1, 0, None, "run-5", None, hour(50)),
            hour(5): InstanceRecord(hour(5), S.TIMED_OUT, "why", 1, 1, None, "run-6", None, hour(50)),
        },
        "q": {},
        "unknown": {},
    }
    with engine.begin() as connection:
        assert records(connection, "primary", {}) == {}
        assert records(connection, "elsewhere", {"p": hour(0)}) == {"p": {}}
        assert list(records(connection, "primary", {"r": hour(9)})["r"]) == [hour(0)]
        assert sorted(records(connection, "primary", {"r": hour(9)}, {"r": 1})["r"]) == [hour(0), hour(1)]
    again = Logged(14, RunQueued("r", "primary", (hour(1),)), "run-14")
    fold(engine, history_of([*facts, again]))
    with engine.begin() as connection:  # it failed, and a run has it in hand again
        assert sorted(records(connection, "primary", {"r": hour(9)})["r"]) == [hour(0), hour(1)]


def test_what_failed_long_ago_is_not_read(engine: Engine) -> None:
    """Nobody who tries nothing again pays for it: neither metrics, nor lists of what waits."""
    many = 2_000
    fold(engine, history_of([changed(number + 1, "p", number, S.FAILED) for number in range(many)]))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE falcon.process_instances"))
    counted = text(
        "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'process_instances'"
    )
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))  # as where it would be long
        before = connection.execute(counted).scalar_one()
        assert records(connection, "primary", {"p": hour(many)}) == {"p": {}}
        assert connection.execute(counted).scalar_one() - before < 10


def test_progress_is_remembered_by_process_and_timeline(engine: Engine) -> None:
    with engine.begin() as connection:
        set_progress(connection, "primary", {("p", "hourly"): hour(1), ("q", "hourly"): hour(2)})
        set_progress(connection, "backup", {("p", "hourly"): hour(7)})
        set_progress(connection, "primary", {("p", "hourly"): hour(3), ("p", "daily"): hour(24)})
        set_progress(connection, "primary", {})
    with engine.begin() as connection:
        assert progress(connection, "primary") == {
            ("p", "hourly"): hour(3),
            ("p", "daily"): hour(24),
            ("q", "hourly"): hour(2),
        }
        assert progress(connection, "backup") == {("p", "hourly"): hour(7)}
        assert progress(connection, "elsewhere") == {}


def test_what_ended_since_an_event_is_news_once(engine: Engine) -> None:
    facts = [
        changed(1, "old", 0, S.SUCCEEDED),
        changed(2, "p", 0, S.RUNNING),
        changed(3, "p", 1, S.SUCCEEDED),
        changed(4, "p", 2, S.FAILED),
        changed(5, "p", 3, S.FAILED),
        Logged(6, RunQueued("p", "primary", (hour(3),)), "again"),
    ]
    fold(engine, history_of(facts[:1]))
    with engine.begin() as connection:
        before = newest_event(connection)
    fold(engine, history_of(facts))
    with engine.begin() as connection:
        found = ended_since(connection, before)
        assert ended_since(connection, newest_event(connection)) == []
    known = attrgetter("process", "cluster", "nominal", "state", "reason", "attempt", "event_id")
    assert list(map(known, found)) == [
        ("p", "primary", hour(1), S.SUCCEEDED, "why", 1, 3),
        ("p", "primary", hour(2), S.FAILED, "why", 1, 4),
    ]
