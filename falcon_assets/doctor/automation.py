"""Checks of Dagster's daemon, and of the sensors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from falcon_assets.catalog.store import EntityStore
from falcon_assets.doctor.dagster_facts import DagsterFacts, SensorFacts
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, lasting, not_checked, ok, problem, warning
from falcon_assets.errors import SettingsError, count_of
from falcon_assets.planning.dagster_names import op_name, source_collector

if TYPE_CHECKING:
    from falcon_assets.history.dagster_internals.daemon import DaemonHealth
    from falcon_assets.history.platform.active_daemon import Daemon


SILENT = timedelta(seconds=120)
"""Each part of the daemon has a heartbeat every half minute."""
LATE = timedelta(minutes=5)
"""Sensors tick every four seconds, or every half minute."""
_UNREADABLE, _NEVER_RAN = not_checked("Dagster's history cannot be read"), ok("Dagster has not run here yet")
_START = "start it: dagster-daemon run, or dagster dev"
_PARTS = (("collector", "sla", "retention_at_once"), ("coordinator", "late_arrival"))
"""Suffixes of sensors, of clusters and of pipelines; the first is that of a required sensor."""
_NAMED = 5


def check_daemon(context: CheckContext) -> Iterator[Diagnosis]:
    try:
        facts = context.database()
    except SettingsError:
        yield _UNREADABLE
        return
    if facts is None or not facts.has_dagster:
        yield _NEVER_RAN
    else:
        yield judge_daemons(facts.daemons, context.now, facts.candidates)


def check_sensors(context: CheckContext) -> Iterator[Diagnosis]:
    facts, store = dagster_or_diagnosis(context), context.entities_if_sound()
    if isinstance(facts, Diagnosis):
        yield facts
    elif store is None:
        yield ok("there are no sensors without definitions")
    else:
        ticking = any(one.name == "SENSOR" and is_alive(one, context.now) for one in facts.daemons)
        yield from judge_sensors(facts.sensors, expected_sensors(store), context.now, ticking=ticking)


def dagster_or_diagnosis(context: CheckContext) -> DagsterFacts | Diagnosis:
    """Returns what Dagster shows, or the diagnosis if there is nothing to judge."""
    try:
        facts = context.dagster()
    except SettingsError:
        return _UNREADABLE
    return facts if facts is not None else _NEVER_RAN


def expected_sensors(store: EntityStore) -> dict[str, bool]:
    """Returns the legal names of sensors, and whether each is required."""
    owners = store.clusters, sorted({one.pipelines[0] for one in store.workloads})
    sources = {source_collector(one): True for one in store.foreign_sources}
    return sources | {
        op_name(owner, part): number == 0
        for of_owners, parts in zip(owners, _PARTS, strict=True)
        for owner in of_owners
        for number, part in enumerate(parts)
    }


def is_alive(daemon: DaemonHealth, now: datetime) -> bool:
    return now - daemon.seen < SILENT


def judge_daemons(daemons: Collection[DaemonHealth], now: datetime, candidates: Sequence[Daemon] = ()) -> Diagnosis:
    """``candidates``: the daemons of ``falcon serve``, of which one is active."""
    dead = [one for one in daemons if not is_alive(one, now)]
    if not daemons:
        return warning("Dagster's daemon has never run here: nothing runs by itself", _START)
    if dead:
        when = f"last seen {lasting(now - max(one.seen for one in dead))} ago"
        return problem(f"Dagster's daemon is not alive, {when}: {', '.join(one.name for one in dead)}", _START)
    if broken := next((one for one in daemons if one.error), None):
        return warning(
            f"Dagster's daemon is alive, but {broken.name} had an error: {broken.error}", "read the daemon's log"
        )
    return ok("; ".join([f"alive: {', '.join(one.name for one in daemons)}", *_competing(candidates)]))


def _competing(candidates: Sequence[Daemon]) -> Iterator[str]:
    for one in candidates:
        word = "has been the active one" if one.is_active else "has waited"
        yield f"{one} {word} since {one.since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def judge_sensors(
    sensors: Sequence[SensorFacts], expected: Mapping[str, bool], now: datetime, *, ticking: bool
) -> Iterator[Diagnosis]:
    """Judges the sensors of this installation.

    Args:
        sensors: As Dagster knows them; others, such as those of deleted entities, are ignored.
        expected: Legal names -> whether the sensor is required.
        now: The real time.
        ticking: Whether the part of the daemon that ticks them is alive: else all are late.
    """
    known = {one.name: one for one in sensors if one.name in expected}
    well = 0
    for one in known.values():
        diagnoses = list(_judge(one, now, ticking=ticking))
        yield from diagnoses
        well += not diagnoses
    never = [name for name, is_needed in expected.items() if is_needed and name not in known]
    if never and ticking:
        more = f" and {len(never) - _NAMED} more" if len(never) > _NAMED else ""
        yield warning(
            f"{', '.join(never[:_NAMED])}{more} never ticked",
            "reload the code location in Dagster's UI; falcon admin status says whether it is loaded",
        )
    if well or not known:
        late = "" if ticking or not known else ", as long as the daemon lived"
        yield ok(f"{count_of(well, 'sensor ticks', 'sensors tick')} without errors{late}")


def _judge(sensor: SensorFacts, now: datetime, *, ticking: bool) -> Iterator[Diagnosis]:
    if sensor.is_stopped:
        yield problem(f"the sensor {sensor.name} is stopped", f"dagster sensor start {sensor.name}")
    elif sensor.last is not None and sensor.last.failure is not None:
        fix = "falcon validate" if "definitions" in sensor.last.failure else "fix that; the next tick tries again"
        yield problem(f"the last tick of the sensor {sensor.name} failed: {_short(sensor.last.failure)}", fix)
    elif ticking and sensor.last is not None and now - sensor.last.began > LATE:
        yield warning(
            f"the sensor {sensor.name} has not ticked for {lasting(now - sensor.last.began)}",
            "look again in a minute where the daemon has just started; else reload the code location in Dagster's UI",
        )


def _short(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]} ..."
