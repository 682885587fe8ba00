from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Engine, select

from falcon_assets.features.retention.store import Eviction, finish, undone, withdraw, write_down
from falcon_assets.history.folding.fold import rebuild
from falcon_assets.history.tables import EVICTIONS
from falcon_assets.planning.eviction import StoredInstance, StoredLocation, Verdict
from tests.hours import hour
from tests.ledger.histories import history_of

LOCATIONS = (StoredLocation("data", "/raw/1", "/raw"), StoredLocation("stats", "/stats/1", "/stats"))


def decided(number: int, cluster: str = "primary", feed: str = "raw") -> Eviction:
    verdict = Verdict(StoredInstance(hour(number), LOCATIONS), "archive", "old", f"/old/{number}")
    return Eviction(cluster, feed, verdict, "_SUCCESS", "backup", 3, 2**40, "run", hour(50))


def test_decisions_are_undone_until_they_are_finished_or_withdrawn(engine: Engine) -> None:
    first, second, third = (decided(number) for number in (1, 2, 3))
    with engine.begin() as connection:
        write_down(connection, [third, first, second, decided(1, "backup"), decided(1, feed="other")])
        assert undone(connection, "primary", ["raw"]) == [first, second, third]
        finish(connection, "primary", "raw", [hour(1)], hour(51))
        withdraw(connection, "primary", "raw", [hour(1), hour(2)])
        assert undone(connection, "primary", ["raw", "other"]) == [decided(1, feed="other"), third]
        done = select(EVICTIONS.c.instance, EVICTIONS.c.done_at).where(EVICTIONS.c.done_at.is_not(None))
        assert connection.execute(done).all() == [(hour(1), hour(51))]  # what was done is not withdrawn


def test_an_instance_can_be_decided_on_again(engine: Engine) -> None:
    again = replace(decided(1), run_id="later", decided_at=hour(90))
    with engine.begin() as connection:
        write_down(connection, [decided(1)])
        finish(connection, "primary", "raw", [hour(1)], hour(51))
        write_down(connection, [again])
        assert undone(connection, "primary", ["raw"]) == [again]


def test_a_rebuild_leaves_them_alone(engine: Engine) -> None:
    with engine.begin() as connection:
        write_down(connection, [decided(1)])
    rebuild(engine, history_of([]))
    with engine.begin() as connection:
        assert undone(connection, "primary", ["raw"]) == [decided(1)]
