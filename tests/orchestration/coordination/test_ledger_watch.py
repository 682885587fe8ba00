"""Ticks that wait are woken by what is stored, and by commands of which nobody is told."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from falcon_assets.entities.status import Status, command
from falcon_assets.history.dagster_internals.notices import listening
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.mapping import asset_keys
from falcon_assets.instances.coordination.ledger_watch import LedgerWatch
from falcon_assets.instances.coordination.news import Mark, mark_of
from falcon_assets.model.instant import format_instant
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.orchestration.replication_world import feed, on
from tests.waiting import wait_until
from tests.world import World, world_of

ENTITIES = cluster_yaml() + feed("raw", on("primary", "source"))
LONG = 60.0

world = world_of({"all.yaml": ENTITIES})


def lands(world: World) -> None:
    there = FeedInstanceAvailable("primary", "raw", hour(0), "v1", hour(0))
    event = materialization(asset_keys.asset_key("primary", "raw"), format_instant(hour(0)), there)
    world.instance.report_runless_asset_event(event)


def commands(world: World) -> None:
    with world.ledger.engine.begin() as connection:
        command(connection, world.store.feed("raw"), Status.SUSPENDED, hour(1))


def mark(world: World) -> Mark:
    with world.ledger.engine.connect() as connection:
        return mark_of(connection)


@pytest.mark.parametrize("happens", [lands, commands], ids=["an event", "a command"])
def test_what_happens_ends_the_waiting(world: World, happens: Callable[[World], None]) -> None:
    watch, seen = LedgerWatch(world.ledger.engine), mark(world)
    waiting = [threading.Thread(target=watch.wait, args=(seen, LONG)) for _ in range(3)]
    for one in waiting:
        one.start()
    wait_until(lambda: watch._looks > 1)
    assert all(one.is_alive() for one in waiting)
    began = time.monotonic()
    happens(world)
    for one in waiting:
        one.join(LONG)
    assert time.monotonic() - began < LONG / 2
    assert mark(world) != seen
    assert len([one for one in threading.enumerate() if one.name == "falcon ledger watch"]) >= 1


def test_it_goes_on_when_postgresql_has_ended_its_session(world: World) -> None:
    watch, seen = LedgerWatch(world.ledger.engine), mark(world)
    waiting = threading.Thread(target=watch.wait, args=(seen, LONG))
    waiting.start()
    wait_until(lambda: watch._looks > 1)
    with world.ledger.engine.connect() as connection:
        ended = text(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert connection.execute(ended).scalar_one() >= 1
    looks = watch._looks
    wait_until(lambda: watch._looks > looks + 1)
    began = time.monotonic()
    lands(world)
    waiting.join(LONG)
    assert time.monotonic() - began < LONG / 2


def test_where_nothing_happens_the_time_is_waited_for(world: World) -> None:
    began = time.monotonic()
    LedgerWatch(world.ledger.engine).wait(mark(world), 1.0)
    assert time.monotonic() - began >= 1.0


def test_dagster_tells_of_each_event_when_it_is_stored(world: World) -> None:
    with (
        world.ledger.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        listening(connection) as notices,
    ):
        assert not notices(0.0)
        lands(world)
        assert notices(LONG)
        assert not notices(0.0)


def test_a_server_that_is_killed_is_an_error_of_sqlalchemy(world: World) -> None:
    with (
        world.ledger.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        listening(connection) as notices,
    ):
        driver = connection.connection.driver_connection
        assert driver is not None
        with socket.socket(fileno=os.dup(driver.fileno())) as cut:
            cut.shutdown(socket.SHUT_RDWR)
        with pytest.raises(OperationalError):
            notices(LONG)
