"""SLAs evaluated from real history in a real database: each breach is recorded once, and cleared once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import Engine, event, select

from falcon_assets.catalog.store import EntityStore, load_entities
from falcon_assets.entities.status import Command, apply_command
from falcon_assets.features.sla.checks import SlaChecks
from falcon_assets.features.sla.evaluation import SlaEvaluation, SlaOutcome
from falcon_assets.features.sla.sensors import tell_dagster
from falcon_assets.history.events.event_log import materialization
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import InstanceChanged
from falcon_assets.history.mapping.partitions import partitions_of
from falcon_assets.history.platform.open_ledger import Ledger, open_ledger
from falcon_assets.history.queries import set_last_collected
from falcon_assets.history.tables import CLOCK, SLA_BREACHES
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from tests.builders import cluster_yaml
from tests.ledger.histories import empty
from tests.processes import killed_before

FEED = """---
kind: feed
name: raw
frequency: hours(1)
availability_flag: _SUCCESS
locations: {data: "/raw/${YEAR}-${MONTH}-${DAY}/${HOUR}"}
sla: {low: hours(1), high: hours(2)}
clusters:
  - {name: primary, validity: {start: 2013-01-01T00:00Z, end: "2013-01-01T06:00Z"}}
  - {name: backup, validity: {start: 2013-01-01T02:00Z, end: "2013-01-01T04:00Z"}, sla: {low: hours(1), high: hours(1)}}
schedule: true
"""
PROCESS = """---
kind: process
name: hourly
frequency: hours(1)
sla: {should_start_in: hours(1), should_end_in: hours(2)}
clusters: [{name: primary, validity: {start: 2013-01-01T00:00Z, end: "2013-01-01T04:00Z"}}]
workflow: {engine: spark-sql, path: nothing.sql}
schedule: true
"""
FILES = {"clusters.yaml": cluster_yaml() + cluster_yaml("backup"), "raw.yaml": FEED, "hourly.yaml": PROCESS}


class World:
    """A database and an hour of the day."""

    def __init__(self, settings: Settings, instance: dg.DagsterInstance) -> None:
        self.settings, self.instance = settings, instance
        self.store = load_entities(settings.entity_defs)
        self.now = parse_instant("2013-01-01T00:00Z")
        self.anew()

    def anew(self, store: EntityStore | None = None) -> None:
        """As after a load of the code location."""
        self.seconds = 0.0
        self.evaluations = [
            SlaEvaluation(store or self.store, name, lambda: self.now, lambda: self.seconds)
            for name in ("primary", "backup")
        ]

    @property
    def ledger(self) -> Ledger:
        return open_ledger(replace(self.settings, clock=Clock(origin=self.now)), self.instance)

    def at(self, time: str) -> SlaOutcome:
        """Evaluates at that time of the day; what was found on the first cluster."""
        self.now = moment(time)
        found = [one.evaluate(self.ledger) for one in self.evaluations]
        return found[0]

    def looks(self, time: str) -> None:
        """The collector has gone through all that was due."""
        with self.ledger.engine.begin() as connection:
            set_last_collected(connection, "primary", {"raw": moment(time)})

    def lands(self, instance: str, at: str, cluster: str = "primary", looked_before: str | None = None) -> None:
        said = FeedInstanceAvailable(
            *(cluster, "raw", moment(instance), f"v{at}", moment(at)),
            looked_before=moment(looked_before) if looked_before else None,
        )
        key = dg.AssetKey([cluster, "raw"])
        self.instance.report_runless_asset_event(materialization(key, f"2013-01-01T{instance}Z", said))

    def comes_to(self, nominal: str, state: InstanceState, at: str) -> None:
        changed = InstanceChanged("hourly", "primary", moment(nominal), state, moment(at))
        key = dg.AssetKey(["primary", "hourly"])
        self.instance.report_runless_asset_event(changed.event(key, f"2013-01-01T{nominal}Z"))

    def breaches(self, entity: str = "raw", cluster: str = "primary") -> list[str]:
        table = SLA_BREACHES.c
        own = (table.entity == entity, table.cluster == cluster)
        with self.ledger.engine.connect() as connection:
            rows = connection.execute(select(SLA_BREACHES).where(*own).order_by(table.instance, table.level.desc()))
            return [
                " ".join(
                    [f"{row.instance:%H:%M}", row.level, f"{row.deadline:%H:%M}", row.state]
                    + ([f"{row.cleared_at:%H:%M}"] if row.cleared_at else [])
                )
                for row in rows
            ]


def moment(time: str) -> datetime:
    return parse_instant(f"2013-01-01T{time}Z")


@pytest.fixture(scope="module")
def defined(settings: Settings, write_entities: Callable[[dict[str, str]], Path]) -> Settings:
    (write_entities(FILES) / "nothing.sql").write_text("SELECT 1")
    return replace(settings, clock=Clock(origin=parse_instant("2013-01-01T00:00Z")))


@pytest.fixture
def world(defined: Settings, instance: dg.DagsterInstance) -> Iterator[World]:
    """Nothing has happened yet."""
    made = World(defined, instance)
    instance.wipe()
    empty(made.ledger.engine, CLOCK)
    yield made


def test_data_that_comes_late_and_data_that_never_comes(world: World) -> None:
    world.at("00:00")
    world.lands("00:00", "00:59")
    world.at("01:01")
    assert world.breaches() == []
    world.at("02:01")
    assert world.breaches() == ["01:00 low 02:00 OPEN"]
    world.lands("01:00", "02:30")
    assert world.at("02:45").cleared == 1
    assert world.breaches() == ["01:00 low 02:00 MET 02:30"]
    world.at("04:30")
    world.lands("02:00", "05:00")
    world.at("23:00")
    assert world.breaches() == [
        "01:00 low 02:00 MET 02:30",
        "02:00 low 03:00 MET 05:00",
        "02:00 high 04:00 MET 05:00",
        *(
            f"0{hour}:00 {level} 0{hour + limit}:00 OPEN"
            for hour in (3, 4, 5)
            for limit, level in ((1, "low"), (2, "high"))
        ),
    ]
    assert world.at("23:30") == SlaOutcome(0, 0, is_complete=True)


def test_each_cluster_has_its_own_validity_and_sla(world: World) -> None:
    world.at("00:00")
    world.at("12:00")
    assert world.breaches(cluster="backup") == [
        "02:00 low 03:00 OPEN",
        "02:00 high 03:00 OPEN",
        "03:00 low 04:00 OPEN",
        "03:00 high 04:00 OPEN",
    ]


def test_what_came_while_all_were_off_breaches_nothing_before_the_collector_has_looked(world: World) -> None:
    world.looks("00:00")
    world.at("00:30")
    world.anew()  # everything was off from then on
    world.at("03:30")
    assert world.breaches() == []
    world.lands("00:00", "03:31", looked_before="00:30")
    world.lands("01:00", "03:31", looked_before="00:30")
    world.looks("03:31")
    world.at("03:32")
    assert world.breaches() == ["02:00 low 03:00 OPEN"]


def test_a_collector_that_does_not_look_is_not_waited_for_for_ever(world: World) -> None:
    world.looks("00:00")
    world.at("00:30")
    world.anew()
    world.at("01:30")
    assert world.breaches() == []
    world.seconds += 301
    world.at("01:40")
    assert world.breaches() == []  # who evaluates had been off, too
    for _ in range(4):
        world.seconds += 100
        world.at("01:50")
    assert world.breaches() == ["00:00 low 01:00 OPEN"]


def test_what_came_while_nobody_evaluated(world: World) -> None:
    """Late all the same, unless it may have come in time: nobody looked in between."""
    world.at("00:00")
    world.lands("00:00", "03:00", looked_before="00:30")
    world.lands("01:00", "03:00", looked_before="02:30")
    world.lands("02:00", "03:00")
    world.at("03:30")
    assert world.breaches() == ["01:00 low 02:00 MET 02:30"]


def test_a_process_and_its_reruns(world: World) -> None:
    world.at("00:00")
    world.comes_to("00:00", InstanceState.RUNNING, "00:10")
    world.comes_to("00:00", InstanceState.SUCCEEDED, "00:20")
    world.comes_to("00:00", InstanceState.RUNNING, "01:50")  # a rerun, which goes on when its time is over
    world.comes_to("01:00", InstanceState.RUNNING, "01:10")
    world.comes_to("01:00", InstanceState.FAILED, "01:20")
    world.comes_to("02:00", InstanceState.SKIPPED, "02:30")
    world.at("05:30")
    assert world.breaches("hourly") == [
        "01:00 should_end_in 03:00 OPEN",
        "03:00 should_start_in 04:00 OPEN",
        "03:00 should_end_in 05:00 OPEN",
    ]
    world.comes_to("03:00", InstanceState.RUNNING, "05:31")
    world.comes_to("01:00", InstanceState.SKIPPED, "05:31")
    assert world.at("05:40").cleared == 2
    world.comes_to("03:00", InstanceState.SUCCEEDED, "05:50")
    world.comes_to("03:00", InstanceState.RUNNING, "05:55")
    world.at("06:00")
    assert world.breaches("hourly") == [
        "01:00 should_end_in 03:00 WITHDRAWN 05:40",
        "03:00 should_start_in 04:00 MET 05:31",
        "03:00 should_end_in 05:00 MET 05:50",
    ]


def test_what_is_suspended_breaches_nothing(world: World) -> None:
    world.at("00:00")
    feed = world.store.feed("raw")
    for time, command in (("01:30", Command.SUSPEND), ("03:30", Command.RESUME)):
        with world.ledger.engine.begin() as connection:
            apply_command(connection, feed, command, moment(time))
        world.at(time)
        world.at(f"{time[:4]}5")
    world.at("05:15")
    assert [one.removesuffix(" OPEN") for one in world.breaches()] == [
        "00:00 low 01:00",
        "02:00 high 04:00",
        "03:00 low 04:00",
        "03:00 high 05:00",
        "04:00 low 05:00",
    ]


def test_a_definition_that_changes(world: World) -> None:
    """What is shortened holds at once for what has not been judged; what is gone is withdrawn."""
    world.at("00:00")
    world.at("03:30")
    changed = world.store.feed("raw").model_copy(update={"sla": None})
    world.anew(replace(world.store, feeds={"raw": changed}, processes={}))
    world.at("03:40")
    assert [one for one in world.breaches() if not one.endswith("WITHDRAWN 03:40")] == []
    world.anew()
    world.at("03:45")
    assert len(world.breaches()) == 5  # none twice, and none for the past
    world.at("04:15")
    assert world.breaches()[-2:] == ["02:00 high 04:00 OPEN", "03:00 low 04:00 OPEN"]


def test_a_clock_that_is_set_back(world: World) -> None:
    world.at("00:00")
    world.at("03:30")
    before = world.breaches()
    assert world.at("01:30") == SlaOutcome(0, 0, is_complete=True)
    world.lands("02:00", "02:30")
    world.at("03:45")
    met = [one.replace("OPEN", "MET 03:00") if one.startswith("02:00 low") else one for one in before]
    assert world.breaches() == met
    world.at("04:15")
    assert world.breaches()[-1] == "03:00 low 04:00 OPEN"


def test_more_than_is_judged_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("falcon_assets.features.sla.evaluation._BUDGET", 3)
    world.at("00:00")
    found = [world.at("12:00") for _ in range(9)]
    assert [one.breached for one in found] == [3] * 6 + [2, 0, 0]
    assert [one.is_complete for one in found] == [False] * 6 + [True] * 3
    assert len(world.breaches()) == 12


def test_a_sensor_for_each_cluster_with_slas(world: World) -> None:
    world.at("00:00")
    settings = replace(world.settings, clock=Clock(origin=moment("04:15")))
    built = {one.name: one for one in definitions_of(world.store, settings).sensors or ()}
    assert [name for name in built if name.endswith("__sla")] == ["primary__sla", "backup__sla"]
    said = []
    for _ in range(2):
        with dg.build_sensor_context(instance=world.instance) as context:
            said.append(built["primary__sla"].evaluate_tick(context).skip_message)
    assert said == ["14 new breaches, 0 cleared", "0 new breaches, 0 cleared"]


def shown(world: World, asset: str, check: str) -> list[tuple[str, bool, str, str]]:
    """The evaluations of an asset's check, oldest first: partition, whether it passed, how bad it is, in words."""
    key = dg.AssetCheckKey(dg.AssetKey(["primary", asset]), check)
    records = world.instance.event_log_storage.get_asset_check_execution_history(key, limit=50)
    found = [one.event.dagster_event.asset_check_evaluation_data for one in reversed(records)]
    return [(one.partition[11:], one.passed, one.severity.value, one.description) for one in found]


def test_checks_of_assets_show_breaches_by_partition(world: World) -> None:
    checks = SlaChecks(world.store, world.settings)
    world.at("00:00")
    world.at("03:15")
    for _ in range(2):  # told once
        tell_dagster(world.ledger, checks, "primary")
    world.lands("01:00", "03:20")
    world.at("03:30")
    tell_dagster(world.ledger, checks, "primary")
    at = "was breached at 2013-01-01T"
    met = "and met at 2013-01-01T03:20Z"
    assert shown(world, "raw", "sla") == [
        ("02:00Z", False, "WARN", f"low {at}03:00Z"),
        ("00:00Z", False, "ERROR", f"low {at}01:00Z; high {at}02:00Z"),
        ("01:00Z", True, "WARN", f"low {at}02:00Z {met}; high {at}03:00Z {met}"),
    ]
    assert [one[:3] for one in sorted(shown(world, "hourly", "process_sla"))] == [
        ("00:00Z", False, "ERROR"),
        ("01:00Z", False, "ERROR"),
        ("02:00Z", False, "WARN"),
    ]


def test_checks_of_assets_show_what_was_kept(world: World) -> None:
    checks = SlaChecks(world.store, world.settings)
    world.at("00:00")
    world.lands("00:00", "00:10")
    found = world.at("03:15")
    assert [one[1:] for one in found.kept] == [("raw", "primary", moment("00:00"))]
    tell_dagster(world.ledger, checks, "primary", found.kept)
    assert ("00:00Z", True, "WARN", "the SLA was met") in shown(world, "raw", "sla")


def partitions_shown(world: World) -> dict[str, list[str]]:
    """The partitions of the check of raw by status, as its tab in the UI has them."""
    key, check = dg.AssetCheckKey(dg.AssetKey(["primary", "raw"]), "sla"), SlaChecks(world.store, world.settings)
    found = check.find("feed", "raw", "primary")
    assert found is not None
    definition = partitions_of(found.timeline)
    state = world.instance.event_log_storage.get_asset_check_state([(key, definition)])[key]
    by_status = {status.value: one.subset_value for status, one in state.subsets.items() if not one.is_empty}
    return {status: [one[11:] for one in keys.get_partition_keys()] for status, keys in by_status.items()}


def test_partitions_of_checks_keep_their_colour_when_data_comes_again(world: World) -> None:
    checks = SlaChecks(world.store, world.settings)
    world.at("00:00")
    world.lands("00:00", "00:10")
    tell_dagster(world.ledger, checks, "primary", world.at("03:15").kept)
    for moment_of_landing in ("03:20", "03:30"):
        assert partitions_shown(world) == {"SUCCEEDED": ["00:00Z"], "FAILED": ["01:00Z", "02:00Z"]}
        world.lands("00:00", moment_of_landing)


def test_who_executes_a_check_is_told_what_is_known(world: World) -> None:
    world.at("00:00")
    world.at("03:15")
    built = definitions_of(world.store, replace(world.settings, clock=Clock(origin=world.now)))
    key = dg.AssetCheckKey(dg.AssetKey(["primary", "raw"]), "sla")
    job = built.resolve_implicit_global_asset_job_def()
    tags = {
        "dagster/asset_partition_range_start": "2013-01-01T02:00Z",
        "dagster/asset_partition_range_end": "2013-01-01T03:00Z",
    }
    selected = job.get_subset(asset_selection=set(), asset_check_selection={key})
    assert selected.execute_in_process(instance=world.instance, tags=tags).success
    assert [one[:3] for one in sorted(shown(world, "raw", "sla"))] == [
        ("02:00Z", False, "WARN"),
        ("03:00Z", True, "WARN"),
    ]


def test_many_checks_are_shared_out_to_ops_of_their_own(world: World) -> None:
    feed = world.store.feed("raw")
    feeds = {f"raw-{number}": feed.model_copy(update={"name": f"raw-{number}"}) for number in range(120)}
    built = SlaChecks(replace(world.store, feeds=feeds, processes={}), world.settings).definitions()
    ops = {one.node_def.name: len(one.check_keys) for one in built}
    name = "asset_checks_of_all_service_level_agreements"
    numbers = dict(enumerate((50, 50, 20)))
    assert ops == {f"{cluster}_{name}_{n}": size for cluster in ("primary", "backup") for n, size in numbers.items()}


def test_jobs_of_processes_check_nothing(world: World) -> None:
    built = definitions_of(world.store, world.settings)
    assert [one.name for one in built.resolve_job_def("primary__hourly_job").nodes] == ["primary__hourly"]


def test_killed_before_every_step(world: World) -> None:
    world.at("00:00")
    world.lands("01:00", "03:00")

    def steps() -> None:
        def told(*_: Any) -> None:
            sys.audit("sql.step")

        event.listen(Engine, "before_cursor_execute", told)
        event.listen(Engine, "commit", told)
        world.ledger.engine.dispose(close=False)
        world.at("04:30")

    for step in count(1):
        was_killed = killed_before(step, {"sql.step"}, steps)
        found = len(world.breaches())
        assert found in (0, len(EXPECTED)), f"a part of the breaches before step {step}"
        if not was_killed:
            break
    assert step > 15
    assert world.breaches() == EXPECTED
    assert world.at("04:30").breached == 0


EXPECTED = [
    "00:00 low 01:00 OPEN",
    "00:00 high 02:00 OPEN",
    "01:00 low 02:00 MET 03:00",
    "02:00 low 03:00 OPEN",
    "02:00 high 04:00 OPEN",
    "03:00 low 04:00 OPEN",
]
