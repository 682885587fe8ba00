"""Many events in one write are what singly written ones are."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import dagster as dg
import pytest
import sqlalchemy
from dagster._serdes import serialize_value
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.errors import StorageError
from falcon_assets.history.dagster_internals import events as events_module
from falcon_assets.history.dagster_internals.event_texts import EventTexts
from falcon_assets.history.dagster_internals.events import AT_ONCE, Batches, Event, record_in_step, record_outside_runs

KEY = dg.AssetKey(["east", "batched"])


@dg.op
def records(context) -> None:  # type: ignore[no-untyped-def]  # Dagster cannot resolve postponed annotations
    """Writes one event as Dagster does, and two in one statement."""
    context.log_event(dg.AssetObservation(KEY, partition="0", description="singly", metadata={"bytes": 1}))
    record_in_step(context)(
        [
            dg.AssetObservation(KEY, partition=partition, description="together", metadata={"bytes": 1})
            for partition in ("1", "2")
        ]
    )


@dg.job
def recording() -> None:
    records()


def test_events_of_a_batch_are_like_others(instance: dg.DagsterInstance) -> None:
    done = recording.execute_in_process(instance=instance)
    found = sorted(instance.fetch_observations(KEY, limit=10).records, key=lambda one: one.storage_id)
    observed = [one.event_log_entry.asset_observation for one in found]
    assert [one.partition for one in observed if one] == ["0", "1", "2"], (
        "Dagster's store_event_batch does not write all observations of a batch any more, or not where they are found"
    )
    single, *batch = (
        (one.asset_key, one.run_id, one.event_log_entry.step_key, one.event_log_entry.job_name) for one in found
    )
    assert batch == [single, single], "Dagster writes other things beside an event than events.py does"
    assert [one.metadata for one in observed if one] == [{"bytes": dg.MetadataValue.int(1)}] * 3
    assert {one.run_id for one in found} == {done.run_id}


def test_what_a_run_is_to_make_is_written_together_as_it_is_singly(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = dg.StaticPartitionsDefinition([str(day) for day in range(5)])

    @dg.multi_asset(
        specs=[dg.AssetSpec(key, partitions_def=days, skippable=True) for key in (["east", "b"], ["east", "a"])]
    )
    def nothing() -> Any:
        yield from ()

    job = dg.Definitions(assets=[nothing], jobs=[dg.define_asset_job("planning", [nothing])]).resolve_job_def(
        "planning"
    )
    span = {"dagster/asset_partition_range_start": "1", "dagster/asset_partition_range_end": "3"}

    def planned() -> list[tuple[Any, ...]]:
        done = job.execute_in_process(instance=instance, tags=span)
        kind = dg.DagsterEventType.ASSET_MATERIALIZATION_PLANNED
        found = instance.event_log_storage.get_records_for_run(done.run_id, of_type=kind, limit=100).records
        entries = [one.event_log_entry for one in sorted(found, key=lambda one: one.storage_id)]
        assert [one.asset_entry.last_run_id for one in instance.get_asset_records(nothing.keys)] == [done.run_id] * 2
        said = [entry.dagster_event for entry in entries if entry.dagster_event]
        return [
            (entry.job_name, entry.level, one.step_key, one.asset_key, one.partition, one.message)
            for entry, one in zip(entries, said, strict=True)
        ]

    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "0")
    singly = planned()
    monkeypatch.setenv("DAGSTER_EVENT_BATCH_SIZE", "500")
    statements: list[str] = []
    listener = lambda connection, cursor, statement, *rest: statements.append(statement)  # noqa: E731 - told to two
    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", listener)
    try:
        assert planned() == singly
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", listener)
    assert len(singly) == 6
    assert sum("unnest(" in one and "INTO event_logs" in one for one in statements) == 1


def test_what_landed_is_written_together_as_it_is_singly(instance: dg.DagsterInstance) -> None:
    def landed(partition: str) -> dg.AssetMaterialization:
        tags = {"dagster/data_version": f"v{partition}"}
        return dg.AssetMaterialization(KEY, "landed", {"bytes": 1}, partition, tags)

    instance.report_runless_asset_event(landed("0"))
    with Batches(record_outside_runs(instance)) as events:
        events.add(landed("1"))
        events.add(landed("2"))
    found = sorted(instance.fetch_materializations(KEY, limit=10).records, key=lambda one: one.storage_id)
    told = [
        (entry.run_id, entry.job_name, entry.step_key, entry.level, of.tags, of.metadata)
        for one in found
        if (entry := one.event_log_entry) and (of := entry.asset_materialization)
    ]
    versions = [{"dagster/data_version": f"v{number}"} for number in range(3)]
    assert told == [(*told[0][:4], tags, {"bytes": dg.MetadataValue.int(1)}) for tags in versions]
    assert instance.get_materialized_partitions(KEY) == {"0", "1", "2"}
    assert list(instance.get_event_tags_for_asset(KEY)) == versions
    (record,) = instance.get_asset_records([KEY])
    assert record.asset_entry.last_materialization_storage_id == found[-1].storage_id


def test_materializations_and_observations_of_several_assets_are_written_in_their_order(
    instance: dg.DagsterInstance,
) -> None:
    key, other = dg.AssetKey(["east", "mixed"]), dg.AssetKey(["east", "other"])
    events = [
        dg.AssetMaterialization(key, partition="0", tags={"dagster/data_version": "a"}),
        dg.AssetMaterialization(other, partition="1"),
        dg.AssetObservation(key, partition="2"),
        dg.AssetMaterialization(key, partition="3", tags={"dagster/data_version": "b"}),
        dg.AssetObservation(key, partition="4"),
    ]
    record_outside_runs(instance)(events)
    entries = [one.event_log_entry for one in instance.event_log_storage.get_records_for_run("", limit=1000).records]
    found = [one.asset_materialization or one.asset_observation for one in entries]
    assert [one for one in found if one and one.asset_key in {key, other}] == events
    records = {one.asset_entry.asset_key: one.asset_entry for one in instance.get_asset_records([key, other])}
    last = [records[key].last_materialization_record for key in (key, other)]
    assert [one and one.partition_key for one in last] == ["3", "1"]
    assert list(instance.get_event_tags_for_asset(key)) == [
        {"dagster/data_version": "a"},
        {"dagster/data_version": "b"},
    ]


_PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_VALUES = st.one_of(
    st.text().map(dg.MetadataValue.text),
    st.text().map(dg.MetadataValue.md),
    st.text().map(dg.MetadataValue.path),
    st.text().map(dg.MetadataValue.url),
    st.integers().map(dg.MetadataValue.int),
    st.floats(allow_nan=False).map(dg.MetadataValue.float),
    st.booleans().map(dg.MetadataValue.bool),
    st.dictionaries(st.text(), _PLAIN | st.lists(_PLAIN)).map(dg.MetadataValue.json),
    st.just(dg.MetadataValue.table_schema(dg.TableSchema([dg.TableColumn("a", "int")]))),
)
_TAGS = st.none() | st.dictionaries(st.text(), st.text(), max_size=2)


@st.composite
def _entries(draw: st.DrawFn) -> dg.EventLogEntry:
    kind = draw(st.sampled_from([dg.AssetMaterialization, dg.AssetObservation]))
    metadata = draw(st.dictionaries(st.sampled_from("abc"), _VALUES))
    key = dg.AssetKey(["east", draw(st.sampled_from(["one", "two"]))])
    event = kind(key, draw(st.none() | st.text()), metadata, draw(st.none() | st.text()))._replace(tags=draw(_TAGS))
    run = (draw(st.sampled_from(["", "run"])), "job", draw(st.sampled_from([logging.INFO, logging.DEBUG])))
    return events_module._entry(event, *run, draw(st.sampled_from([None, "step"])))


@given(st.lists(_entries(), max_size=6))
def test_what_is_serialized_together_is_what_is_serialized_alone(entries: list[dg.EventLogEntry]) -> None:
    texts = EventTexts()
    assert [texts.of(one) for one in entries * 2] == [serialize_value(one) for one in entries * 2]


@pytest.mark.parametrize(
    ("error", "written"),
    [(None, [AT_ONCE, 1]), (StorageError("dead"), [AT_ONCE, 1]), (KeyboardInterrupt(), [AT_ONCE])],
    ids=["the end", "an error of ours", "an interruption"],
)
def test_a_batch_is_written_when_it_is_full_and_at_the_end(error: BaseException | None, written: list[int]) -> None:
    batches: list[Sequence[Event]] = []
    events = Batches(lambda some: batches.append([*some]))
    for number in range(AT_ONCE + 1):
        events.add(dg.AssetObservation(KEY, partition=str(number)))
    events.__exit__(type(error) if error else None, error, None)
    assert [len(some) for some in batches] == written
    assert [one.partition for some in batches for one in some] == [str(number) for number in range(sum(written))]
