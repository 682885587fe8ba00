"""What is known of an executor after probes, and when it is asked again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.planning.executor_health import Answer, ExecutorRecord, Health, Load

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NEW = ExecutorRecord("primary", "east", "spark://h:7077")


@given(st.lists(st.booleans(), max_size=40))
def test_after_any_answers(answers: list[bool]) -> None:
    record, at = NEW, NOW
    for is_there in answers:
        assert record.is_due(at)
        before, record = record, record.after(Answer("" if is_there else "refused"), at)
        assert record.since == (at if before.since is None or bool(before.failures) == is_there else before.since)
        assert record.probe_at is not None
        wait = record.probe_at - at
        assert wait == (15 * SECOND if is_there else min(5 * SECOND * 2 ** (record.failures - 1), 300 * SECOND))
        assert not record.is_due(record.probe_at - SECOND)
        at = record.probe_at
    silent = next((n for n, one in enumerate(reversed(answers)) if one), len(answers))
    states = {0: Health.ONLINE, 1: Health.SUSPECT}
    assert record.health is (states.get(silent, Health.OFFLINE) if answers else Health.UNKNOWN)
    assert record.settled_health == (record.health.value if record.health in (Health.ONLINE, Health.OFFLINE) else "")


def test_figures_of_spark_are_forgotten_with_the_next_probe_and_after_a_while() -> None:
    load = Load(8, 3, 1, 2)
    known = NEW.after(Answer(load=load), NOW)
    assert known.load(NOW) == known.load(NOW + timedelta(minutes=2)) == load
    assert known.load(NOW + timedelta(minutes=2) + SECOND) is None
    assert known.after(Answer("refused"), NOW).load(NOW) is None
    assert NEW.load(NOW) is None


def test_a_clock_that_was_set_back_delays_no_probe() -> None:
    known = NEW.after(Answer(), NOW)
    assert not known.is_due(NOW + SECOND)
    assert known.is_due(NOW - timedelta(days=1))


PROVISIONED = ExecutorRecord("primary", "east", "sc://127.0.0.1:1", provisioned=True)


def test_one_that_is_provisioned_has_time_until_it_answers_first() -> None:
    assert PROVISIONED.health is Health.STOPPED
    assert not PROVISIONED.is_wanted(NOW)
    wanted = replace(PROVISIONED, wanted_at=NOW)
    assert [wanted.is_wanted(NOW + later * SECOND) for later in (0, 119, 121)] == [True, True, False]
    started = wanted.launched(NOW)
    assert not started.is_wanted(NOW)
    assert started.health is started.after(Answer("refused"), NOW + SECOND).health is Health.STARTING
    late = NOW + timedelta(minutes=5)
    assert started.after(Answer("refused"), late).health is Health.SUSPECT
    online = started.after(Answer(), NOW + SECOND)
    assert (online.health, online.since) == (Health.ONLINE, NOW + SECOND)
    assert online.after(Answer("refused"), NOW + 2 * SECOND).health is Health.SUSPECT
    assert online.stopped() == replace(PROVISIONED, told=online.told)


def test_one_that_ends_is_started_again_each_time_later() -> None:
    record, at = replace(PROVISIONED, wanted_at=NOW), NOW
    for wait in (5, 10, 20):
        record = record.launched(at).failed("it ended", at)
        assert (record.problem, record.launched_at) == ("it ended", None)
        record = replace(record, wanted_at=at + wait * SECOND)
        assert not record.is_wanted(at + (wait - 1) * SECOND)
        at += wait * SECOND
        assert record.is_wanted(at)
    assert record.health is Health.OFFLINE
    assert record.launched(at).after(Answer(), at).failures == 0
