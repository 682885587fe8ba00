"""Reports of parts: written into Dagster's log, as anybody may who has no command."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from falcon_assets.features.completeness.records import PartsReported, ReportedPart
from falcon_assets.history.events.event_log import observation
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.timeline import feed_timeline


def record_parts(
    ledger: Ledger,
    feed: Feed,
    cluster: str,
    instance: datetime,
    parts: Sequence[ReportedPart],
    at: datetime,
    by: str | None = None,
) -> None:
    """Records reports of an instance in one event; ``by`` None: the collector, which asked for them."""
    partition = key_of(feed_timeline(feed, cluster), instance)
    reported = PartsReported(cluster, feed.name, partition, tuple(parts), at, by)
    said = f"{feed.name} {format_instant(instance)}: {_summary(parts)}"
    event = observation(names.asset_key(cluster, feed.name), partition, reported, description=said)
    ledger.instance.report_runless_asset_event(event)


def _summary(parts: Sequence[ReportedPart]) -> str:
    came = [one.records for one in parts if one.records is not None]
    sent = [one.expected for one in parts if one.expected is not None]
    said = [f"{sum(came)} records came"] * bool(came) + [f"{sum(sent)} records were sent"] * bool(sent)
    return f"{' and '.join(said)}, in {len(parts)} reports" if len(parts) > 1 else " and ".join(said)
