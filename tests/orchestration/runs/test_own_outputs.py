"""Processes that are made from earlier instances of what they make: real runs, one instance after the other."""

from __future__ import annotations

import dagster as dg
from sqlalchemy import select

from falcon_assets.history.tables import PROCESS_INSTANCES
from tests.builders import cluster_yaml
from tests.world import World, world_of

FEED = """---
kind: feed
name: %s
frequency: %s
availability_flag: _SUCCESS
format: json
schema: "n int"
late_arrival: {cut_off: hours(20)}
locations: {data: "/%s/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}]
"""
PROCESS = """---
kind: process
name: %s
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: "2013-01-02T00:00Z"}}]
frequency: %s
timeout: hours(3)
inputs: [%s]
outputs: [%s]
workflow: {engine: spark-sql, path: %s.sql}
schedule: true
retry: {policy: periodic, delay: minutes(10), attempts: 1}
"""


def input_of(name: str, feed: str, first: str, last: str) -> str:
    return f'{{name: {name}, feed: {feed}, start: "{first}", end: "{last}"}}'


def output(feed: str) -> str:
    return f'{{name: {feed}, feed: {feed}, instance: "now(0,0)"}}'


NOW = ("now(0,0)", "now(0,0)")
BEFORE = ("now(-1,0)", "now(-1,0)")
LATE = "late_process: {policy: backoff, delay: hours(1), inputs: [{input: rows}, {input: before}]}\n"
FEEDS = ("raw", "state", "late-raw", "late-state", "a", "b", "c", "d")


def carries(raw: str, state: str) -> str:
    return ", ".join([input_of("rows", raw, *NOW), input_of("before", state, *BEFORE)])


def entities() -> str:
    both = (input_of("before", "c", "today(0,0)", "now(-1,0)"), f"{output('c')}, {output('d')}")
    fives = (input_of("before", "fives", "now(-5,0)", "now(-5,0)"), output("fives"))
    hourly, late = "hours(1)", carries("late-raw", "late-state")
    texts = [
        cluster_yaml(),
        *(FEED % (name, hourly, name) for name in FEEDS),
        FEED % ("fives", "hours(5)", "fives"),
        PROCESS % ("carry", hourly, carries("raw", "state"), output("state"), "carry") + "parallel: 4\n",
        PROCESS % ("carry-late", hourly, late, output("late-state"), "carry") + LATE,
        PROCESS % ("to-a", hourly, input_of("b", "b", *BEFORE), output("a"), "one") + "order: LIFO\n",
        PROCESS % ("to-b", hourly, input_of("a", "a", *NOW), output("b"), "one"),
        PROCESS % ("both", hourly, *both, "both"),
        PROCESS % ("by-fives", "hours(5)", *fives, "one"),
    ]
    return "".join(texts)


FILES = {
    "all.yaml": entities(),
    "carry.sql": "SELECT CAST(sum(IF(n > 900, raise_error('nobody believes that'), n)) AS INT) AS n "
    "FROM (SELECT n FROM rows UNION ALL SELECT n FROM before)",
    "one.sql": "SELECT 1 AS n",
    "both.sql": "CREATE TEMPORARY VIEW c AS SELECT 1 AS n; CREATE TEMPORARY VIEW d AS SELECT 1 AS n",
}


class OwnWorld(World):
    """The entities, what lands, and what is done about it."""

    def materialize(self, job: str, first: int, last: int) -> bool:
        """A range of partitions in one run, as the UI starts it."""
        tags = {
            "dagster/asset_partition_range_start": f"2013-01-01T{first:02}:00Z",
            "dagster/asset_partition_range_end": f"2013-01-01T{last:02}:00Z",
        }
        return self.run_job(job, "10:00", tags=tags).success

    def step(self, time: str, *processes: str) -> list[str]:
        """The same, in fewer words."""
        keys = super().step(time, *processes)
        return [key.replace("2013-01-01T", "").replace(" on primary", "") for key in keys]

    def states(self, process: str) -> dict[int, tuple[str, int, int]]:
        """State, attempt and failures by hour."""
        self.ledger.catch_up()
        with self.ledger.engine.connect() as connection:
            rows = connection.execute(select(PROCESS_INSTANCES).where(PROCESS_INSTANCES.c.process == process)).all()
        return {row.nominal.hour: (row.state, row.attempt, row.failures) for row in rows}


world = world_of(FILES, OwnWorld)


def test_dagster_shows_what_it_can(world: OwnWorld) -> None:
    definitions = world.definitions("00:00")
    dg.Definitions.validate_loadable(definitions)
    specs = {spec.key.path[-1]: spec for spec in definitions.resolve_all_asset_specs()}
    deps = {
        name: {dep.asset_key.path[-1]: dep.partition_mapping for dep in spec.deps}
        for name, spec in specs.items()
        if name in ("state", "a", "b", "c", "d", "fives")
    }
    for of_itself in (deps["state"]["state"], deps["c"]["c"]):
        assert isinstance(of_itself, dg.TimeWindowPartitionMapping)
        assert (of_itself.start_offset, of_itself.end_offset) == (-1, -1)
    assert {name: sorted(found) for name, found in deps.items()} == {
        "state": ["raw", "state"],
        "a": [],
        "b": ["a"],
        "c": ["c"],
        "d": [],
        "fives": [],
    }
    told = {
        name: spec.metadata["falcon/not_in_graph"]
        for name, spec in specs.items()
        if "falcon/not_in_graph" in spec.metadata
    }
    assert told == {
        "a": "primary/b: made from earlier instances of this",
        "fives": "primary/fives: made from earlier instances of this",
    }


def test_the_instances_of_a_run_go_one_after_the_other(world: OwnWorld) -> None:
    for number in range(6):
        world.write("raw", number, number, 1)
    assert world.materialize("primary__carry_job", 0, 5)
    assert [world.result("state", number) for number in range(6)] == [[1], [3], [6], [10], [15], [21]]


def test_what_needs_an_instance_that_failed_is_left_alone(world: OwnWorld) -> None:
    world.write("raw", 7, 1000)
    for number in (6, 8, 9):
        world.write("raw", number, 1)
    assert not world.materialize("primary__carry_job", 6, 9)
    assert world.result("state", 6) == [22]
    states = world.states("carry")
    assert {number: states.get(number) for number in range(6, 10)} == {
        6: ("SUCCEEDED", 1, 0),
        7: ("FAILED", 1, 1),
        8: None,
        9: None,
    }


def test_coordinators_go_on_where_a_person_has_mended_it(world: OwnWorld) -> None:
    (retried,) = world.step("10:30", "carry")
    assert retried.startswith("carry, 07:00Z to 09:00Z, attempts ")
    states = world.states("carry")
    assert {number: states[number] for number in (7, 8, 9)} == {
        7: ("FAILED", 2, 2),
        8: ("WAITING", 1, 0),
        9: ("WAITING", 1, 0),
    }
    assert world.step("20:00", "carry") == [], "nobody times out behind it"
    world.write("raw", 7, 1)
    assert world.materialize("primary__carry_job", 7, 7)
    assert world.step("20:10", "carry") == ["carry, 08:00Z to 09:00Z, attempt 2"]
    assert [world.result("state", number) for number in (7, 8, 9)] == [[23], [24], [25]]


def test_late_data_goes_through_to_the_end_of_the_chain(world: OwnWorld) -> None:
    for number in range(4):
        world.write("late-raw", number, 1)
    assert world.step("04:00", "carry-late") == ["carry-late, 00:00Z to 03:00Z, attempt 1"]
    world.write("late-raw", 1, 1, 100)
    assert world.step("04:10", "carry-late") == []
    world.write("late-raw", 4, 1)
    # The newest waits until all that it is made from is there anew.
    assert world.step("05:00", "carry-late") == [
        "carry-late, 01:00Z, attempt 2",
        "carry-late, 02:00Z, attempt 2",
        "carry-late, 03:00Z, attempt 2",
        "carry-late, 04:00Z, attempt 1",
    ]
    assert [world.result("late-state", number) for number in range(5)] == [[1], [102], [103], [104], [105]]
    assert {state for state, _, _ in world.states("carry-late").values()} == {"SUCCEEDED"}
    assert world.step("06:00", "carry-late") == []
