"""What retention says of an instance that went, and many such events in one write."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeAlias

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.events import metadata as meta
from falcon_assets.ledger.evictions import Eviction
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.instant import format_instant
from falcon_assets.orchestration.assets.process_assets import ProcessAssets
from falcon_assets.orchestration.dagster_internals.definitions import AssetObservationData
from falcon_assets.orchestration.mapping import asset_keys as names
from falcon_assets.orchestration.mapping.partitions import key_of
from falcon_assets.planning.retention.eviction import Verdict
from falcon_assets.settings import Settings

Record: TypeAlias = Callable[[Sequence[dg.AssetObservation]], None]
"""Writes events about one asset down, all before it returns."""

_SHOWN = 1000
"""So many kept instances are named in one event."""


class EvictionEvents:
    """Builds the events about instances of one cluster."""

    def __init__(self, store: EntityStore, cluster: Cluster, settings: Settings) -> None:
        self._store, self._cluster = store, cluster
        self._assets = ProcessAssets(store, settings)

    def event(self, one: Eviction, at: datetime) -> dg.AssetObservation:
        """An observation on the asset's partition.

        Args:
            one: What is done.
            at: When, on the falcon clock.
        """
        verdict = one.verdict
        done = f"archived to {verdict.archive_place}" if verdict.archive_place else "deleted"
        return dg.AssetObservation(
            asset_key=names.asset_key(one.cluster, one.feed),
            partition=self._partition(one),
            description=f"{one.feed} {format_instant(one.instance)} was evicted ({done}): {verdict.reason}",
            metadata={
                meta.EVICTED: verdict.action,
                meta.REASON: verdict.reason,
                meta.INSTANCE: format_instant(one.instance),
                "bytes": one.bytes,
                "files": one.files,
                meta.AT: at.isoformat(timespec="milliseconds"),
                **({"archived_to": verdict.archive_place} if verdict.archive_place else {}),
                **({"archive_cluster": one.archive_cluster} if one.archive_cluster else {}),
            },
        )

    def kept(self, feed: str, verdicts: Sequence[Verdict], at: datetime) -> dg.AssetObservation:
        """An observation on the asset: which instances have outlived their limit and stay nevertheless, and why.

        Args:
            feed: The feed.
            verdicts: On those instances.
            at: When, on the falcon clock.
        """
        shown = [{"instance": format_instant(one.instance.nominal), "reason": one.reason} for one in verdicts[:_SHOWN]]
        return dg.AssetObservation(
            asset_key=names.asset_key(self._cluster.name, feed),
            description=f"{feed}: {len(verdicts)} outlived their limit and are kept",
            metadata={
                "kept": len(verdicts),
                "kept_instances": dg.MetadataValue.json(shown),
                meta.AT: at.isoformat(timespec="milliseconds"),
            },
        )

    def _partition(self, one: Eviction) -> str:
        """Where several process instances write the instance: the last one's."""
        feed = self._store.feeds.get(one.feed)
        if feed is None or feed.on(one.cluster) is None:
            return format_instant(one.instance)  # the asset is no more, and nobody can say how it was partitioned
        asset = self._assets.feed_asset(feed, self._cluster)
        return key_of(asset.partitions, max(asset.partitions_of(one.instance), default=one.instance))


def record_in_run(instance: dg.DagsterInstance, run: dg.DagsterRun, step: str) -> Record:
    """Records in a step of a run, as the context of an op does, but all in one statement: that is many times faster.

    Args:
        instance: Whose run it is.
        run: The run.
        step: Key of the step.
    """

    def record(events: Sequence[dg.AssetObservation]) -> None:
        entries = [_entry(event, run.run_id, run.job_name, step) for event in events]
        instance.event_log_storage.store_event_batch(entries)

    return record


def _entry(event: dg.AssetObservation, run_id: str, job: str, step: str) -> dg.EventLogEntry:
    said = dg.DagsterEvent(
        event_type_value=dg.DagsterEventType.ASSET_OBSERVATION.value,
        job_name=job,
        step_key=step,
        event_specific_data=AssetObservationData(event),
        message=event.description,
    )
    return dg.EventLogEntry(  # type: ignore[no-untyped-call]  # Dagster's class has no annotations here
        error_info=None,
        level=logging.DEBUG,
        user_message=event.description or "",
        run_id=run_id,
        timestamp=time.time(),
        step_key=step,
        job_name=job,
        dagster_event=said,
    )
