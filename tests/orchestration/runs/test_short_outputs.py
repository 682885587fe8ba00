"""Processes that live longer than what they write: only what can be written is due, runs and has a partition."""

from __future__ import annotations

import dagster as dg

from falcon_assets.features.retention.pending_readers import PendingReaders
from falcon_assets.history.tables import PROCESS_INSTANCES
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.world import World, world_of

FEED = """---
kind: feed
name: %s
frequency: %s
availability_flag: _SUCCESS
locations: {data: "/%s/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
clusters: [{name: primary, validity: {start: 2013-01-01T%s:00Z, end: 2013-01-0%s:00Z}, retention: {limit: hours(1)}}]
"""
PROCESS = """---
kind: process
name: %s
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: 2013-01-01T08:00Z}}]
frequency: hours(1)
parallel: %s
timeout: minutes(30)
inputs: [{name: rows, feed: rows, start: "now(0,0)", end: "now(0,0)", optional: %s}]
outputs: [%s]
workflow: {engine: spark-sql, path: sum.sql}
schedule: true
"""
HOUR = '{name: %s, feed: %s, instance: "now(0,0)"}'


def entities() -> str:
    feeds = (
        ("rows", "hours(1)", "00", "1T23"),
        ("short", "hours(1)", "02", "1T04"),
        ("later", "hours(1)", "03", "1T23"),
        ("earlier", "hours(1)", "00", "1T05"),
        ("days", "days(1)", "05", "2T00"),
        ("whole", "hours(1)", "00", "1T23"),
        ("waited", "hours(1)", "06", "1T23"),
    )
    both = f"{HOUR % ('one', 'later')}, {HOUR % ('two', 'earlier')}"
    processes = (
        ("one-to-one", "9", "true", HOUR % ("out", "short")),
        ("both", "9", "true", both),
        ("day", "9", "true", '{name: out, feed: days, instance: "now(0,0)"}'),
        ("fine", "9", "true", HOUR % ("out", "whole")),
        ("waits", "9", "false", HOUR % ("out", "waited")),
    )
    texts = [FEED % (name, frequency, name, start, end) for name, frequency, start, end in feeds]
    text = "".join([cluster_yaml(), *texts, *(PROCESS % one for one in processes)])
    return text.replace("name: rows\n", 'name: rows\nformat: json\nschema: "n int"\n')


world = world_of({"all.yaml": entities(), "sum.sql": "SELECT count(*) AS n FROM rows"})


def times(*hours: int) -> list[str]:
    return [f"2013-01-01T{hour:02}:00Z" for hour in hours]


EXPECTED = {
    "one-to-one": times(2, 3),
    "both": times(3, 4),
    "day": times(5, 6, 7),
    "fine": times(*range(8)),
}


def test_what_can_be_written_is_launched_in_partitions_that_exist(world: World) -> None:
    outlook = world.decide("12:00")
    definitions = definitions_of(world.store, world.at("12:00"))
    launched: dict[str, list[str]] = {}
    for run in outlook.runs:
        name = run.workload.name
        launched.setdefault(name, []).extend(map(format_instant, run.launch.nominals))
        partitions = definitions.resolve_job_def(run.job_name).partitions_def
        assert partitions is not None
        for end in ("start", "end"):
            assert partitions.has_partition_key(run.tags[f"dagster/asset_partition_range_{end}"])
    assert launched == EXPECTED
    # Nobody waits for the others, and they do not time out either.
    said = {name: (dict(one.waiting), one.timed_out) for (name, _), one in outlook.decisions.items()}
    waiting, _ = said.pop("waits")
    assert list(map(format_instant, waiting)) == times(6, 7)
    assert said == dict.fromkeys(EXPECTED, ({}, ()))


def test_they_run_to_their_end(world: World) -> None:
    definitions = definitions_of(world.store, world.at("12:00"))
    for run in world.decide("12:00").runs:
        if run.workload.name in ("one-to-one", "day"):
            job = definitions.resolve_job_def(run.job_name)
            job.execute_in_process(instance=world.instance, tags=dict(run.tags))
    world.ledger.catch_up()
    table = PROCESS_INSTANCES.c
    with world.ledger.engine.connect() as connection:
        rows = connection.execute(PROCESS_INSTANCES.select().order_by(table.process, table.nominal)).all()
    done = [(row.process, format_instant(row.nominal)) for row in rows if row.state == "SUCCEEDED"]
    assert done == [(name, time) for name in ("day", "one-to-one") for time in EXPECTED[name]]
    decisions = world.decide("12:00").decisions
    assert [decisions[name, "primary"].first_open for name in ("one-to-one", "day")] == [2, 3]


def test_retention_keeps_nothing_for_what_does_not_run(world: World) -> None:
    feed = world.store.feed("rows")
    with world.ledger.engine.begin() as connection:
        cluster = world.store.cluster("primary")
        now = world.at("12:00").now()
        found = PendingReaders(connection, world.store, cluster, [feed], now, with_copies=False)
        needs = found.of(feed, list(map(parse_instant, times(*range(8)))))
        held = [{time for time in times(*range(8)) if need(parse_instant(time))} for need in needs]
    # In the order of the processes; two of them have run, and "waits" needs what nobody has landed.
    assert [sorted(one) for one in held] == [[], EXPECTED["both"], [], EXPECTED["fine"], times(6, 7)]


def test_a_person_asks_for_partitions_that_exist(world: World) -> None:
    """Of a feed that outlives its process there are others: they fail in a sentence, one by one."""
    definitions = definitions_of(world.store, world.at("12:00"))
    days = definitions.get_assets_def(dg.AssetKey(["primary", "days"])).partitions_def
    assert days is not None
    assert days.get_partition_keys() == EXPECTED["day"]
    tags = {f"dagster/asset_partition_range_{end}": key for end, key in zip(("start", "end"), times(7, 8), strict=True)}
    job = definitions.resolve_job_def("primary__fine_job")
    result = job.execute_in_process(instance=world.instance, tags=tags, raise_on_error=False)
    assert not result.success
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    said = str(failure.step_failure_data.user_failure_data)
    assert "process 'fine' on cluster 'primary' has no instance 2013-01-01T08:00Z" in said
    assert (world.settings.home / "data/primary/whole/2013-01-01-07/_SUCCESS").exists()
