from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import IntegrityError

from falcon_assets.entities.status import Status, command, statuses
from falcon_assets.history.database import LEDGER_LOCK, lock_in_transaction, upsert
from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import InstanceChanged, RunQueued
from falcon_assets.history.folding.fold import History, fold, rebuild
from falcon_assets.history.queries import progress, set_progress
from falcon_assets.history.tables import COLLECTED, FOLD
from falcon_assets.planning.instance_record import InstanceState
from tests.builders import make_process
from tests.hours import hour
from tests.ledger.histories import (
    content,
    countable_facts,
    empty,
    history_of,
    landed_again,
    ledger_engine,
    until_waiting,
)
from tests.processes import forked

FACTS = countable_facts(600)


def cursor(engine: Engine) -> int | None:
    with engine.connect() as connection:
        return connection.execute(select(FOLD.c.event_id)).scalar()


def folded_once(engine: Engine) -> dict[str, list[tuple[Any, ...]]]:
    """What one folder alone makes of the facts; the tables are empty afterwards."""
    assert fold(engine, history_of(FACTS)) == len(FACTS)
    alone = content(engine)
    empty(engine)
    return alone


def assert_every_fact_counted_once(engine: Engine) -> None:
    rows = content(engine)
    assert sum(row[12] + 1 for row in rows["feed_instances"]) == len(FACTS) // 2  # its first version and the changes
    assert sum(row[6] for row in rows["process_instances"]) == len(FACTS) // 2  # failures


def test_threads_share_the_work(engine: Engine) -> None:
    alone = folded_once(engine)
    with ThreadPoolExecutor(4) as pool:
        with engine.begin() as connection:
            lock_in_transaction(connection, LEDGER_LOCK)
            folders = [pool.submit(fold, engine, history_of(FACTS, [20])) for _ in range(4)]
            until_waiting(engine, 4)
        counts = [folder.result(30) for folder in folders]
    assert sum(counts) == len(FACTS)
    assert min(counts) > 0  # they took turns
    assert_every_fact_counted_once(engine)
    assert content(engine) == alone


def test_processes_share_the_work(engine: Engine, database: str, tmp_path: Path) -> None:
    alone = folded_once(engine)

    def folder(name: str) -> int:
        return (tmp_path / name).write_text(str(fold(ledger_engine(database), history_of(FACTS, [20]))))

    with engine.begin() as connection:
        lock_in_transaction(connection, LEDGER_LOCK)
        children = [forked(lambda: folder("one")), forked(lambda: folder("two"))]
        until_waiting(engine, 2)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    counts = [int((tmp_path / name).read_text()) for name in ("one", "two")]
    assert sum(counts) == len(FACTS)
    assert min(counts) > 0
    assert_every_fact_counted_once(engine)
    assert content(engine) == alone


def failing_at(call: int, history: History) -> History:
    calls = 0

    def failing(connection: Connection, after: int, limit: int) -> tuple[Sequence[Logged], int | None, bool]:
        nonlocal calls
        calls += 1
        if calls == call:
            raise ConnectionError("the history is away")
        return history(connection, after, limit)

    return failing


def test_a_fold_that_breaks_off_is_continued(engine: Engine) -> None:
    alone = folded_once(engine)
    with pytest.raises(ConnectionError, match="the history is away"):
        fold(engine, failing_at(4, history_of(FACTS, [30])))
    assert cursor(engine) == 90
    so_far = content(engine)
    assert rebuild(engine, history_of(FACTS[:90])) == 90
    assert content(engine) == so_far
    assert fold(engine, history_of(FACTS)) == len(FACTS) - 90
    assert content(engine) == alone
    assert fold(engine, history_of(FACTS)) == 0


def test_a_chunk_that_cannot_be_stored_leaves_nothing(engine: Engine) -> None:
    # The feed instances of the second chunk are written before the process instance is refused: reason is not null.
    refused = [
        Logged(40, replace(one.fact, reason=cast(Any, None)), one.run_id)
        if one.event_id == 40 and isinstance(one.fact, InstanceChanged)
        else one
        for one in FACTS[:60]
    ]
    assert fold(engine, history_of(FACTS[:30])) == 30
    before = content(engine)
    with pytest.raises(IntegrityError, match="reason"):
        fold(engine, history_of(refused, [10]))
    assert cursor(engine) == 30
    assert content(engine) == before
    assert fold(engine, history_of(FACTS)) == len(FACTS) - 30
    assert_every_fact_counted_once(engine)


def test_a_killed_folder_leaves_a_whole_number_of_chunks(engine: Engine, database: str) -> None:
    alone = folded_once(engine)

    def dying(connection: Connection, after: int, limit: int) -> tuple[Sequence[Logged], int | None, bool]:
        if after >= 50:
            os.kill(os.getpid(), signal.SIGKILL)
        return history_of(FACTS, [25])(connection, after, limit)

    status = os.waitpid(forked(lambda: fold(ledger_engine(database), dying)), 0)[1]
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert cursor(engine) == 50
    assert fold(engine, history_of(FACTS)) == len(FACTS) - 50
    assert content(engine) == alone


def test_rebuild_makes_the_same_and_leaves_the_rest_alone(engine: Engine) -> None:
    suspended = make_process()
    first = {column.name: hour(3) if column.nullable else "raw" for column in COLLECTED.c}
    with engine.begin() as connection:
        command(connection, suspended, Status.SUSPENDED, hour(1))
        upsert(connection, COLLECTED, [first])
    for end in range(0, len(FACTS) + 1, 60):
        fold(engine, history_of(FACTS[:end]))
    folded = content(engine)
    with engine.begin() as connection:
        before = statuses(connection, [suspended], hour(2))
        set_progress(connection, "primary", {("p", "hourly"): hour(2)})
    assert rebuild(engine, history_of(FACTS, [7])) == len(FACTS)
    assert content(engine) == folded
    with engine.begin() as connection:
        assert progress(connection, "primary") == {}
        assert statuses(connection, [suspended], hour(9)) == before
        assert [dict(row._mapping) for row in connection.execute(select(COLLECTED))] == [first]


def test_readers_see_the_old_projection_until_the_new_one_is_complete(engine: Engine) -> None:
    fold(engine, history_of(FACTS[:100]))
    old = content(engine)
    seen = []
    history = history_of(FACTS, [100])

    def watching(connection: Connection, after: int, limit: int) -> tuple[Sequence[Logged], int | None, bool]:
        seen.append(content(engine))
        return history(connection, after, limit)

    rebuild(engine, watching)
    assert len(seen) == 6
    assert all(one == old for one in seen)
    assert cursor(engine) == 600


def test_a_rebuild_that_breaks_off_changes_nothing(engine: Engine) -> None:
    fold(engine, history_of(FACTS))
    old = content(engine)
    with pytest.raises(ConnectionError):
        rebuild(engine, failing_at(3, history_of(FACTS, [30])))
    assert content(engine) == old


def test_events_that_say_nothing_move_the_cursor(engine: Engine) -> None:
    def silent(connection: Connection, after: int, limit: int) -> tuple[Sequence[Logged], int | None, bool]:
        return ([], 5000, True) if after < 5000 else ([], None, True)

    assert fold(engine, silent) == 0
    assert cursor(engine) == 5000
    assert {name for name, rows in content(engine).items() if rows} == {"fold"}


def test_what_comes_meanwhile_is_left_to_the_next_fold(engine: Engine) -> None:
    def endless(connection: Connection, after: int, limit: int) -> tuple[Sequence[Logged], int | None, bool]:
        return [], after + 1, True

    assert [fold(engine, endless), cursor(engine), fold(engine, endless), cursor(engine)] == [0, 1, 0, 2]


def test_no_history(engine: Engine) -> None:
    assert fold(engine, history_of([])) == 0
    assert rebuild(engine, history_of([])) == 0
    assert cursor(engine) is None


def test_more_rows_than_one_statement_takes(engine: Engine) -> None:
    nominals = tuple(hour(number) for number in range(2500))
    landed = [
        Logged(number + 2, FeedInstanceAvailable("primary", "raw", nominal, "v1", hour(0)))
        for number, nominal in enumerate(nominals)
    ]
    facts = [Logged(1, RunQueued("p", "primary", nominals), "a"), *landed]
    assert fold(engine, history_of(facts)) == 2501
    assert {name: len(rows) for name, rows in content(engine).items() if rows} == {
        "process_instances": 2500,
        "feed_instances": 2500,
        "data_versions": 2500,
        "fold": 1,
        "totals": 2,
    }


def test_a_rerun_replaces_what_was_consumed(engine: Engine) -> None:
    def success(event_id: int, nominal: datetime, *read: Consumption) -> Logged:
        state = InstanceState.SUCCEEDED
        changed = InstanceChanged("p", "primary", nominal, state, hour(9), inputs={"flights": read})
        return Logged(event_id, changed, f"run-{event_id}")

    two = [Consumption("raw", hour(number), "v1") for number in range(2)]
    facts = [success(1, hour(0), *two), success(2, hour(1), two[0]), success(3, hour(0), two[1])]
    fold(engine, history_of(facts, [2]))
    always = {"process": "p", "cluster": "primary", "input": "flights", "feed": "raw", "input_cluster": "primary"}
    always |= {"version": "v1", "read_event": 0, "too_late": None, "stale": False}
    assert [row._asdict() for row in content(engine)["consumed"]] == [
        {**always, "nominal": hour(0), "instance": hour(1)},
        {**always, "nominal": hour(1), "instance": hour(0)},
    ]


def stale(engine: Engine) -> dict[tuple[str, int], bool]:
    return {
        (row.input, (row.nominal - hour(0)) // timedelta(hours=1)): row.stale for row in content(engine)["consumed"]
    }


def test_what_changed_after_it_was_read_is_stale(engine: Engine) -> None:
    facts = landed_again(12)
    assert fold(engine, history_of(facts, [7, 1, 3])) == len(facts)
    assert {place for (name, place), is_stale in stale(engine).items() if name == "rows" and is_stale} == {2, 6, 10}
    assert not any(is_stale for (name, _), is_stale in stale(engine).items() if name == "more")
    assert {row.instance: row.late for row in content(engine)["feed_instances"] if row.late} == {
        hour(0): True,
        hour(6): True,
    }
    before = content(engine)
    assert rebuild(engine, history_of(facts, [5])) == len(facts)
    assert content(engine) == before


def test_what_comes_where_nothing_was_is_stale(engine: Engine) -> None:
    facts = landed_again(2)
    after = facts[-1].event_id + 1
    fold(engine, history_of([*facts, Logged(after, FeedInstanceAvailable("primary", "other", hour(1), "v1", hour(3)))]))
    assert stale(engine) == {("rows", 0): False, ("rows", 1): False, ("more", 0): False, ("more", 1): True}


def test_another_version_after_one_that_was_too_late_is_stale_again(engine: Engine) -> None:
    facts = landed_again(1)
    after = facts[-1].event_id + 1
    fold(engine, history_of([*facts, Logged(after, FeedInstanceAvailable("primary", "raw", hour(0), "v3", hour(3)))]))
    assert stale(engine)["rows", 0]


def test_what_was_read_before_the_collector_saw_it_is_not_stale(engine: Engine) -> None:
    read = {"rows": (Consumption("raw", hour(0), "v2"),)}
    facts = [
        Logged(1, FeedInstanceAvailable("primary", "raw", hour(0), "v1", hour(1))),
        Logged(2, InstanceChanged("p", "primary", hour(0), InstanceState.RUNNING, hour(1)), "a"),
        Logged(3, InstanceChanged("p", "primary", hour(0), InstanceState.SUCCEEDED, hour(1), inputs=read), "a"),
        Logged(4, FeedInstanceAvailable("primary", "raw", hour(0), "v2", hour(1))),
        Logged(5, FeedInstanceAvailable("primary", "raw", hour(0), "v3", hour(1))),
    ]
    found = []
    for end in (3, 4, 5):
        fold(engine, history_of(facts[:end]))
        found.append(stale(engine)["rows", 0])
    assert found == [False, False, True]


def test_what_was_evicted_is_not_stale_until_something_else_is_there(engine: Engine) -> None:
    facts = landed_again(3)
    after = facts[-1].event_id
    facts += [
        Logged(after + 1, FeedInstanceEvicted("primary", "raw", hour(2), "delete", hour(9), 7), "e"),
        Logged(after + 2, FeedInstanceAvailable("primary", "raw", hour(2), "v3", hour(9))),
    ]
    found = []
    for end in (after, after + 1, after + 2):
        fold(engine, history_of(facts[:end]))
        found.append(stale(engine)["rows", 2])
    assert found == [True, False, True]


def test_a_rerun_that_reads_the_present_version_is_not_stale(engine: Engine) -> None:
    facts = landed_again(3)
    after = facts[-1].event_id
    read = {"rows": (Consumption("raw", hour(2), "v2"),)}
    facts += [
        Logged(after + 1, RunQueued("p", "primary", (hour(2),)), "b"),
        Logged(after + 2, InstanceChanged("p", "primary", hour(2), InstanceState.RUNNING, hour(9)), "b"),
        Logged(after + 3, InstanceChanged("p", "primary", hour(2), InstanceState.SUCCEEDED, hour(9), inputs=read), "b"),
    ]
    fold(engine, history_of(facts[:-1]))
    assert stale(engine)["rows", 2]
    fold(engine, history_of(facts))
    assert not stale(engine)["rows", 2]
