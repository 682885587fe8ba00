"""Delivery of runs, evictions and restores to a system that collects lineage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.features.lineage.recorded_runs import RunEnd, RunRecords
from falcon_assets.features.lineage.store import versions_of_instance
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.events.instance_event import InstanceEvent, Notice, Sent
from falcon_assets.history.folding.subscriptions import whole
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.feed import Feed
from falcon_assets.model.process import Process
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.version_columns import VersionStatus
from falcon_assets.settings import Settings

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent


_WITHOUT_RUN = frozenset((EventKind.TIMED_OUT, EventKind.KILLED))
"""Ends of instances without a run."""


class LineageSending:
    """Sends OpenLineage events as an :class:`EventReceiver`; repeated events have the same ids."""

    name = "FALCON_OPENLINEAGE_URL"
    at_once = 50  # who collects lineage takes one event after the other: so many runs are sent again if one fails
    pause = timedelta()
    of_workloads = frozenset((EventKind.SUCCEEDED, EventKind.FAILED, *_WITHOUT_RUN))
    events = of_workloads | {EventKind.EVICTED, EventKind.RESTORED}
    never_gives_up = False

    def __init__(self, store: EntityStore, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self.wanted = dict.fromkeys(map(whole, store.clusters), self.events)

    def names_for(self, event: InstanceEvent, _entity: Feed | Process | Cluster, _is_retried: bool) -> Sequence[str]:
        known = event.event in self.events and event.run is not None
        return (self.name,) if known or event.event in _WITHOUT_RUN else ()

    def send(self, connection: Connection, _key: str, notices: Sequence[Notice]) -> Sent:
        from falcon_assets.features.openlineage.sending import (  # noqa: PLC0415 - takes a while
            LineageReceiver,
            NotSentError,
        )

        settings, sent = self._settings, Sent()
        if settings.openlineage_url is None:
            return replace(sent, problem=f"the environment variable {self.name} is not set")
        with connection.begin():
            events = self._events(connection, notices)
        receiver = LineageReceiver(settings.openlineage_url, settings.openlineage_key)
        try:
            for notice, several in events:
                is_taken = all(receiver.send(event) for event in several)
                (sent.taken if is_taken else sent.refused).append(notice)
        except NotSentError as error:
            return replace(sent, problem=str(error))
        finally:
            receiver.close()
        return sent

    def _events(self, connection: Connection, notices: Sequence[Notice]) -> list[tuple[Notice, list[RunEvent]]]:
        from falcon_assets.features.openlineage.events import RunEvents  # noqa: PLC0415 - takes a while

        made = RunEvents(self._store, self._settings.home, self._settings.openlineage_namespace)
        ended = [one for one in notices if one.happening.event in self.of_workloads]
        runs = RunRecords(connection).of([_end(one.happening) for one in ended])
        events = [(notice, made.of_run(run)) for notice, run in zip(ended, runs, strict=True)]
        for notice in notices:
            if notice.happening.event is EventKind.EVICTED:
                gone = _evicted(connection, notice.happening)
                events.append((notice, [event for version in gone for event in made.of_eviction(version)]))
            elif notice.happening.event is EventKind.RESTORED:
                come = _restored(connection, notice.happening)
                events.append((notice, [event for version in come for event in made.of_restore(version)]))
        return events


def _evicted(connection: Connection, one: InstanceEvent) -> list[Version]:
    """Returns the version as of its eviction: it may be restored by now."""
    run: Any = one.run
    gone = {"ended_at": one.at, "ended_by": run["id"], "archived_to": run["archived_to"]}
    return [replace(version, status=VersionStatus.EVICTED, **gone) for version in _versions(connection, one)]


def _restored(connection: Connection, one: InstanceEvent) -> list[Version]:
    """Returns the version as of its restoration: it may be evicted by now."""
    run: Any = one.run
    come = {"seen_at": one.at, "restored_by": run["restored_by"]}
    return [replace(version, status=VersionStatus.AVAILABLE, **come) for version in _versions(connection, one)]


def _versions(connection: Connection, one: InstanceEvent) -> list[Version]:
    run: Any = one.run
    known = versions_of_instance(connection, one.name, one.instance)
    return [version for version in known if (version.cluster, version.version) == (one.cluster, run["version"])]


def _end(one: InstanceEvent) -> RunEnd:
    run: Any = one.run or {}
    started = datetime.fromisoformat(run["started"]) if run.get("started") else None
    return RunEnd(
        one.instance,
        InstanceState(one.event.value),
        one.reason,
        run.get("attempt", 0),
        process=one.name,
        cluster=one.cluster,
        run_id=run.get("id"),
        started=started,
        ended=one.at,
        definition=run.get("definition"),
    )
