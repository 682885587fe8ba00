from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import Engine, select, text

from falcon_assets.entities.status import EntityStatus, Status, command, statuses
from falcon_assets.history.tables import ENTITY_STATUS
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from tests.builders import make_feed, make_process
from tests.hours import hour

KEY = ("process", "hourly-delays")
ON, OFF = make_process(schedule=True), make_process(schedule=False)
RUNNING, SUBMITTED, SUSPENDED = Status.RUNNING, Status.SUBMITTED, Status.SUSPENDED


def said(engine: Engine, number: int, *entities: Feed | Process) -> dict[tuple[str, str], EntityStatus]:
    """What is said at that hour."""
    with engine.begin() as connection:
        return dict(statuses(connection, entities, hour(number)))


def give(engine: Engine, entity: Feed | Process, status: Status, number: int) -> None:
    with engine.begin() as connection:
        command(connection, entity, status, hour(number))


def written(engine: Engine) -> list[tuple[object, ...]]:
    with engine.connect() as connection:
        return sorted(tuple(row) for row in connection.execute(select(ENTITY_STATUS)))


def test_the_definition_says_it_first(engine: Engine) -> None:
    feed = make_feed(name="hourly-delays", schedule=True)
    assert said(engine, 1, OFF, feed) == {
        KEY: EntityStatus(SUBMITTED, hour(1), commanded=False),
        ("feed", "hourly-delays"): EntityStatus(RUNNING, hour(1), False, hour(1)),
    }
    assert written(engine) == [
        ("feed", "hourly-delays", "RUNNING", hour(1), False, hour(1)),
        ("process", "hourly-delays", "SUBMITTED", hour(1), False, None),
    ]


def test_a_second_query_changes_nothing(engine: Engine) -> None:
    first = said(engine, 1, ON)
    assert said(engine, 2, ON) == first
    assert said(engine, 3) == {}
    assert written(engine) == [(*KEY, "RUNNING", hour(1), False, hour(1))]


def test_a_change_of_the_definition_counts_from_when_it_is_seen(engine: Engine) -> None:
    said(engine, 1, OFF)
    assert said(engine, 2, ON) == {KEY: EntityStatus(RUNNING, hour(2), False, hour(2))}
    assert said(engine, 3, ON) == {KEY: EntityStatus(RUNNING, hour(2), False, hour(2))}
    assert said(engine, 4, OFF) == {KEY: EntityStatus(SUBMITTED, hour(4), False, hour(2))}


def test_commands_win_over_the_definition(engine: Engine) -> None:
    said(engine, 1, ON)
    give(engine, ON, SUSPENDED, 2)
    for number, entity in ((3, ON), (4, OFF), (5, ON)):
        assert said(engine, number, entity) == {KEY: EntityStatus(SUSPENDED, hour(2), True, hour(1))}
    give(engine, ON, RUNNING, 6)
    for number, entity in ((7, ON), (8, OFF)):
        assert said(engine, number, entity) == {KEY: EntityStatus(RUNNING, hour(6), True, hour(1))}


def test_a_command_to_what_nobody_checked_yet(engine: Engine) -> None:
    give(engine, OFF, RUNNING, 1)
    assert said(engine, 2, OFF) == {KEY: EntityStatus(RUNNING, hour(1), True, hour(1))}


def test_a_command_for_the_status_it_has_keeps_its_beginning(engine: Engine) -> None:
    said(engine, 1, ON)
    give(engine, ON, RUNNING, 5)
    assert said(engine, 6, OFF) == {KEY: EntityStatus(RUNNING, hour(1), True, hour(1))}


def test_a_command_is_for_one_entity_only(engine: Engine) -> None:
    feed, other = make_feed(name="hourly-delays", schedule=True), make_process(name="other", schedule=True)
    said(engine, 1, ON, feed, other)
    give(engine, ON, SUSPENDED, 2)
    assert written(engine) == [
        ("feed", "hourly-delays", "RUNNING", hour(1), False, hour(1)),
        ("process", "hourly-delays", "SUSPENDED", hour(2), True, hour(1)),
        ("process", "other", "RUNNING", hour(1), False, hour(1)),
    ]


def test_a_query_does_not_undo_a_command_of_the_same_moment(engine: Engine) -> None:
    said(engine, 1, OFF)
    blocked = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    with ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:
            command(connection, ON, SUSPENDED, hour(2))
            asking = pool.submit(said, engine, 3, ON)  # it sees SUBMITTED by the old definition, and waits to write
            with engine.connect() as other:
                while not asking.done() and not other.execute(blocked).scalar_one():
                    other.rollback()
        asking.result(20)
    assert said(engine, 4, ON) == {KEY: EntityStatus(SUSPENDED, hour(2), True, hour(2))}
