"""``rerun --downstream``: what reads the outputs runs again, too, each after what it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import select

from falcon_assets.history.tables import FOLD, RERUNS
from falcon_assets.instances.coordination.coordinator import Coordinator
from falcon_assets.instances.operations.rerunning import RerunOptions, rerun_instances
from falcon_assets.instances.operations.selection import CommandResult, InstanceRequest
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.operations.installation import Installation
from falcon_assets.surface.cli.instance import instance as commands
from tests.builders import cluster_yaml
from tests.hours import hour
from tests.ledger.histories import empty
from tests.operations.opening import OpenAt
from tests.operations.rows import feed_row, process_row, write

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2014-01-01T00:00Z}"
FEED = """---
kind: feed
name: {name}
frequency: {frequency}
schedule: true
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{clusters}]
"""
PROCESS = """---
kind: process
name: {name}
schedule: true
frequency: {frequency}
clusters: [{{name: {cluster}, {span}}}]
inputs: [{{name: rows, feed: {reads}, start: "{start}", end: "{end}"}}]
outputs: [{writes}]
workflow: {{engine: spark-sql, path: a.sql}}
"""
HOURS, DAYS, NOW = "hours(1)", "days(1)", "now(0,0)"


def process(name: str, reads: str, cluster: str, frequency: str = HOURS, start: str = NOW, writes: str = "") -> str:
    out = f'{{name: out, feed: {writes}, instance: "now(0,0)"}}' if writes else ""
    told = {"name": name, "reads": reads, "cluster": cluster, "frequency": frequency, "start": start, "span": SPAN}
    return PROCESS.format(**told, end="now(23,0)" if frequency == DAYS else NOW, writes=out)


ALONE = f"{{name: primary, {SPAN}}}"
COPIED = f"{{name: primary, type: source, {SPAN}}}, {{name: backup, type: target, {SPAN}}}"
ENTITIES = "".join(
    [
        cluster_yaml("primary"),
        cluster_yaml("backup"),
        FEED.format(name="raw", frequency=HOURS, clusters=ALONE),
        FEED.format(name="made", frequency=HOURS, clusters=COPIED),
        FEED.format(name="daily", frequency=DAYS, clusters=ALONE),
        process("make", "raw", "primary", writes="made"),
        process("sum", "made", "primary", DAYS, writes="daily"),
        process("month", "daily", "primary", DAYS, "now(-24,0)").replace("now(23,0)", NOW),
        process("report", "made", "backup"),
        process("newest", "made", "primary", start="latest(0)").replace(f'end: "{NOW}"', 'end: "latest(0)"'),
    ]
)
COPY = "made from primary"
ROWS = [
    *(("make", "primary", hour, "SUCCEEDED") for hour in range(4)),
    *((COPY, "backup", hour, "SUCCEEDED") for hour in range(3)),
    ("report", "backup", 1, "FAILED"),
    ("report", "backup", 2, "SUCCEEDED"),
    ("sum", "primary", 0, "SUCCEEDED"),
    ("month", "primary", 0, "SUCCEEDED"),
]


@pytest.fixture
def installation(open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path]) -> Iterator[Installation]:
    """At noon of the next day."""
    write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    with open_at("2013-01-02T12:00Z") as opened:
        opened.ledger.catch_up()
        empty(opened.ledger.engine, FOLD)  # what other tests said is not folded once more
        write(opened, *(process_row(name, number, state, on, failures=9) for name, on, number, state in ROWS))
        places = [("primary", "raw"), ("primary", "made"), ("backup", "made")]
        write(opened, *(feed_row(feed, number, cluster) for cluster, feed in places for number in range(24)))
        yield opened


def again(installation: Installation, **more: Any) -> CommandResult:
    request = InstanceRequest(InstanceQuery("make", start=hour(1)), **more)
    return rerun_instances(installation, request, RerunOptions(force=True, downstream=True))


PLAN = {
    ("make", "primary", hour(1)),
    (COPY, "backup", hour(1)),
    ("report", "backup", hour(1)),
    ("sum", "primary", hour(0)),
    ("month", "primary", hour(0)),
}


def test_what_reads_it_is_planned_over_processes_and_replications(installation: Installation) -> None:
    planned = again(installation, dry_run=True)
    assert {(one.instance.entity, one.instance.cluster, one.instance.instance) for one in planned.items} == PLAN
    with installation.ledger.engine.connect() as connection:
        assert not connection.execute(select(RERUNS)).all()


def test_each_waits_for_what_it_reads(installation: Installation) -> None:
    assert again(installation).changed == len(PLAN)
    assert again(installation).changed == 0
    workloads = installation.entities.workloads
    outlook = Coordinator(installation.entities, installation.settings, workloads).decide(installation.ledger)
    launched = {(run.workload.name, nominal) for run in outlook.runs for nominal in run.launch.nominals}
    assert ("make", hour(1)) in launched
    waiting = {
        (name, cluster, nominal): str(decision.waiting.get(nominal))
        for name, cluster, nominal in PLAN - {("make", "primary", hour(1))}
        if (decision := outlook.decisions[name, cluster])
    }
    make = "waits for the rerun of make 2013-01-01T01:00Z"
    assert waiting[COPY, "backup", hour(1)] == make
    assert waiting["report", "backup", hour(1)] == "waits for the rerun of made from primary 2013-01-01T01:00Z"
    assert not {(name, nominal) for name, _, nominal in waiting} & launched


def test_the_command_shows_the_plan_and_asks(installation: Installation) -> None:
    arguments = ["rerun", "make", "--start", "2013-01-01T01:00Z", "--force", "--downstream"]
    refused = CliRunner().invoke(commands, arguments, input="n\n")
    assert (refused.exit_code, refused.output.count("would be asked to run again: it is")) == (1, len(PLAN))
    with installation.ledger.engine.connect() as connection:
        assert not connection.execute(select(RERUNS)).all()
    done = CliRunner().invoke(commands, [*arguments, "--yes"])
    assert done.exit_code == 0, done.output
    assert f"{len(PLAN)} instances asked to run again, 0 left as they are" in done.output
