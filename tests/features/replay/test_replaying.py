"""Versions that are computed once more: the same, different, or impossible; with real runs on Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from falcon_assets.catalog.store import load_entities
from falcon_assets.errors import QueryError, StorageError, UnknownInstanceError
from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.lineage.asking import show_lineage
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.features.replay.operations import ReplayResult, replay_instance
from falcon_assets.features.versions.operations import instance_versions
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.runs.run_definitions import DefinitionRecording
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.audit import list_audit
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.operations.paging import Query
from falcon_assets.storage.files.path_lock import path_lock
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml, land_rows
from tests.world import run_instance

SPAN = "validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}"
FEED = """---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
format: json
locations: {{data: "/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: primary, {span}}}]
{more}
"""
PROCESS = """---
kind: process
name: {name}
clusters: [{{name: primary, {span}}}]
frequency: hours(1)
inputs: [{{name: read, feed: {read}, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: {written}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: {name}.sql}}
"""
KEPT = "versions: {keep: 5}"
CHAIN = (("landed", ""), ("named", KEPT), ("added", KEPT), ("drawn", ""))
FILES = {
    "all.yaml": cluster_yaml()
    + "".join(FEED.format(name=name, more=more, span=SPAN) for name, more in CHAIN)
    + PROCESS.format(name="to-name", read="landed", written="named", span=SPAN)
    + PROCESS.format(name="to-add", read="named", written="added", span=SPAN)
    + PROCESS.format(name="to-draw", read="named", written="drawn", span=SPAN),
    "to-name.sql": "SELECT v, concat('n', v) AS name FROM read",
    "to-add.sql": "SELECT name, v + 1 AS more, map('v', v) AS labels FROM read",
    "to-draw.sql": "SELECT v, rand() AS drawn FROM read",
}
HOUR = parse_instant("2013-01-01T03:00Z")
KEY = "2013-01-01T03:00Z"


def land(installation: Installation, *values: int) -> None:
    land_rows(installation.settings.home / "data/primary/landed/2013-01-01-03", *({"v": value} for value in values))
    collect_instances(installation, "landed", HOUR, HOUR)


def recorded(installation: Installation, settings_root: Path) -> None:
    DefinitionRecording(settings_root, installation.settings).record(installation.ledger)


@pytest.fixture(scope="module")
def world(
    settings: object, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> Iterator[Installation]:
    """Everything was made twice, the second time from other landed data and, of to-add, by another workflow."""
    root = write_entities(FILES)
    load_entities(root)
    with open_installation(settings, instance) as installation:  # type: ignore[arg-type]
        recorded(installation, root)
        land(installation, 1, 2)
        for process in ("to-name", "to-add", "to-draw"):
            run_instance(installation, process, KEY)
        land(installation, 3)
        (root / "to-add.sql").write_text("SELECT name, v + 2 AS more, map('v', v) AS labels FROM read")
        recorded(installation, root)
        for process in ("to-name", "to-add"):
            run_instance(installation, process, KEY)
        yield installation


def request(process: str) -> InstanceRequest:
    return InstanceRequest(InstanceQuery(process, start=HOUR))


def replayed(world: Installation, process: str, version: str | None = None, *, publish: bool = False) -> ReplayResult:
    return replay_instance(world, request(process), version, publish=publish)


def states(world: Installation, feed: str) -> dict[str, str]:
    return {one.state: one.version for one in instance_versions(world, feed, HOUR).versions}


def data_of(world: Installation, feed: str) -> str:
    folder = world.settings.home / f"data/primary/{feed}/2013-01-01-03"
    return "".join(file.read_text() for file in sorted(folder.glob("*.json")))


def test_the_present_version_is_reproduced(world: Installation) -> None:
    done = replayed(world, "to-name")
    assert (done.outcome, done.folder, [one.records for one in done.outputs]) == ("reproduced", "", [1])
    assert not list(world.settings.home.rglob("replays/to-name/*"))


def test_an_earlier_version_is_reproduced_from_what_it_read_with_the_code_of_then(world: Installation) -> None:
    """Its input was replaced and kept; its workflow is another one now."""
    before = data_of(world, "added")
    done = replayed(world, "to-add", states(world, "added")["KEPT"])
    assert (done.outcome, done.definition, done.outputs[0].records) == ("reproduced", 1, 2)
    assert done.outputs[0].comparison is not None
    assert (data_of(world, "added"), world.entities.process("to-add").name) == (before, "to-add")


def test_what_is_drawn_anew_is_different(world: Installation) -> None:
    done = replayed(world, "to-draw")
    assert done.outcome == "different"
    found = done.outputs[0].comparison
    assert found is not None
    assert (found.columns, found.records, found.only) == ((), (2, 2), (2, 2))
    assert {row["v"] for row in found.samples[0]} == {row["v"] for row in found.samples[1]} == {1, 2}
    assert list(Path(done.folder).glob("out/*.json"))
    assert json.loads(json.dumps(done.as_data()))["outputs"][0]["reproduced"] is False


def test_what_went_makes_it_impossible(world: Installation) -> None:
    """The landed data was replaced in place."""
    done = replayed(world, "to-name", states(world, "named")["KEPT"])
    assert done.outcome == "impossible"
    assert "read: primary/landed/2013-01-01T03:00Z@" in done.impossible
    assert "which was replaced" in done.impossible


def test_what_cannot_be_asked_for(world: Installation) -> None:
    with pytest.raises(
        UnknownInstanceError, match=r"no version f00\.\.\. is recorded that to-add made at 2013-01-01T03"
    ):
        replayed(world, "to-add", "f00")
    with pytest.raises(QueryError, match="which instance is to be replayed"):
        replay_instance(world, InstanceRequest(InstanceQuery("to-add")))


def test_of_two_replays_at_once_one_is_refused(world: Installation) -> None:
    folder = Path(replayed(world, "to-draw").folder)
    with path_lock(folder.with_name(f"{folder.name}.lock"), 0) as is_ours:
        assert is_ours
        with pytest.raises(StorageError, match="to-draw 2013-01-01T03:00Z is being replayed by another process"):
            replayed(world, "to-draw")
    assert list(folder.glob("out/*.json"))


def test_published_it_is_the_present_version(world: Installation) -> None:
    """And what it was made from is known: what it read is not the present version of the input."""
    old = states(world, "added")["KEPT"]
    done = replayed(world, "to-add", old, publish=True)
    assert (done.outcome, done.published) == ("reproduced", True)
    assert '"more":2' in data_of(world, "added")
    found = show_lineage(world, VersionQuery("added", HOUR))
    read = [one for one in found.graph.versions.values() if one.feed == "named"]
    assert [one.status.value for one in read] == ["REPLACED"]
    assert (found.version.definition, found.version.records) == (1, 2)
    asked = [one.result for one in list_audit(world, Query()).items if one.operation == "instance replay"]
    assert asked[0] == "done"


def test_the_command(world: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    told = CliRunner().invoke(falcon, ["instance", "replay", "to-draw", KEY])
    assert told.exit_code == 1, told.output
    lines = told.output.splitlines()
    assert lines[0] == "to-draw 2013-01-01T03:00Z on primary: different"
    assert lines[2] == "    records: 2, now 2"
    assert lines[3] == "    only recorded: 2 records, for example"
    assert lines[-1].startswith("what was computed now lies in /")
    gone = CliRunner().invoke(
        falcon, ["instance", "replay", "to-name", "--start", KEY, "--version", states(world, "named")["KEPT"], "--json"]
    )
    assert (gone.exit_code, json.loads(gone.output)["outcome"]) == (1, "impossible")
