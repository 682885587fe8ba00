"""Hooks of completeness: its records and their fold, the gate of collectors, and what lists show."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from falcon_assets.catalog.declared import Definitions
    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.errors import Problem
    from falcon_assets.features.completeness.gate import CompletenessGate
    from falcon_assets.history.events.event_log import Logged
    from falcon_assets.history.events.instance_event import InstanceEvent
    from falcon_assets.history.events.record import Record
    from falcon_assets.history.platform.open_ledger import Ledger
    from falcon_assets.model.cluster import Cluster
    from falcon_assets.planning.reasons import Reason
    from falcon_assets.settings import Settings


@hookimpl
def definition_problems(definitions: Definitions, programs: bool) -> list[Problem]:
    if programs or not any(one.entity.completeness for one in definitions.feeds.values()):
        return []
    from falcon_assets.features.completeness.definitions import check_completeness

    return list(check_completeness(definitions))


@hookimpl
def records() -> Collection[type[Record]]:
    from falcon_assets.features.completeness.records import CompletenessRecorded, PartsReported

    return (PartsReported, CompletenessRecorded)


@hookimpl
def fold(connection: Connection, facts: Sequence[Logged]) -> Sequence[InstanceEvent]:
    from falcon_assets.features.completeness.records import share_reached
    from falcon_assets.features.completeness.store import fold_completeness

    fold_completeness(connection, facts)
    return [*share_reached(facts)]


@hookimpl
def landing_gate(ledger: Ledger, store: EntityStore, cluster: Cluster, settings: Settings) -> CompletenessGate | None:
    if not any(store.feeds[name].on(cluster.name) for name in store.relations.counted if name in store.feeds):
        return None
    from falcon_assets.features.completeness.expected import ExpectedCounts
    from falcon_assets.features.completeness.gate import CompletenessGate

    return CompletenessGate(ledger, cluster, ExpectedCounts(store, cluster, settings), settings.now())


@hookimpl
def feed_instance_details(
    connection: Connection, keys: Sequence[tuple[str, str, datetime]]
) -> Mapping[tuple[str, str, datetime], Mapping[str, Mapping[str, Any]]]:
    from falcon_assets.features.completeness.store import known_shares

    found = known_shares(connection, [(cluster, feed, instance) for feed, cluster, instance in keys])
    return {
        (feed, cluster, instance): {
            "completeness": {
                "text": f"{share.shown} %" if share.shown else "",
                "percent": None if share.percent is None else float(share.percent),
                "expected": share.expected,
                "records": share.records,
                "taken_incomplete": share.taken,
            }
        }
        for (cluster, feed, instance), share in found.items()
    }


@hookimpl
def metric_values(
    connection: Connection, store: EntityStore, now: datetime
) -> Mapping[str, Mapping[tuple[str, ...], float]]:
    counted = [store.feeds[name] for name in sorted(store.relations.counted) if name in store.feeds]
    if not counted:
        return {}
    from falcon_assets.features.completeness.watermark import watermarks

    found = [one for feed in counted for one in watermarks(connection, store, feed, now)]
    return {
        "falcon_feed_watermark_timestamp_seconds": {
            (one.feed, one.cluster): one.watermark.timestamp() for one in found
        },
        "falcon_feed_completeness_ratio": {(one.feed, one.cluster): one.share for one in found},
    }


@hookimpl
def missing_reasons(
    connection: Connection, store: EntityStore, keys: Sequence[tuple[str, str, datetime]]
) -> Mapping[tuple[str, str, datetime], Reason]:
    rules = {
        (cluster, feed, instance): rule
        for feed, cluster, instance in keys
        if feed in store.relations.counted and (rule := store.feed(feed).completeness) is not None
    }
    if not rules:
        return {}
    from falcon_assets.features.completeness.store import why_incomplete

    found = why_incomplete(connection, rules)
    return {(feed, cluster, instance): reason for (cluster, feed, instance), reason in found.items()}
