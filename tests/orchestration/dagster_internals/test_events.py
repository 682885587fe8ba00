"""Many events in one write are what singly written ones are."""

from __future__ import annotations

import dagster as dg

from falcon_assets.orchestration.dagster_internals.events import record_in_step

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
