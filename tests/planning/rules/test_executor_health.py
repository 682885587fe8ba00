"""What is known of an executor after probes, and when it is asked again."""

from __future__ import annotations

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
