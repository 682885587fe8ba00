"""Replays with the cluster and the feeds of then, which are declared otherwise now; with real runs on Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner
from sqlalchemy import select, update

from falcon_assets.errors import UnknownEntityError, UnknownInstanceError
from falcon_assets.features.landing.operations import collect_instances
from falcon_assets.features.replay.operations import ReplayResult, replay_instance
from falcon_assets.history.tables import DATA_VERSIONS
from falcon_assets.instances.operations.selection import InstanceRequest
from falcon_assets.instances.runs.run_definitions import DefinitionRecording
from falcon_assets.instances.views.query import InstanceQuery
from falcon_assets.model.instant import parse_instant
from falcon_assets.operations.installation import Installation, open_installation
from falcon_assets.surface.cli.main import falcon
from tests.builders import SPARK, cluster_yaml, land_rows
from tests.world import run_instance

FEED = """---
kind: feed
name: {name}
frequency: hours(1)
availability_flag: _SUCCESS
format: {format}
{more}
locations: {{data: "/{place}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
"""
PROCESS = """---
kind: process
name: {name}
clusters: [{{name: primary, validity: {{start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}}}}]
frequency: hours(1)
inputs: [{{name: read, feed: {read}, start: "now(0,0)", end: "now(0,0)"}}]
outputs: [{{name: out, feed: {written}, instance: "now(0,0)"}}]
workflow: {{engine: spark-sql, path: {name}.sql}}
"""
SQL = {
    "to-name.sql": "SELECT v FROM read WHERE v > :threshold",
    "to-add.sql": "SELECT v + 1 AS more FROM read",
    "to-sum.sql": "SELECT sum(v) AS sum FROM read",
}
HOUR, KEY = parse_instant("2013-01-01T03:00Z"), "2013-01-01T03:00Z"


def feed(name: str, place: str | None = None, format: str = "json", more: str = "") -> str:
    return FEED.format(name=name, place=place or name, format=format, more=more)


def cluster(threshold: int) -> str:
    """With an option whose value is not recorded."""
    return cluster_yaml(properties={**SPARK, "threshold": str(threshold)}, storage_options={"auto_mkdir": True})


THEN = "".join(
    [
        cluster(1),
        *map(feed, ("landed", "old", "added")),
        feed("named", more="options: {multiLine: 'false'}"),
        feed("summed", more="options: {dateFormat: yyyy, password: hunter2}"),
        PROCESS.format(name="to-name", read="landed", written="named"),
        PROCESS.format(name="to-add", read="named", written="added"),
        PROCESS.format(name="to-sum", read="old", written="summed"),
    ]
)
NOW = "".join(
    [
        cluster(5),
        feed("landed", format="text"),
        feed("named", "there", more="options: {multiLine: 'false'}"),
        feed("added", "elsewhere", "parquet", 'schema: "more long"'),
        feed("summed", more="options: {dateFormat: yyyy, password: hunter2}"),
        PROCESS.format(name="to-name", read="landed", written="named"),
        PROCESS.format(name="to-add", read="named", written="added"),
        PROCESS.format(name="to-sum", read="named", written="summed"),
    ]
)


@pytest.fixture(scope="module")
def world(
    settings: Any, instance: dg.DagsterInstance, write_entities: Callable[[dict[str, str]], Path]
) -> Iterator[Installation]:
    """Everything was made as it was declared then, and is declared otherwise now; ``named`` was moved, too."""
    root = write_entities({"all.yaml": THEN, **SQL})
    data = settings.home / "data/primary"
    with open_installation(settings, instance) as installation:
        DefinitionRecording(root, settings).record(installation.ledger)
        for name in ("landed", "old"):
            land_rows(data / name / "2013-01-01-03", {"v": 1}, {"v": 2}, {"v": 9})
            collect_instances(installation, name, HOUR, HOUR)
        for process in ("to-name", "to-add", "to-sum"):
            run_instance(installation, process, KEY)
        (root / "all.yaml").write_text(NOW)
        installation.forget_entities()
        DefinitionRecording(root, settings).record(installation.ledger)
        yield installation


def replayed(world: Installation, process: str, *, publish: bool = False) -> ReplayResult:
    return replay_instance(world, InstanceRequest(InstanceQuery(process, start=HOUR)), publish=publish)


def told(done: ReplayResult) -> list[str]:
    return [str(one) for one in done.old]


def test_cluster_and_feeds_are_those_of_then(world: Installation) -> None:
    """The threshold of the cluster, the format of what landed, and the place of what was made."""
    done = replayed(world, "to-name")
    assert (done.outcome, done.outputs[0].records) == ("reproduced", 2)
    assert done.outputs[0].comparison is not None
    assert told(done) == [
        "cluster primary as in version 1 of its definition: it is declared otherwise now",
        "feed landed as in version 1 of its definition: it is declared otherwise now",
        "feed named as in version 1 of its definition: it is declared otherwise now",
    ]


def test_a_feed_that_is_gone_is_read_as_it_was(world: Installation) -> None:
    done = replayed(world, "to-sum")
    assert done.outcome == "reproduced"
    assert told(done)[1:] == ["feed old as in version 1 of its definition: it is not declared any more"]


def test_data_that_was_moved_is_found_where_its_feed_has_it_now(world: Installation) -> None:
    data = world.settings.home / "data/primary"
    shutil.move(data / "named", data / "there")
    try:
        done = replayed(world, "to-add")
        assert done.outcome == "reproduced"
        assert done.outputs[0].comparison is not None
    finally:
        shutil.move(data / "there", data / "named")


def test_what_is_published_goes_where_readers_look_now(world: Installation) -> None:
    done = replayed(world, "to-add", publish=True)
    assert (done.outcome, done.published) == ("reproduced", True)
    published = world.settings.home / "data/primary/elsewhere/2013-01-01-03"
    assert (published / "_SUCCESS").is_file()
    assert list(published.glob("*.parquet"))


def test_secret_options_are_not_recorded_and_those_of_another_format_are_not_taken(world: Installation) -> None:
    root = world.settings.home / "entity_defs"
    summed = "format: {}\noptions: {{dateFormat: yyyy, password: hunter2}}"
    (root / "all.yaml").write_text(NOW.replace(summed.format("json"), summed.format("csv")))
    world.forget_entities()
    try:
        assert replayed(world, "to-sum").impossible == (
            "version 1 of feed 'summed': values of its options are not recorded, and its format was json, and is csv"
        )
    finally:
        (root / "all.yaml").write_text(NOW)
        world.forget_entities()


def test_what_others_write_now_is_replayed_and_not_published(world: Installation) -> None:
    root = world.settings.home / "entity_defs"
    other = PROCESS.format(name="to-take", read="landed", written="summed")
    (root / "all.yaml").write_text(NOW.replace("feed: summed", "feed: extra"))
    (root / "more.yaml").write_text(feed("extra") + other)
    (root / "to-take.sql").write_text("SELECT 1 AS sum")
    world.forget_entities()
    try:
        assert replayed(world, "to-sum").outcome == "reproduced"
        refused = replayed(world, "to-sum", publish=True)
        assert refused.outcome == "impossible"
        assert "feed 'summed' is written by to-take now" in refused.impossible
    finally:
        (root / "more.yaml").unlink()
        (root / "all.yaml").write_text(NOW)
        world.forget_entities()


def test_a_process_that_is_gone_is_replayed_and_not_published(world: Installation) -> None:
    """Or has another name now; what it was is recorded, and so is what it made."""
    root = world.settings.home / "entity_defs"
    (root / "all.yaml").write_text(NOW.replace("name: to-sum", "name: to-total"))
    (root / "to-sum.sql").rename(root / "elsewhere.sql")
    (root / "all.yaml").write_text((root / "all.yaml").read_text().replace("to-sum.sql", "elsewhere.sql"))
    world.forget_entities()
    DefinitionRecording(root, world.settings).record(world.ledger)
    try:
        done = replayed(world, "to-sum")
        assert (done.outcome, done.definition) == ("reproduced", 1)
        assert told(done)[0] == "process to-sum as in version 1 of its definition: it is not declared any more"
        with pytest.raises(UnknownEntityError, match="'to-sum' is not declared on cluster 'primary' any more: it can"):
            replayed(world, "to-sum", publish=True)
        with pytest.raises(UnknownInstanceError, match="no version is recorded that to-total made"):
            replayed(world, "to-total")
        with pytest.raises(UnknownEntityError, match="there is no process 'to-sun'"):
            replayed(world, "to-sun")
    finally:
        (root / "elsewhere.sql").rename(root / "to-sum.sql")
        (root / "all.yaml").write_text(NOW)
        world.forget_entities()


def test_an_instance_that_is_not_in_the_validity_any_more_is_replayed_and_not_published(world: Installation) -> None:
    root = world.settings.home / "entity_defs"
    ended = "validity: {start: 2013-01-01T04:00Z, end: 2013-01-02T00:00Z}}]\nfrequency: hours(1)\ninputs"
    was = ended.replace("T04", "T00")
    assert NOW.count(was) == 3
    (root / "all.yaml").write_text(NOW.replace(was, ended))
    world.forget_entities()
    try:
        assert replayed(world, "to-sum").outcome == "reproduced"
        with pytest.raises(UnknownInstanceError, match="'to-sum' on cluster 'primary'"):
            replayed(world, "to-sum", publish=True)
    finally:
        (root / "all.yaml").write_text(NOW)
        world.forget_entities()


def test_what_was_restored_is_made_with_what_was_declared_when_it_was_made(world: Installation) -> None:
    restored = {"seen_at": datetime.now(UTC) + timedelta(days=1), "restored_by": "ann"}
    of_named = DATA_VERSIONS.c.feed == "named"
    world.ledger.catch_up()
    with world.ledger.engine.begin() as connection:
        (before,) = connection.execute(select(DATA_VERSIONS.c.seen_at).where(of_named)).scalars()
        connection.execute(update(DATA_VERSIONS).where(of_named).values(**restored))
    try:
        assert replayed(world, "to-name").outcome == "reproduced"
    finally:
        with world.ledger.engine.begin() as connection:
            connection.execute(update(DATA_VERSIONS).where(of_named).values(seen_at=before, restored_by=None))


def test_what_of_the_libraries_is_another_is_said(world: Installation) -> None:
    was = '{"python": "3.9.1", "packages": "0123"}'
    with world.ledger.engine.begin() as connection:
        connection.execute(update(DATA_VERSIONS).where(DATA_VERSIONS.c.feed == "named").values(environment=was))
    done = replayed(world, "to-name")
    assert done.environment["python"][0] == "3.9.1"
    lines = CliRunner().invoke(falcon, ["instance", "replay", "to-name", KEY]).output.splitlines()
    assert lines[0] == "to-name 2013-01-01T03:00Z on primary: reproduced"
    assert any(line.startswith("python was 3.9.1, and is 3.") for line in lines)
    assert any(
        line.startswith("other packages are installed than then: of all of them the hash was 0123") for line in lines
    )
