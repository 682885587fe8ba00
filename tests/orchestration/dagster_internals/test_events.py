"""Many events in one write are what singly written ones are."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
import pytest

from falcon_assets.errors import StorageError
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
