"""Hooks of quality: problems of declared checks, verdicts in the log, asset checks, jobs, and ``falcon run``'s part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from falcon_assets.errors import count_of
from falcon_assets.hooks import hookimpl

if TYPE_CHECKING:
    import dagster as dg
    from sqlalchemy import Connection

    from falcon_assets.catalog.declared import Definitions
    from falcon_assets.catalog.store import EntityStore
    from falcon_assets.errors import Problem
    from falcon_assets.features.quality.holding import OutputChecks
    from falcon_assets.features.quality.sensors import CheckingPass
    from falcon_assets.history.dagster_internals.events import Record as RecordEvents
    from falcon_assets.history.events.event_log import Logged
    from falcon_assets.history.events.instance_event import InstanceEvent
    from falcon_assets.history.events.record import Record
    from falcon_assets.history.platform.open_ledger import Ledger
    from falcon_assets.model.cluster import Cluster
    from falcon_assets.planning.reasons import Reason
    from falcon_assets.settings import Settings


@hookimpl
def definition_problems(definitions: Definitions, programs: bool) -> list[Problem]:
    if not any(one.entity.checks or one.entity.on_error == "hold" for one in definitions.feeds.values()):
        return []
    from falcon_assets.features.quality.definitions import check_checks, check_sql

    return list((check_sql if programs else check_checks)(definitions))


@hookimpl
def records() -> Collection[type[Record]]:
    from falcon_assets.features.quality.events import RECORDS

    return RECORDS


@hookimpl
def fold(connection: Connection, facts: Sequence[Logged], happened: Sequence[InstanceEvent]) -> Sequence[InstanceEvent]:
    from falcon_assets.features.quality.events import RECORDS
    from falcon_assets.features.quality.held_outputs import end_held
    from falcon_assets.features.quality.store import fold_verdicts
    from falcon_assets.features.quality.transitions import quality_events

    ours = [one for one in facts if isinstance(one.fact, RECORDS)]
    events = [*quality_events(connection, ours, happened)]
    fold_verdicts(connection, ours)
    end_held(connection, happened)
    return events


@hookimpl
def feed_instance_details(
    connection: Connection, store: EntityStore, keys: Sequence[tuple[str, str, datetime]], now: datetime
) -> Mapping[tuple[str, str, datetime], Mapping[str, Mapping[str, Any]]]:
    from falcon_assets.features.quality.details import quality_of

    found = quality_of(connection, store, [(cluster, feed, instance) for feed, cluster, instance in keys], now)
    return {(feed, cluster, instance): {"quality": one} for (cluster, feed, instance), one in found.items()}


@hookimpl
def input_gates(
    connection: Connection, store: EntityStore, feeds: Collection[tuple[str, str]], now: datetime
) -> Mapping[tuple[str, str], Mapping[datetime, Reason]]:
    from falcon_assets.features.quality.details import closed_gates

    return closed_gates(connection, store, feeds, now)


@hookimpl
def metric_values(
    connection: Connection, store: EntityStore, now: datetime
) -> Mapping[str, Mapping[tuple[str, ...], float]]:
    if not store.relations.checked:
        return {}
    from falcon_assets.features.quality.states import known_states

    places = {(entry.name, feed.name) for feed in store.feeds.values() for entry in feed.clusters}
    places = {one for one in places if one[0] in store.clusters}
    states = known_states(connection, store, places, now, lambda key: key[:2] in places)
    found = Counter[tuple[str, ...]]((key[1], key[0], known.state.value) for key, known in states.items())
    return {"falcon_feed_instances_not_valid": found}


@hookimpl
def output_inspection(
    ledger: Ledger, store: EntityStore, cluster: Cluster, settings: Settings, record: RecordEvents
) -> OutputChecks | None:
    if not any(feed.holds and feed.on(cluster.name) for feed in store.feeds.values()):
        return None
    from falcon_assets.features.quality.holding import OutputChecks

    return OutputChecks(store, cluster, settings, ledger, record)


@hookimpl
def definitions(store: EntityStore, settings: Settings) -> dg.Definitions:
    import dagster as dg

    from falcon_assets.features.quality.checks import QualityChecks
    from falcon_assets.features.quality.sensors import checking_definitions

    jobs, sensors = checking_definitions(store, settings)
    checks = [*QualityChecks(store, settings).definitions()]
    return dg.Definitions(asset_checks=checks, jobs=jobs, sensors=sensors)


@hookimpl
def foreground_steps(store: EntityStore, settings: Settings, clusters: Sequence[Cluster]) -> _Checking:
    from falcon_assets.features.quality.sensors import foreground_passes

    return _Checking([*foreground_passes(store, settings, clusters)])


@dataclass(frozen=True)
class _Checking:
    passes: Sequence[CheckingPass]

    def step(self, ledger: Ledger) -> dict[str, str]:
        left_out = dict[str, str]()
        for one in self.passes:
            _, problems = one.run(ledger)
            if problems:
                said = f"{count_of(len(problems), 'version')} could not be checked: {problems[0]}"
                left_out[f"quality on {one.cluster.name}"] = said
        return left_out
