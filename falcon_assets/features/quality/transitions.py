"""Transitions of the quality of instances, as events: a version is valid or invalid, or replaces an invalid one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from falcon_assets.features.quality.events import HeldAccepted, InstanceChecked, InvalidAccepted, OutputHeld
from falcon_assets.features.quality.verdict import InstanceVerdict
from falcon_assets.history.database import among, parts
from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.events.instance_event import InstanceEvent
from falcon_assets.history.folding.version_rows import VersionKey
from falcon_assets.history.tables import QUALITY_VERDICTS
from falcon_assets.model.event_kind import EventKind

_CAME = (EventKind.LANDED, EventKind.REPLICATED, EventKind.RESTORED)
_KEY = tuple(QUALITY_VERDICTS.c[name] for name in ("cluster", "feed", "instance", "version"))


@dataclass(frozen=True)
class _KnownVerdict:
    verdict: InstanceVerdict
    reason: str = ""
    is_accepted: bool = False

    @property
    def event(self) -> EventKind:
        is_valid = self.is_accepted or self.verdict is InstanceVerdict.VALID
        return EventKind.VALID if is_valid else EventKind.INVALID


def quality_events(
    connection: Connection, facts: Sequence[Logged], happened: Sequence[InstanceEvent]
) -> Iterator[InstanceEvent]:
    """Yields those that follow from ``facts`` about verdicts and from versions that came, in the order of history.

    To be called before the facts are applied to the table. A verdict that was known already is no transition.
    """
    came = [(one.event_id or 0, one) for one in happened if one.event in _CAME and one.kind == "feed"]
    steps: list[tuple[int, Any]] = sorted(
        [*came, *((one.event_id, one.fact) for one in facts)], key=lambda step: step[0]
    )
    known = _known(connection, {key for _, one in steps for key in _versions(one)})
    for event_id, one in steps:
        if isinstance(one, InstanceEvent):
            yield from _came(one, known)
            continue
        if isinstance(one, OutputHeld | HeldAccepted):
            yield from _held(one, event_id)
            continue
        (key,) = _versions(one)
        before = known.get(key)
        if isinstance(one, InstanceChecked):
            failed = [check for check in one.checks if check.is_error]
            said = "; ".join(f"{check.name}: {check.said}" for check in failed)
            is_accepted = bool(one.overruled) or (before is not None and before.is_accepted)
            known[key] = _KnownVerdict(one.verdict, one.overruled or said, is_accepted)
        else:  # without a verdict, where it is made from invalid data
            verdict = before.verdict if before else InstanceVerdict.UNCHECKED
            known[key] = _KnownVerdict(verdict, f"accepted by {one.accepted_by}: {one.reason}", is_accepted=True)
        now = known[key]
        if before is None or before.event is not now.event:
            yield _event(now.event, key, one.at, event_id, now.reason)


def _came(one: InstanceEvent, known: Mapping[VersionKey, _KnownVerdict]) -> Iterator[InstanceEvent]:
    keys = _versions(one)
    before, now = (known.get(key) for key in (keys[-1], keys[0]))
    if len(keys) > 1 and before is not None and before.event is EventKind.INVALID:
        yield _event(EventKind.BACKFILLED, keys[0], one.at, one.event_id or 0, previous_version=keys[1][-1])
    if now is not None:  # it was there before
        yield _event(now.event, keys[0], one.at, one.event_id or 0, now.reason)


def _held(one: OutputHeld | HeldAccepted, event_id: int) -> Iterator[InstanceEvent]:
    if isinstance(one, OutputHeld):
        failed = "; ".join(f"{check.name}: {check.said}" for check in one.checks if check.is_error)
        said = failed or f"it is published with another output of {one.process}, which failed its checks"
        run = {"id": None, "process": one.process, "records": one.checked_records, "held_at": one.held_at}
        about = ("feed", one.feed, one.cluster, one.instance, one.at, str(event_id), said)
        yield InstanceEvent(EventKind.HELD, *about, event_id=event_id, run=run)


def _versions(one: Any) -> list[VersionKey]:
    """That which it is about, then the one that was replaced, if it is known."""
    if isinstance(one, InstanceChecked):
        return [(one.cluster, one.feed, one.instance, one.checked_version)]
    if isinstance(one, InvalidAccepted):
        return [(one.cluster, one.feed, one.instance, one.accepted_version)]
    if not isinstance(one, InstanceEvent):
        return []
    found = (one.run or {}).get("version"), (one.run or {}).get("previous_version")
    return [(one.cluster, one.name, one.instance, version) for version in dict.fromkeys(found) if version]


def _known(connection: Connection, keys: Collection[VersionKey]) -> dict[VersionKey, _KnownVerdict]:
    found = dict[VersionKey, _KnownVerdict]()
    table = QUALITY_VERDICTS.c
    for part in parts(keys):
        asked = select(*_KEY, table.verdict, table.accepted_by).where(among(_KEY, part))
        for row in connection.execute(asked):
            found[row[0], row[1], row[2], row[3]] = _KnownVerdict(
                InstanceVerdict(row.verdict), is_accepted=row.accepted_by is not None
            )
    return found


def _event(
    kind: EventKind, key: VersionKey, at: Any, event_id: int, reason: str = "", previous_version: str | None = None
) -> InstanceEvent:
    cluster, feed, instance, version = key
    run = {"id": None, "version": version, "previous_version": previous_version}
    return InstanceEvent(kind, "feed", feed, cluster, instance, at, str(event_id), reason, event_id=event_id, run=run)
