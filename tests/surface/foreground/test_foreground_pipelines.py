"""What one pipeline is about to make is an optional input of another in the same ``falcon run``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
import pytest

from falcon_assets.catalog.store import load_entities
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.instances.runs import instance_run
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings
from falcon_assets.surface.dagster.code_location import definitions_of
from falcon_assets.surface.foreground.foreground import Foreground
from falcon_assets.surface.foreground.foreground_runs import Display
from tests.builders import cluster_yaml

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}"
FEED = """---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, {span}}}]
"""
PROCESSES = f"""---
kind: process
name: day
pipelines: [a-reader]
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
frequency: days(1)
inputs: [{{name: hours, feed: hourly, start: "today(0,0)", end: "today(21,0)", optional: true}}]
workflow: {{engine: pyspark, path: work.py}}
schedule: true
---
kind: process
name: hour
pipelines: [b-maker]
clusters: [{{name: primary, {SPAN}}}]
frequency: hours(1)
inputs: [{{name: raw, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: hourly, instance: "now(0,0)"}}]
workflow: {{engine: pyspark, path: work.py}}
schedule: true
"""
LANDED = 20


def test_the_reader_waits_for_all_that_can_be_made(
    settings: Settings,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its pipeline is decided on first; 2 of its 22 hours will not come, and are not waited for."""
    text = cluster_yaml() + FEED.format(name="raw", span=SPAN) + FEED.format(name="hourly", span=SPAN) + PROCESSES
    root = write_entities({"all.yaml": text, "work.py": "def run(spark, inputs, instance):\n    pass\n"})
    for hour in range(LANDED):
        folder = settings.home / f"data/primary/raw/2013-01-01/{hour:02}"
        folder.mkdir(parents=True)
        (folder / "part").write_text("1")
        (folder / "_SUCCESS").touch()
    read: list[int] = []

    def compute(task: WorkflowTask) -> WorkflowResult:
        if task.process == "day":
            read.append(len(task.inputs[0].urls))
        for output in task.outputs:
            folder = Path(urlsplit(output.url).path)
            folder.mkdir(parents=True)
            (folder / "part").write_text("1")
        return WorkflowResult(dict.fromkeys((one.name for one in task.outputs), 1), "")

    monkeypatch.setattr(instance_run, "compute_with_others", compute)
    at = replace(settings, clock=Clock(origin=parse_instant("2013-01-01T22:30Z")))
    store = load_entities(root)
    display = Display(*[lambda *told: None] * 5)
    ledger = open_ledger(at, instance)
    outcome = Foreground(store, at, definitions_of(store, at), ledger, display, lambda cluster: None).run(
        store.workloads, None
    )
    assert (outcome.succeeded, outcome.trouble, outcome.left_out) == (LANDED + 1, (), {})
    assert read == [LANDED]
