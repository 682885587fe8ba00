"""What became of versions, who made them and from what."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from falcon_assets.history.events.data_version import Version
from falcon_assets.history.events.event_log import Fact, Logged
from falcon_assets.history.events.feed_instances import FeedArchiveExpired, FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.folding.reduce import Rows
from falcon_assets.history.folding.version_rows import EdgeRow, VersionKey
from falcon_assets.planning.instance_record import InstanceState, LateChange
from falcon_assets.planning.version_columns import OutputColumn, OutputColumns, VersionStatus
from tests.hours import hour

T = hour(0)
S = VersionStatus


def at(event_id: int) -> datetime:
    return hour(100) + timedelta(minutes=event_id)


def rows_after(*facts: Fact | tuple[Fact, str]) -> Rows:
    rows, history = Rows(), enumerate(facts, 1)
    rows.apply(Logged(number, *(one if isinstance(one, tuple) else (one,))) for number, one in history)
    return rows


def raw(version: str, event_id: int, **more: Any) -> FeedInstanceAvailable:
    return FeedInstanceAvailable("primary", "raw", T, version, at(event_id), **more)


def made(version: str, event_id: int, *read: Consumption, run: str = "a", **more: Any) -> tuple[Fact, str]:
    told = {"process": "p", "nominal": T, "inputs": {"x": read}, **more}
    return FeedInstanceAvailable("primary", "out", T, version, at(event_id), **told), run


def started(event_id: int, run: str = "a") -> tuple[Fact, str]:
    return InstanceChanged("p", "primary", T, InstanceState.RUNNING, at(event_id)), run


def key(version: str, feed: str = "raw", cluster: str = "primary") -> VersionKey:
    return cluster, feed, T, version


def edges(rows: Rows) -> dict[tuple[str, str], EdgeRow]:
    names = {row.number: f"{key[1]} {key[3]} on {key[0]}" for key, row in rows.versions.known.items()}
    return {(names[output], names[read]): row for (output, read), row in rows.versions.edges.items()}


def test_what_landed_and_what_was_made_from_it() -> None:
    rows = rows_after(
        raw("v1", 1, bytes=9, files=1, path="/raw"),
        started(2),
        made("o1", 3, Consumption("raw", T, "v1"), records=4, definition=2, path="/out"),
    )
    landed = Version(*key("v1"), at(1), 9, None, 1, "/raw", number=1, event_id=1, status=S.AVAILABLE)
    told = {"process": "p", "nominal": T, "run_id": "a", "made_at": at(3), "attempt": 1, "definition": 2}
    output = Version(*key("o1", "out"), at(3), None, 4, path="/out", number=2, event_id=3, status=S.AVAILABLE, **told)
    assert rows.versions.known == {key("v1"): landed, key("o1", "out"): output}
    assert edges(rows) == {("out o1 on primary", "raw v1 on primary"): EdgeRow("p", "a", 2)}


def test_a_late_rerun_replaces_a_version_which_stays() -> None:
    late = (LateChange("x", "raw", T, "v1", "v2"),)
    rows = rows_after(
        raw("v1", 1),
        started(2),
        made("o1", 3, Consumption("raw", T, "v1")),
        raw("v2", 4),
        started(5, "b"),
        made("o2", 6, Consumption("raw", T, "v2"), run="b", late=late),
    )
    known = rows.versions.known
    ended = {key: (row.status, row.ended_at, row.ended_by) for key, row in known.items()}
    assert ended == {
        key("v1"): (S.REPLACED, at(4), None),
        key("v2"): (S.AVAILABLE, None, None),
        key("o1", "out"): (S.REPLACED, at(6), "b"),
        key("o2", "out"): (S.AVAILABLE, None, None),
    }
    assert [(row.attempt, row.late) for name, row in known.items() if name[1] == "out"] == [(1, False), (2, True)]
    assert edges(rows).keys() == {
        ("out o1 on primary", "raw v1 on primary"),
        ("out o2 on primary", "raw v2 on primary"),
    }


def test_what_was_read_before_a_collector_saw_it_is_known() -> None:
    rows = rows_after(raw("v1", 1), made("o1", 2, Consumption("raw", T, "v2"), Consumption("raw", hour(1), None)))
    assert rows.versions.known[key("v2")] == Version(*key("v2"), number=3, event_id=2)
    assert edges(rows).keys() == {("out o1 on primary", "raw v2 on primary")}
    rows.apply([Logged(3, raw("v2", 3))])
    assert rows.versions.known[key("v2")] == Version(*key("v2"), at(3), number=3, event_id=3, status=S.AVAILABLE)


@pytest.mark.parametrize("archived", [None, "/archive"])
def test_what_was_evicted_stays_and_may_come_back(archived: str | None) -> None:
    gone = FeedInstanceEvicted("primary", "raw", T, "archive", at(2), archived_to=archived)
    rows = rows_after(raw("v1", 1), (gone, "r"), (replace(gone, at=at(3)), "again"))
    landed = Version(*key("v1"), at(1))
    evicted = replace(
        landed, number=1, event_id=1, status=S.EVICTED, ended_at=at(2), ended_by="r", archived_to=archived
    )
    assert rows.versions.known == {key("v1"): evicted}
    rows.apply([Logged(4, raw("v2", 4))])
    assert rows.versions.known[key("v1")] == evicted
    rows.apply([Logged(5, raw("v1", 5))])
    assert rows.versions.known[key("v1")] == Version(*key("v1"), at(5), number=1, event_id=5, status=S.AVAILABLE)


def test_what_went_from_its_archive_is_nowhere() -> None:
    gone = FeedInstanceEvicted("primary", "raw", T, "archive", at(2), archived_to="/archive")
    expired = FeedArchiveExpired("primary", "raw", T, "/archive", at(3), 7, "too old", None, "v1")
    other = replace(expired, archive_expired="/another")
    rows = rows_after(raw("v1", 1), (gone, "r"), (other, "again"))
    assert rows.versions.known[key("v1")].archived_to == "/archive"
    rows.apply([Logged(4, expired), Logged(5, expired)])
    assert rows.versions.known[key("v1")].archived_to is None
    assert rows.versions.known[key("v1")].status is S.EVICTED
    assert rows.moved["evicted_bytes", "raw", "primary", "archived"] == 7  # said twice by a pass that was killed


def test_what_nobody_had_seen_before_it_was_evicted_has_no_version() -> None:
    assert rows_after(FeedInstanceEvicted("primary", "raw", T, "delete", at(1))).versions.known == {}


def test_a_copy_is_made_from_the_versions_of_all_its_sources() -> None:
    read = Consumption("raw", T, "w1", "west")
    copied, run = made(
        "c1", 1, read, process="raw from west", source_versions={"west": "w1", "east": "e1", "far": None}
    )
    rows = rows_after((replace(copied, cluster="backup", feed="raw"), run))
    assert edges(rows) == {
        ("raw c1 on backup", f"raw {version} on {cluster}"): EdgeRow("raw from west", "a", None)
        for cluster, version in (("west", "w1"), ("east", "e1"))
    }


def test_what_a_run_made_is_made_by_it_although_a_collector_sees_it_again() -> None:
    rows = rows_after(
        made("o1", 1, Consumption("raw", T, "v1")), FeedInstanceAvailable("primary", "out", T, "o1", at(2))
    )
    row = rows.versions.known[key("o1", "out")]
    assert (row.process, row.run_id, row.seen_at, row.event_id) == ("p", "a", at(1), 2)


def test_what_is_made_again_comes_from_all_that_it_was_ever_made_from() -> None:
    rows = rows_after(
        made("o1", 1, Consumption("raw", T, "v1")),
        made("o2", 2, Consumption("raw", T, "v2")),
        made("o1", 3, Consumption("raw", T, "v3"), run="c"),
    )
    runs = {read: row.run_id for (output, read), row in edges(rows).items() if output == "out o1 on primary"}
    assert runs == {"raw v1 on primary": "a", "raw v3 on primary": "c"}
    assert rows.versions.known[key("o1", "out")].run_id == "c"


def test_a_version_that_is_restored_is_there_again_as_it_was_made() -> None:
    restored = FeedInstanceAvailable("primary", "out", T, "o1", at(3), restored_by="ann")
    rows = rows_after(
        made("o1", 1, Consumption("raw", T, "v1")), made("o2", 2, Consumption("raw", T, "v2"), run="b"), restored
    )
    status = {name[3]: (row.status, row.run_id) for name, row in rows.versions.known.items() if name[1] == "out"}
    assert status == {"o1": (S.AVAILABLE, "a"), "o2": (S.REPLACED, "b")}
    there = rows.versions.known[key("o1", "out")]
    assert (there.restored_by, there.seen_at, there.made_at) == ("ann", at(3), at(1))
    again = FeedInstanceAvailable("primary", "out", T, "o1", at(4))
    seen = rows_after(made("o1", 1), made("o2", 2, run="b"), restored, again)
    assert seen.versions.known[key("o1", "out")].restored_by == "ann"
    replaced = rows_after(made("o1", 1), made("o2", 2, run="b"), restored, made("o3", 4), made("o1", 5))
    assert replaced.versions.known[key("o1", "out")].restored_by is None
    assert ("out o1 on primary", "raw v1 on primary") in edges(rows)


def test_what_was_read_and_is_not_declared_is_an_edge_too() -> None:
    read = Consumption("raw", T, "v1")
    rows = rows_after(raw("v1", 1), made("o1", 2, undeclared=(read, Consumption("gone", T, None))))
    assert edges(rows) == {("out o1 on primary", "raw v1 on primary"): EdgeRow("p", "a", None, declared=False)}
    declared = rows_after(raw("v1", 1), made("o1", 2, read, undeclared=(read,)))
    assert [one.declared for one in declared.versions.edges.values()] == [True]


def test_what_is_of_no_feed_stays_with_what_was_made_from_it() -> None:
    foreign = made("o1", 1, places=("s3://else/x", "/y"))
    again = FeedInstanceAvailable("primary", "out", T, "o1", at(2))
    for facts in ([foreign], [foreign, again]):
        row = rows_after(*facts).versions.known[key("o1", "out")]
        assert row.places == ("s3://else/x", "/y")
    assert rows_after(foreign, made("o1", 2)).versions.known[key("o1", "out")].places == ()


def test_columns_are_kept_once_for_all_that_were_made_alike() -> None:
    columns = OutputColumns((OutputColumn("n", "int", (("raw", "m"),), is_opaque=True),), (("raw", "k"),))
    rows = rows_after(made("o1", 1, columns=columns), made("o2", 2, columns=columns), made("o3", 3))
    (plan,) = rows.versions.plans
    assert [rows.versions.known[key(one, "out")].plan for one in ("o1", "o2", "o3")] == [plan, plan, None]
    assert OutputColumns.of_data(rows.versions.plans[plan]) == columns
    again = rows_after(made("o1", 1, columns=columns), raw("x", 2))
    assert list(again.versions.plans) == [plan]
