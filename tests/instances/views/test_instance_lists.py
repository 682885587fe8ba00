"""Lists of instances: what the ledger has, and what is due and was given no run."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from falcon_assets.errors import QueryError, UnknownEntityError, UnknownInstanceError
from falcon_assets.history.database import upsert
from falcon_assets.history.tables import DEFINITION_VERSIONS, ENTITY_STATUS
from falcon_assets.instances.operations.questions import ListInstances
from falcon_assets.instances.rules import waiting as rules
from falcon_assets.instances.views.listing import instance_status, latest, list_instances, summarize_instances
from falcon_assets.instances.views.query import CODES, InstanceInfo, InstanceQuery
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.installation import Installation
from falcon_assets.planning import reasons as planned
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.reasons import Reason
from tests.builders import cluster_yaml, feed_yaml, on, process_yaml
from tests.hours import START, hour
from tests.operations.opening import OpenAt, installation_of
from tests.operations.rows import feed_row, process_row, write

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}"
ENTITIES = (
    cluster_yaml("primary", colo="east")
    + cluster_yaml("backup", colo="west")
    + feed_yaml("raw", on("primary", type="source"), on("backup", type="target"), schedule=True)
    + feed_yaml("made")
    + process_yaml("make", "raw", "made", schedule=True, parallel=1)
    + f"""---
kind: process
name: idle
frequency: days(1)
clusters: [{{name: primary, {SPAN}}}, {{name: backup, {SPAN}}}]
inputs: [{{name: rows, feed: raw, start: "today(0,0)", end: "today(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
"""
)
COPY = "raw from primary"


installation = installation_of({"all.yaml": ENTITIES, "a.sql": "SELECT 1"}, "2013-01-01T05:30Z")


def said(items: tuple[InstanceInfo, ...]) -> list[tuple[str, str, int, str]]:
    return [(one.entity, one.cluster, (one.instance - START) // timedelta(hours=1), one.state.value) for one in items]


def test_what_is_due_and_was_given_no_run_waits_with_its_reason(installation: Installation) -> None:
    write(installation, *(feed_row("raw", number) for number in (0, 1, 2, 3)))
    write(
        installation,
        process_row("make", 0, "SUCCEEDED", run_id="run-0", started=hour(1), ended=hour(2)),
        process_row("make", 1, "TIMED_OUT", reason="gave up", reason_data={"kind": "own", "text": "gave up"}),
        process_row("make", 2, "RUNNING", run_id="run-2", started=hour(3)),
    )
    page = list_instances(installation, InstanceQuery("make"))
    data = page.as_data()
    assert (data["total"], data["next"]) == (6, None)
    common = {"entity": "make", "kind": "process", "cluster": "primary", "definition": None, "executor": None}
    unknown = {"attempt": 0, "run": None, "started": None, "ended": None}
    assert data["items"][0] == {
        **common,
        "instance": "2013-01-01T00:00Z",
        "state": "SUCCEEDED",
        "reason": None,
        "attempt": 1,
        "run": "run-0",
        "started": "2013-01-01T01:00:00+00:00",
        "ended": "2013-01-01T02:00:00+00:00",
    }
    assert data["items"][1]["reason"] == {"kind": "own", "text": "gave up"}
    full = {
        "kind": "no_free_slot",
        "text": "waits for a free slot (parallel: 1)",
        "parallel": 1,
        "one_at_a_time": False,
    }
    assert data["items"][3] == {
        **common,
        "instance": "2013-01-01T03:00Z",
        "state": "WAITING",
        "reason": full,
        **unknown,
    }
    missing = data["items"][4]["reason"]
    assert (missing["kind"], missing["text"]) == ("inputs_missing", "waits for rows: raw 2013-01-01T04:00Z")
    assert missing["inputs"] == [{"input": "rows", "feed": "raw", "instance": "2013-01-01T04:00Z"}]


def test_lists_by_reason(installation: Installation) -> None:
    write(installation, *(feed_row("raw", number) for number in (0, 1, 3)))
    failed = {"reason": "no space", "run_id": "run-1", "started": hour(2), "ended": hour(3)}
    write(
        installation,
        process_row("make", 0, "SUCCEEDED", run_id="run-0", started=hour(1), ended=hour(2)),
        process_row("make", 1, "FAILED", failures=9, **failed),
        process_row("make", 3, "KILLED", reason_data={"kind": "killed", "text": "killed by ann"}),
    )

    def found(*reasons: str, **more: Any) -> list[list[int]]:
        """The hours in each page."""
        query, pages = InstanceQuery("make", reasons=reasons, **more), []
        while True:
            page = list_instances(installation, query)
            pages.append([hour for _, _, hour, _ in said(page.items)])
            if page.next is None:
                return pages
            query = replace(query, after=page.next)

    assert found("inputs_missing") == [[2, 4, 5]]
    assert found("inputs_missing", limit=2) == [[2, 4], [5]]
    assert found("inputs_missing", limit=2, sort="-instance") == [[5, 4], [2]]
    assert found("failed", "killed", "inputs_missing", limit=2, sort="-started") == [[1, 5], [4, 3], [2]]
    assert found("killed", "failed") == [[1, 3]]
    assert found("killed", "failed", filters=(("state", "FAILED"),)) == [[1]]
    assert found("killed", filters=(("state", "SUCCEEDED"),)) == [[]]
    assert found("no_free_slot") == [[]]
    (missing,) = list_instances(installation, InstanceQuery("raw", "feed", reasons=("not_landed",), limit=1)).items
    assert (missing.cluster, missing.instance) == ("primary", hour(2))
    with pytest.raises(QueryError, match="there is no reason 'not_landed'; there is: in_run, "):
        ListInstances(name="make", reasons=("not_landed",)).run(installation)


def test_a_list_by_reason_counts_all_of_them_in_each_part(installation: Installation) -> None:
    first = ListInstances(name="make", reasons=("inputs_missing",), limit=2).run(installation)
    second = ListInstances(name="make", reasons=("inputs_missing",), limit=2, after=first.next).run(installation)
    assert (first.total, second.total, len(second.items)) == (6, 6, 2)


def test_a_list_that_is_not_counted_has_the_same_items_and_parts(installation: Installation) -> None:
    for asked in (
        ListInstances(name="make", limit=2),
        ListInstances(name="raw", type="feed", limit=2),
        ListInstances(name="make", reasons=("inputs_missing",), limit=2),
    ):
        page = asked.model_copy(update={"uncounted": True}).run(installation)
        counted = asked.run(installation)
        assert counted.total is not None
        assert counted.total > len(counted.items) == 2
        assert page == replace(counted, total=None)


def test_every_reason_that_a_list_can_have_is_known() -> None:
    modules = (planned.__name__, rules.__name__)
    every = {one.kind for one in leaves(Reason) if one.__module__ in modules}
    # Of instances that wait, other rules say why.
    assert every - set(CODES) == {"store_away", "being_written", "executor_away", "turn_pending"}


def leaves(kind: type[Reason]) -> Iterator[type[Reason]]:
    below = kind.__subclasses__()
    for one in below:
        yield from leaves(one)
    if not below:
        yield kind


def test_what_is_ready_is_launched_next(installation: Installation) -> None:
    write(installation, feed_row("raw", 0))
    (one,) = list_instances(installation, InstanceQuery("make", limit=1)).items
    assert one.reason and one.reason["kind"] == "launch_pending"


def test_what_is_not_scheduled_says_so(installation: Installation) -> None:
    found = list_instances(installation, InstanceQuery("idle")).items
    assert said(found) == [("idle", "backup", 0, "WAITING"), ("idle", "primary", 0, "WAITING")]
    assert [one.reason and one.reason["kind"] for one in found] == ["not_scheduled"] * 2


def test_one_instance_may_lie_in_the_future(installation: Installation) -> None:
    (one,) = instance_status(installation, InstanceQuery("make", start=hour(9))).items
    reason = {"kind": "time_pending", "text": "is due at 2013-01-01T09:00Z", "until": "2013-01-01T09:00Z"}
    assert (one.state, one.reason) == (InstanceState.WAITING, reason)


def test_one_instance_that_there_is_not(installation: Installation) -> None:
    with pytest.raises(UnknownInstanceError, match="make has no instance 2013-01-01T00:30Z"):
        instance_status(installation, InstanceQuery("make", start=START + timedelta(minutes=30)))


def test_a_status_without_a_time_shows_the_latest(installation: Installation) -> None:
    write(installation, process_row("make", 5, "RUNNING"))
    found = instance_status(installation, latest(InstanceQuery("make", limit=2))).items
    assert said(found) == [("make", "primary", 5, "RUNNING"), ("make", "primary", 4, "WAITING")]


def test_a_feed_stands_for_its_replications(installation: Installation) -> None:
    write(installation, process_row(COPY, 0, "SUCCEEDED", "backup"))
    found = list_instances(installation, InstanceQuery("raw", end=hour(1))).items
    assert said(found) == [(COPY, "backup", 0, "SUCCEEDED"), (COPY, "backup", 1, "WAITING")]
    assert {one.kind for one in found} == {"replication"}
    with pytest.raises(UnknownEntityError, match="feed 'made' is not replicated"):
        list_instances(installation, InstanceQuery("made"))


CHOICES: dict[str, tuple[InstanceQuery, set[tuple[str, str]]]] = {
    "all": (InstanceQuery(), {("make", "primary"), ("idle", "primary"), ("idle", "backup"), (COPY, "backup")}),
    "cluster": (InstanceQuery(cluster="backup"), {("idle", "backup"), (COPY, "backup")}),
    "colo": (InstanceQuery(colo="east"), {("make", "primary"), ("idle", "primary")}),
    "text": (InstanceQuery(text="MAK"), {("make", "primary")}),
    "kind": (InstanceQuery(filters=(("kind", "replication"),)), {(COPY, "backup")}),
    "entity": (InstanceQuery(filters=(("entity", "raw"), ("entity", "make"))), {("make", "primary"), (COPY, "backup")}),
    "fields": (InstanceQuery(filters=(("entity", "idle"), ("cluster", "primary"))), {("idle", "primary")}),
    "state": (InstanceQuery(filters=(("state", "failed"),)), set()),
}


@pytest.mark.parametrize(("query", "found"), CHOICES.values(), ids=CHOICES)
def test_choices(installation: Installation, query: InstanceQuery, found: set[tuple[str, str]]) -> None:
    assert {(one.entity, one.cluster) for one in list_instances(installation, query).items} == found


@pytest.mark.parametrize("seed", [0, *(pytest.param(one, marks=pytest.mark.soak) for one in (1, 2, 3))])
def test_parts_hold_everything_once_and_in_order(installation: Installation, seed: int) -> None:
    """Against all instances in memory, with rows that are on no timeline any more."""
    chance = random.Random(seed)
    states = [state.value for state in InstanceState]
    expected = {(one, cluster, 0): "WAITING" for one, cluster in (("idle", "primary"), ("idle", "backup"))}
    for number in range(6):
        expected |= {("make", "primary", number): "WAITING", (COPY, "backup", number): "WAITING"}
    rows = {key: chance.choice(states) for key in expected if chance.random() < 0.6}
    rows |= {("idle", "primary", 7): "FAILED", ("idle", "backup", 3): "SUCCEEDED"}
    started = {key: chance.choice([None, hour(20), hour(21)]) for key in rows}
    attempts = {key: chance.choice([0, 1, 3]) for key in rows}
    write(
        installation,
        *(
            process_row(key[0], key[2], state, key[1], started=started[key], attempt=attempts[key])
            for key, state in rows.items()
        ),
    )
    expected |= rows

    def order(sort: str) -> Callable[[Any], Any]:
        never = hour(0) if sort.startswith("-") else hour(999)
        orders: dict[str, Callable[[Any], Any]] = {
            "entity": lambda one: one[:3],
            "instance": lambda one: (one[2], *one[:2]),
            "started": lambda one: (started.get(one[:3]) or never, *one[:3]),
            "attempt": lambda one: (attempts.get(one[:3], 0), *one[:3]),
        }
        return orders[sort.removeprefix("-")]

    sorts = [f"{sign}{name}" for name in ("entity", "instance", "started", "attempt") for sign in ("", "-")]
    choices = [(), ("WAITING",), ("FAILED", "RUNNING"), ("WAITING", "SUCCEEDED")]
    for place, sort in enumerate(sorts):
        for wanted in choices if seed else [choices[0], choices[1 + place % 3]]:
            filters = tuple(("state", state) for state in wanted)
            fitting = [(*key, state) for key, state in expected.items() if not wanted or state in wanted]
            fitting.sort(key=order(sort), reverse=sort.startswith("-"))
            for limit in (1, 3, 100) if "entity" in sort else (2, 3):
                query, found = InstanceQuery(filters=filters, sort=sort, limit=limit), []
                while True:
                    page = list_instances(installation, query)
                    found += said(page.items)
                    assert page.total == len(fitting)
                    if page.next is None:
                        break
                    query = replace(query, after=page.next)
                assert found == fitting


@pytest.mark.parametrize("sort", ["entity", "-entity", "instance", "-instance"])
def test_a_part_of_a_list_asks_as_often_however_many_have_rows(
    installation: Installation, open_at: OpenAt, sort: str
) -> None:
    """Nobody looks for what has no row beyond the part that is shown."""
    asked: list[str] = []

    def said(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        asked.append(statement)

    numbers = []
    for hours in (600, 8_000):
        write(installation, *(process_row("make", number, "SUCCEEDED") for number in range(hours + 1)))
        with open_at(format_instant(hour(hours))) as later:
            listed = InstanceQuery("make", sort=sort, limit=10)
            assert list_instances(later, listed).total == hours + 1
            asked.clear()
            event.listen(later.ledger.engine, "before_cursor_execute", said)
            found = list_instances(later, listed).items
            event.remove(later.ledger.engine, "before_cursor_execute", said)
            numbers.append((len(found), len(asked)))
    assert numbers[0] == numbers[1]


def test_a_summary_counts(installation: Installation) -> None:
    write(
        installation,
        process_row("make", 0, "SUCCEEDED"),
        process_row("make", 1, "WAITING", queued_run="run-1"),
    )
    (found,) = summarize_instances(installation, InstanceQuery("make"))
    assert found.as_data() == {
        "entity": "make",
        "kind": "process",
        "cluster": "primary",
        "states": {"WAITING": 5, "SUCCEEDED": 1},
    }


def test_what_is_not_there(installation: Installation) -> None:
    with pytest.raises(UnknownEntityError, match=r"there is no process or feed 'mak' \(did you mean 'make'\?\)"):
        list_instances(installation, InstanceQuery("mak"))
    with pytest.raises(UnknownEntityError, match=r"there is no cluster 'primry' \(did you mean 'primary'\?\)"):
        list_instances(installation, InstanceQuery(cluster="primry"))
    with pytest.raises(QueryError, match="there is no state DONE; there is: WAITING, READY"):
        list_instances(installation, InstanceQuery(filters=(("state", "DONE"),)))


def test_a_next_of_another_list_is_refused(installation: Installation) -> None:
    page = list_instances(installation, InstanceQuery(limit=1))
    with pytest.raises(QueryError, match="it is the `next` of a list with --sort entity, not --sort -instance"):
        list_instances(installation, InstanceQuery(sort="-instance", after=page.next))
    for strange in ("x", "", "bnVsbA==", "ÿ", format_instant(START)):
        with pytest.raises(QueryError, match="is not the `next` of a list"):
            list_instances(installation, InstanceQuery(after=strange))


def test_each_instance_says_which_version_of_the_definition_it_has(installation: Installation) -> None:
    write(installation, *(feed_row("raw", number) for number in (0, 1, 2, 3, 4, 5)))
    versions = [("process", "make", 1, 0), ("process", "make", 2, 4), ("feed", "raw", 1, 0), ("feed", "raw", 2, 9)]
    said = {"text": "", "text_hash": "", "workflow_hash": None, "operation": "load", "actor": "", "reason": ""}
    rows = [dict(zip(("kind", "name", "version", "since"), one, strict=True)) | said for one in versions]
    status = {"kind": "process", "name": "make", "status": "RUNNING", "commanded": True, "since": hour(1)}
    with installation.ledger.engine.begin() as connection:
        upsert(connection, DEFINITION_VERSIONS, [{**one, "since": hour(one["since"])} for one in rows])
        upsert(connection, ENTITY_STATUS, [{**status, "scheduled_since": hour(1)}])
    write(
        installation,
        process_row("make", 0, "SUCCEEDED", run_id="run-0", started=hour(1), ended=hour(2), definition=7),
        process_row("make", 1, "SUCCEEDED", run_id="run-1", started=hour(1), ended=hour(2)),
        process_row("make", 2, "WAITING", definition=7),
    )
    made = list_instances(installation, InstanceQuery("make")).as_data()["items"]
    assert [one["definition"] for one in made] == [7, None, 1, 1, 2, 2]
    copied = list_instances(installation, InstanceQuery(COPY)).as_data()["items"]
    assert {one["definition"] for one in copied} == {2}
