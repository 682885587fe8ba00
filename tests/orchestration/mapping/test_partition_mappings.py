"""Every mapping, built-in or ours, against the planning that decides what a run reads."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import cache
from typing import Any

import dagster as dg
import pytest

from falcon_assets.catalog.checked_entities import relations
from falcon_assets.catalog.store import EntityStore
from falcon_assets.history.mapping.partition_mappings import InputWindowMapping
from falcon_assets.history.mapping.partitions import AssetPartitions, instant_of_key, key_of, partitions_of
from falcon_assets.instances.assets import OpOptions, ProcessAssets
from falcon_assets.instances.runs.run_definitions import DefinitionRecording
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.planning.input_windows import input_instances, output_instance, widest
from falcon_assets.planning.timeline import Timeline, feed_timeline, process_timeline
from falcon_assets.planning.workloads import ProcessWorkload
from falcon_assets.settings import load_settings
from tests.builders import VALIDITY, make_cluster, make_feed, make_process

CLUSTER = make_cluster()
NEW_YORK = "America/New_York"
MIDNIGHTS = {"start": "2013-01-01T05:00Z", "end": "2013-12-01T05:00Z"}


def feed(name: str, frequency: str, validity: dict[str, str] = VALIDITY, timezone: str = "UTC") -> Feed:
    path = f"/{name}/${{YEAR}}/${{MONTH}}/${{DAY}}/${{HOUR}}/${{MINUTE}}"
    return make_feed(
        name=name, frequency=frequency, timezone=timezone, locations={"data": path},
        clusters=[{"name": "primary", "validity": validity}],
    )  # fmt: skip


def process(frequency: str, start: str, end: str, output: str = "now(0,0)", **more: Any) -> Process:
    validity = more.pop("validity", VALIDITY)
    return make_process(
        frequency=frequency,
        clusters=[{"name": "primary", "validity": validity}],
        inputs=[{"name": "input", "feed": "in", "start": start, "end": end}],
        outputs=[{"name": "output", "feed": "out", "instance": output}],
        **more,
    )


def assets(consumer: Process, *feeds: Feed, producers: tuple[Process, ...] = ()) -> tuple[EntityStore, ProcessAssets]:
    processes = {one.name: one for one in (consumer, *producers)}
    named = {one.name: one for one in feeds}
    settings, clusters = load_settings({}), {"primary": CLUSTER}
    related = relations(named.values(), processes.values())
    store = EntityStore(settings.entity_defs, clusters, named, processes, {}, {}, {}, clusters, related)
    recording = DefinitionRecording(store.root, settings)
    return store, ProcessAssets(store, settings, AssetPartitions(store), recording, OpOptions())


BUILT_IN = {
    "same hour": (process("hours(1)", "now(0,0)", "now(0,0)"), "hours(1)", "hours(1)", (0, 0)),
    "hour before and same": (process("hours(1)", "now(-1,0)", "now(0,0)"), "hours(1)", "hours(1)", (-1, 0)),
    "hours of a day": (process("days(1)", "today(0,0)", "today(23,0)"), "hours(1)", "days(1)", (0, 0)),
    "hours of yesterday": (process("days(1)", "yesterday(0,0)", "yesterday(23,0)"), "hours(1)", "days(1)", (-1, -1)),
    "hours of a day, written a day late": (
        process("days(1)", "yesterday(0,0)", "yesterday(23,0)", "yesterday(0,0)"), "hours(1)", "days(1)", (0, 0),
    ),
    "days of a month": (
        process("months(1)", "lastMonth(0,0,0)", "currentMonth(-1,0,0)"), "days(1)", "months(1)", (-1, -1),
    ),
    "quarters of an hour": (process("hours(1)", "now(0,0)", "now(0,45)"), "minutes(15)", "hours(1)", (0, 0)),
    "up to the latest": (process("hours(1)", "now(-5,0)", "latest(0)"), "hours(1)", "hours(1)", (-5, 0)),
}  # fmt: skip
OURS = {
    "two and a half hours": (process("hours(1)", "now(-2,30)", "now(0,0)"), "minutes(30)", "hours(1)"),
    "a part of the day": (process("days(1)", "today(6,0)", "today(12,0)"), "hours(1)", "days(1)"),
    "coarser input": (process("hours(1)", "now(-24,0)", "now(0,0)"), "days(1)", "hours(1)"),
    "dynamic partitions": (process("hours(5)", "now(-4,0)", "now(0,0)"), "hours(1)", "hours(5)"),
    "dynamic input": (process("days(1)", "today(0,0)", "today(23,0)"), "hours(5)", "days(1)"),
    "excluded minutes": (process("minutes(45)", "now(0,0)", "now(0,44)"), "minutes(15)", "minutes(45)"),
    "this year so far": (process("months(1)", "currentYear(0,0,0,0)", "now(0,0)"), "days(1)", "months(1)"),
    "another zone": (
        process("days(1)", "today(0,0)", "today(23,0)", timezone=NEW_YORK, validity=MIDNIGHTS), "hours(1)", "hours(24)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("consumer", "input_frequency", "output_frequency", "offsets"), BUILT_IN.values(), ids=BUILT_IN
)
def test_the_built_in_mapping_is_used_where_it_is_exact(
    consumer: Process, input_frequency: str, output_frequency: str, offsets: tuple[int, int]
) -> None:
    store, builder = assets(consumer, feed("in", input_frequency), feed("out", output_frequency))
    mapping = mapping_of(store, builder, consumer)
    assert isinstance(mapping, dg.TimeWindowPartitionMapping)
    assert (mapping.start_offset, mapping.end_offset) == offsets
    check(store, builder, consumer, mapping)


@pytest.mark.parametrize(("consumer", "input_frequency", "output_frequency"), OURS.values(), ids=OURS)
def test_ours_is_used_elsewhere(consumer: Process, input_frequency: str, output_frequency: str) -> None:
    store, builder = assets(consumer, feed("in", input_frequency), feed("out", output_frequency))
    mapping = mapping_of(store, builder, consumer)
    assert isinstance(mapping, InputWindowMapping)
    check(store, builder, consumer, mapping)


@pytest.mark.parametrize("expression", ["latest(0)", "future(0,5)"])
def test_what_depends_on_availability_may_be_any_instance(expression: str) -> None:
    consumer = process("hours(1)", expression, expression)
    store, builder = assets(consumer, feed("in", "hours(1)"), feed("out", "hours(1)"))
    assert mapping_of(store, builder, consumer) == dg.AllPartitionMapping()


def test_an_input_whose_producer_rewrites_it_maps_to_the_producers_instances() -> None:
    """Every hour rewrites the day: the asset has hours for partitions, and a day needs those that wrote it."""
    rewriter = process("hours(1)", "now(0,0)", "now(0,0)", "today(0,0)")
    rewriter = rewriter.model_copy(
        update={"name": "rewriter", "inputs": (), "outputs": (rewriter.outputs[0].model_copy(update={"feed": "in"}),)}
    )
    consumer = process("days(1)", "yesterday(0,0)", "now(0,0)")
    store, builder = assets(consumer, feed("in", "days(1)"), feed("out", "days(1)"), producers=(rewriter,))
    mapping = mapping_of(store, builder, consumer)
    hourly = process_timeline(rewriter, "primary")
    day = datetime.fromisoformat("2013-03-05T00:00+00:00")
    found = upstream(mapping, builder, store, consumer, day)
    assert found == hourly.between(day - timedelta(days=1), day + timedelta(hours=23))


def mapping_of(store: EntityStore, builder: ProcessAssets, consumer: Process) -> dg.PartitionMapping:
    (spec,) = builder.build(ProcessWorkload(consumer, CLUSTER.name, store.feeds)).specs
    (dep,) = spec.deps
    assert dep.partition_mapping is not None
    return dep.partition_mapping


def upstream(
    mapping: dg.PartitionMapping, builder: ProcessAssets, store: EntityStore, consumer: Process, partition: datetime
) -> list[datetime]:
    down = ProcessWorkload(consumer, CLUSTER.name, store.feeds).partitions.timeline
    up = builder.partitions.of_feed(store.feeds["in"], CLUSTER.name).partitions
    result = mapping.get_upstream_mapped_partitions_result_for_partitions(
        partitions_of(down).subset_with_partition_keys([key_of(down, partition)]),
        partitions_of(down),
        partitions_of(up),
        dynamic_partitions_store=instance_with(down, up),
    )
    return sorted(at for key in result.partitions_subset.get_partition_keys() if (at := instant_of_key(key)))


@cache
def instance_with(*timelines: Timeline) -> dg.DagsterInstance:
    """An instance that knows the keys of those of them that are dynamic partitions."""
    instance = dg.DagsterInstance.ephemeral()
    for line in timelines:
        definition = partitions_of(line)
        if isinstance(definition, dg.DynamicPartitionsDefinition):
            keys = [key_of(line, at) for at in line.between(line.start, line.end)]
            instance.add_dynamic_partitions(definition.name or "", keys)
    return instance


def check(store: EntityStore, builder: ProcessAssets, consumer: Process, mapping: dg.PartitionMapping) -> None:
    """The mapping, in both directions, says what the planning says, for instances all over the year."""
    partitions = ProcessWorkload(consumer, CLUSTER.name, store.feeds).partitions
    source, target = feed_timeline(store.feeds["in"], "primary"), feed_timeline(store.feeds["out"], "primary")
    nominals = partitions.nominal.between(partitions.nominal.start, partitions.nominal.end)
    chosen = [*nominals[:4], *nominals[4 :: max(1, len(nominals) // 25)]]
    for nominal in chosen:
        if output_instance(consumer.outputs[0], target, nominal, consumer.timezone) is None:
            continue  # written outside the validity of its feed: no such partition
        window = widest(consumer.inputs[0])
        assert window is not None
        expected = input_instances(window, source, nominal, consumer.timezone)
        assert upstream(mapping, builder, store, consumer, partitions.partition_of(nominal)) == expected, nominal
        for instance in expected[:: max(1, len(expected) // 3)]:
            down = mapping.get_downstream_partitions_for_partitions(
                partitions_of(source).subset_with_partition_keys([key_of(source, instance)]),
                partitions_of(source),
                partitions_of(partitions.timeline),
            )
            assert key_of(partitions.timeline, partitions.partition_of(nominal)) in set(down.get_partition_keys())
