"""``falcon metrics``: what it prints of a ledger that real events made."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import delete

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import SettingsError
from falcon_assets.features.metrics import reading
from falcon_assets.features.metrics.declared import METRICS
from falcon_assets.features.metrics.exposition import ShowMetrics, write_textfile
from falcon_assets.features.sla.evaluation import SlaEvaluation
from falcon_assets.history.events.event_log import materialization, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, FeedInstanceEvicted
from falcon_assets.history.events.process_instances import FilesCopied, InstanceChanged
from falcon_assets.history.tables import RERUNS
from falcon_assets.instances.views.listing import all_instances, summarize_instances
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import format_instant, parse_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.settings import Settings
from tests.builders import cluster_yaml
from tests.hours import START, hour
from tests.operations.rows import fill

NOW = "2013-01-01T06:30Z"
VALID = 'validity: {start: 2013-01-01T00:00Z, end: "2013-01-02T00:00Z"}'
ENTITIES = (
    cluster_yaml()
    + cluster_yaml("backup")
    + f"""---
kind: feed
name: raw
frequency: hours(1)
locations: {{data: "/raw/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
sla: {{low: hours(1), high: hours(3)}}
clusters:
  - {{name: primary, type: source, {VALID}}}
  - {{name: backup, type: target, {VALID}}}
schedule: true
acl: {{owner: somebody-else, permission: "0700"}}
---
kind: feed
name: made
frequency: hours(1)
locations: {{data: "/made/${{YEAR}}-${{MONTH}}-${{DAY}}/${{HOUR}}"}}
clusters: [{{name: primary, {VALID}}}]
---
kind: process
name: work
clusters: [{{name: primary, {VALID}}}]
frequency: hours(1)
inputs: [{{name: rows, feed: raw, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: made, feed: made, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: a.sql}}
schedule: true
---
kind: process
name: calendar
timezone: Europe/Berlin
clusters: [{{name: primary, validity: {{start: 2012-12-25T00:00Z, end: "2013-01-02T00:00Z"}}}}]
frequency: days(1)
workflow: {{engine: spark-sql, path: a.sql}}
schedule: false
"""
)


def tell(instance: dg.DagsterInstance) -> None:
    """Six hours land, four are copied, one of them goes; two instances of the process are over, of which one failed."""
    for number in range(6):
        landed = FeedInstanceAvailable("primary", "raw", hour(number), "v1", hour(number + 1), bytes=10)
        partition = format_instant(hour(number))
        instance.report_runless_asset_event(materialization(dg.AssetKey(["primary", "raw"]), partition, landed))
    for number in range(4):
        partition, key = format_instant(hour(number)), dg.AssetKey(["backup", "raw"])
        done = InstanceChanged("raw from primary", "backup", hour(number), InstanceState.SUCCEEDED, hour(number + 1))
        there = FeedInstanceAvailable(
            "backup", "raw", hour(number), "v1", hour(number + 1), process="raw from primary", nominal=hour(number)
        )
        copied = FilesCopied("primary", 1, 0, 0, 1000, "sizes")
        instance.report_runless_asset_event(materialization(key, partition, done, there, copied))
    gone = FeedInstanceEvicted("backup", "raw", hour(0), "delete", hour(5), bytes=12)
    instance.report_runless_asset_event(observation(dg.AssetKey(["backup", "raw"]), format_instant(hour(0)), gone))
    for number, state in ((0, InstanceState.SUCCEEDED), (1, InstanceState.FAILED)):
        said = InstanceChanged("work", "primary", hour(number), state, hour(number + 1), "no")
        key = dg.AssetKey(["primary", "made"])
        instance.report_runless_asset_event(said.event(key, format_instant(hour(number))))


@pytest.fixture(scope="module")
def installation(
    settings: Settings, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> Iterator[Installation]:
    root = write_entities({"all.yaml": ENTITIES, "a.sql": "SELECT 1"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FALCON_CLOCK", NOW)
        with open_installation() as opened:
            store, ledger = load_entities(root), opened.ledger
            SlaEvaluation(store, "primary", lambda: START).evaluate(ledger)
            SlaEvaluation(store, "backup", lambda: START).evaluate(ledger)
            tell(instance)
            for cluster in ("primary", "backup"):
                SlaEvaluation(store, cluster, lambda: parse_instant(NOW)).evaluate(ledger)
            yield opened


def found(installation: Installation) -> dict[tuple[str, ...], float]:
    """(metric, values of its labels in their order) -> value, read as Prometheus does."""
    families = text_string_to_metric_families(ShowMetrics().run(installation))
    labels = {one.name: one.labels for one in METRICS}
    samples = [sample for family in families for sample in family.samples]
    return {(one.name, *(one.labels[name] for name in labels[one.name])): one.value for one in samples}


def counts(values: dict[tuple[str, ...], float], name: str) -> dict[tuple[str, ...], float]:
    return {key[1:]: value for key, value in values.items() if key[0] == name and value}


def test_what_is_printed(installation: Installation) -> None:
    values = found(installation)
    assert counts(values, "falcon_instances") == {
        ("process", "work", "primary", "SUCCEEDED"): 1,
        ("process", "work", "primary", "FAILED"): 1,
        ("process", "work", "primary", "WAITING"): 5,
        ("process", "calendar", "primary", "WAITING"): 8,
        ("replication", "raw from primary", "backup", "SUCCEEDED"): 4,
        ("replication", "raw from primary", "backup", "WAITING"): 3,
        ("feed", "raw", "primary", "AVAILABLE"): 6,
        ("feed", "raw", "backup", "AVAILABLE"): 3,
        ("feed", "raw", "backup", "EVICTED"): 1,
    }
    assert values["falcon_instances", "process", "work", "primary", "RUNNING"] == 0
    assert counts(values, "falcon_waiting_instances") == {
        ("process", "work", "primary", "inputs_missing"): 1,
        ("process", "work", "primary", "launch_pending"): 4,
        ("process", "calendar", "primary", "not_scheduled"): 8,
        ("replication", "raw from primary", "backup", "inputs_missing"): 1,
        ("replication", "raw from primary", "backup", "launch_pending"): 2,
    }
    assert counts(values, "falcon_feed_lag_seconds") == {
        ("raw", "primary"): 1800,
        ("raw", "backup"): 2.5 * 3600,
        ("made", "primary"): 6.5 * 3600,
    }
    newest = {("raw", "primary"): hour(5).timestamp(), ("raw", "backup"): hour(3).timestamp()}
    assert counts(values, "falcon_feed_newest_instance_timestamp_seconds") == newest
    assert counts(values, "falcon_replicated_bytes_total") == {("raw from primary", "backup"): 4000}
    assert counts(values, "falcon_evicted_bytes_total") == {("raw", "backup", "delete"): 12}
    assert counts(values, "falcon_sla_open_breaches") == {("feed", "raw", "backup", "WARN"): 2}
    assert counts(values, "falcon_sla_breaches_total") == {("feed", "raw", "backup", "WARN"): 2}
    assert values["falcon_up",] == 1
    assert values["falcon_ledger_behind_events",] == 0


def test_counts_are_those_of_the_summary(installation: Installation) -> None:
    """Also where an instance that is over waits for a rerun; the user may read less than all."""
    asked = {"kind": "rerun", "cause": [], "attempt": 1, "failures": 1, "requested_at": hour(6), "actor": "ann"}
    told = {"late_workflow": False, "use_latest": False, "reason": ""}
    fill(
        installation,
        RERUNS,
        {"properties": {}, "process": "work", "cluster": "primary", "nominal": hour(1), **asked, **told},
    )
    try:
        values, queries = found(installation), [InstanceQuery(), InstanceQuery(type="feed")]
        of_summary = {
            (one.kind, one.entity, one.cluster, state.value): number
            for query in queries
            for one in summarize_instances(installation, query)
            for state, number in one.states.items()
            if state.value != "MISSING"
        }
        seen = counts(values, "falcon_instances")
        assert of_summary and of_summary == {key: seen[key] for key in of_summary}
        assert {one[1] for one in set(seen) - set(of_summary)} == {"raw", "raw from primary"}
        waiting = all_instances(installation, InstanceQuery(filters=(("state", "WAITING"),)))
        reasons = Counter((one.kind, one.entity, one.cluster, (one.reason or {})["kind"]) for one in waiting)
        of_metrics = counts(values, "falcon_waiting_instances")
        assert reasons == {key: of_metrics[key] for key in reasons}
        assert ("process", "work", "primary", "rerun_requested") in reasons
    finally:
        with installation.ledger.engine.begin() as connection:
            connection.execute(delete(RERUNS))


def test_all_that_wait_are_counted_though_few_are_asked(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "ASKED_WHY", 3)
    waiting = counts(found(installation), "falcon_waiting_instances")
    assert sum(waiting.values()) == 16
    assert sum(number for key, number in waiting.items() if key[3] != reading.NOT_ASKED) == 3
    assert waiting["process", "calendar", "primary", "not_scheduled"] == 3  # the oldest


def test_the_names_are_as_prometheus_wants_them(installation: Installation) -> None:
    text = ShowMetrics().run(installation)
    declared = {one.name: one for one in METRICS}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP \w+ .+\.|TYPE \w+ (gauge|counter))", line), line
        else:
            assert re.fullmatch(r"falcon_[a-z_]+(\{.+\})? \S+", line), line
    for name, one in declared.items():
        assert re.fullmatch(r"falcon(_[a-z]+)+", name) and (one.type == "counter") == name.endswith("_total"), name
        assert f"# TYPE {name} {one.type.value}\n" in text and f"# HELP {name} {one.help}\n" in text
        assert not re.search(r"_(ms|minutes|hours|kb|mb|percent)(_|$)", name)
        assert set(one.labels).isdisjoint({"le", "quantile", "job", "instance"})


def test_no_series_twice(installation: Installation) -> None:
    lines = [line.rpartition(" ")[0] for line in ShowMetrics().run(installation).splitlines() if line[0] != "#"]
    assert len(lines) == len(set(lines)) > 40


def test_the_textfile_is_replaced_and_stays_where_something_is_wrong(
    installation: Installation, tmp_path: Path
) -> None:
    path = tmp_path / "falcon.prom"
    path.write_text("old\n")
    environ = {**os.environ, "FALCON_CLOCK": NOW, "LC_ALL": "C"}
    command = [
        sys.executable,
        "-c",
        "from falcon_assets.surface.cli.main import main; main()",
        "metrics",
        "--textfile",
        str(path),
    ]
    dead = {**environ, "FALCON_DATABASE_URL": f"postgresql://me:hunter2@/none?host={tmp_path}/nowhere"}
    done = subprocess.run(command, env=dead, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"Error: the database .* cannot be reached: .+\n", done.stderr)
    assert "hunter2" not in done.stderr
    assert path.read_text() == "old\n"
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(text_string_to_metric_families(path.read_text()))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere/falcon.prom cannot be written: No such file or directory"):
        write_textfile(tmp_path / "nowhere" / "falcon.prom", "")


@pytest.mark.parametrize("kind", ["a pipe", "a symbolic link", "a folder", "a device"])
def test_nothing_but_a_regular_file_is_replaced(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "falcon.prom"
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a symbolic link":
        path.symlink_to("/dev/null")
    elif kind == "a folder":
        path.mkdir()
    else:
        path = Path("/dev/null")
    with pytest.raises(SettingsError, match=f"cannot be written: it is {kind}, and only regular files are replaced"):
        write_textfile(path, "x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert [one.name for one in tmp_path.iterdir()] == ([] if kind == "a device" else ["falcon.prom"])
