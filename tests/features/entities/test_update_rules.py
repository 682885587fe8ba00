"""What an update may not change, and what the update of a feed touches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from falcon_assets.errors import DefinitionStoreError
from falcon_assets.features.entities.changing import update
from falcon_assets.features.entities.results import Request
from falcon_assets.features.entities.status import schedule_entities
from falcon_assets.features.entities.versions import restore_entity
from falcon_assets.history.database import upgrade, upsert
from falcon_assets.history.events.data_version import Version
from falcon_assets.history.folding.version_rows import row_of_version
from falcon_assets.history.tables import DATA_VERSIONS, FEED_INSTANCES
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.version_columns import VersionStatus
from falcon_assets.settings import load_settings
from tests.features.entities.trees import (
    BACKUP,
    DELAYS,
    HOURLY,
    PRIMARY,
    RAW,
    content,
    installation_of,
    request,
    written,
)
from tests.hours import hour
from tests.ledger.histories import empty
from tests.operations.rows import feed_row, write

START = "start: 2013-01-01T00:00Z"
LATER = HOURLY.replace(START, "start: 2013-02-01T00:00Z")


@pytest.fixture
def falcon(database: str, tmp_path: Path) -> Iterator[Installation]:
    """All entities are there; nothing was scheduled, nothing has landed."""
    engine = create_engine(database)
    upgrade(engine)
    empty(engine)
    engine.dispose()
    root = written(tmp_path / "defs", a=PRIMARY, b=BACKUP, c=RAW, d=DELAYS, e=HOURLY)
    (root / "hourly.sql").write_text("SELECT 1")
    environ = {"FALCON_HOME": str(tmp_path / "home"), "FALCON_ENTITY_DEFS": str(root), "USER": "ann"}
    told = {"FALCON_DATABASE_URL": database, "FALCON_WEBSERVER_URL": "", "FALCON_CLOCK": "2013-01-03T06:00Z"}
    with ExitStack() as opened:
        yield Installation(load_settings({**environ, **told}), opened)


def given(tmp_path: Path, text: str, *, dry_run: bool = False) -> Request:
    return request(written(tmp_path / "given", a=text), dry_run=dry_run)


def test_the_start_of_what_was_scheduled_cannot_change(falcon: Installation, tmp_path: Path) -> None:
    assert update(falcon, given(tmp_path, LATER)).changed  # it never was
    schedule_entities(falcon, request("hourly"))
    before = content(falcon.settings.entity_defs)
    for dry_run in (False, True):
        with pytest.raises(DefinitionStoreError) as caught:
            update(falcon, given(tmp_path, HOURLY, dry_run=dry_run))
        assert str(caught.value) == (
            "process 'hourly' was scheduled on 2013-01-03T06:00Z: the start of its validity on cluster 'primary' "
            "cannot change from 2013-02-01T00:00Z to 2013-01-01T00:00Z; submit a new process under another name"
        )
    with pytest.raises(DefinitionStoreError, match="the start of its validity"):
        restore_entity(falcon, 1, request("hourly"))
    assert content(falcon.settings.entity_defs) == before
    assert update(falcon, given(tmp_path, LATER.replace("end: 2014", "end: 2015"))).changed


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("frequency: hours(1)", "frequency: hours(2)", "its frequency cannot change from hours(1) to hours(2)"),
        (
            "frequency: hours(1)",
            "frequency: hours(1)\npath_timezone: Asia/Kolkata",
            "the zone of its paths on cluster 'primary' cannot change from UTC to Asia/Kolkata",
        ),
    ],
    ids=["frequency", "paths"],
)
def test_what_names_instances_cannot_change_once_there_are_some(
    falcon: Installation, tmp_path: Path, old: str, new: str, what: str
) -> None:
    schedule_entities(falcon, request("raw"))
    assert old in RAW
    asked = given(tmp_path, RAW.replace(old, new), dry_run=True)
    assert update(falcon, asked).changed  # it has no instance
    write(falcon, feed_row("raw", 0))
    with pytest.raises(DefinitionStoreError) as caught:
        update(falcon, asked)
    assert str(caught.value) == (
        f"feed 'raw' has 1 instance: {what}, by which they are named; submit a new feed under another name"
    )
    # Hours do not step by the zone, and their paths show UTC: nothing is named otherwise.
    assert update(falcon, given(tmp_path, RAW.strip("\n") + "\ntimezone: Europe/Berlin\n")).changed


def test_a_cluster_with_data_stays_where_it_is(falcon: Installation, tmp_path: Path) -> None:
    elsewhere = PRIMARY.replace("data/primary", "data/elsewhere")
    assert elsewhere != PRIMARY
    there = {"cluster": "primary", "state": "AVAILABLE", "version": "v", "changes": 0, "event_id": 1}
    empty_row = {**{column.name: None for column in FEED_INSTANCES.c}, "version_event": 1, "late": False}
    with falcon.database.begin() as connection:
        for number, feed in enumerate(("raw", "delays", "raw", "a", "b")):
            times = {"instance": hour(number), "landed_at": hour(number), "seen_at": hour(number)}
            upsert(connection, FEED_INSTANCES, [{**empty_row, **there, **times, "feed": feed}])
    with pytest.raises(DefinitionStoreError) as caught:
        update(falcon, given(tmp_path, elsewhere, dry_run=True))
    assert str(caught.value) == (
        "cluster 'primary' cannot move from data/primary to data/elsewhere: 5 instances of a, b, delays and of "
        "1 other feed would be left behind; submit another cluster, and replicate the feeds to it"
    )
    assert update(falcon, given(tmp_path, PRIMARY.strip("\n") + "\ndescription: new\n")).changed
    assert update(falcon, given(tmp_path, BACKUP.replace("data/backup", "data/moved"))).changed  # nothing is there


def test_a_volume_with_data_is_not_taken_away(falcon: Installation, tmp_path: Path) -> None:
    def volumes(*names: str) -> str:
        found = PRIMARY.replace("endpoint: data/primary", f"endpoints: [{', '.join(f'data/{name}' for name in names)}]")
        assert found != PRIMARY
        return found

    assert update(falcon, given(tmp_path, volumes("primary", "two", "three"))).changed  # adding is fine
    place = falcon.settings.home.resolve() / "data/two/raw/2013-01-01/01"
    there = Version(
        "primary", "raw", hour(1), "v", number=1, event_id=1, status=VersionStatus.AVAILABLE, path=str(place)
    )
    with falcon.database.begin() as connection:
        upsert(connection, DATA_VERSIONS, [row_of_version(there)])
    with pytest.raises(DefinitionStoreError) as caught:
        update(falcon, given(tmp_path, volumes("primary", "three")))
    assert str(caught.value) == (
        "cluster 'primary' cannot lose its volume data/two: instances on it would be left behind; submit another "
        "cluster, and replicate the feeds to it, or wait until retention has taken them"
    )
    assert update(falcon, given(tmp_path, volumes("two", "primary"))).changed  # nothing is on the other one


def test_a_volume_on_hdfs_with_data_is_not_taken_away(falcon: Installation, tmp_path: Path) -> None:
    def volumes(*names: str) -> str:
        endpoints = ", ".join(f'"hdfs://nn/{name}"' for name in names)
        return PRIMARY.replace("endpoint: data/primary", f"endpoints: [{endpoints}]")

    assert update(falcon, given(tmp_path, volumes("one", "two", "three"))).changed
    there = Version(
        "primary", "raw", hour(1), "v", number=1, event_id=1, status=VersionStatus.AVAILABLE, path="/two/raw/01"
    )
    with falcon.database.begin() as connection:
        upsert(connection, DATA_VERSIONS, [row_of_version(there)])
    with pytest.raises(DefinitionStoreError, match="cannot lose its volume hdfs://nn/two"):
        update(falcon, given(tmp_path, volumes("one", "three")))
    assert update(falcon, given(tmp_path, volumes("one", "two"))).changed


def test_the_update_of_a_feed_says_what_it_touches(falcon: Installation, tmp_path: Path) -> None:
    shorter = RAW.replace("days(90)", "days(80)")
    for dry_run in (True, False):
        result = update(falcon, given(tmp_path, shorter, dry_run=dry_run))
        said = result.as_data()["touches"]
        assert {"kind": "process", "name": "hourly", "clusters": ["primary"]} in said
        assert {one["name"] for one in said if one["kind"] == "retention"} == {"raw"}
    assert update(falcon, given(tmp_path, shorter)).touches == ()  # it is so already
    assert update(falcon, given(tmp_path, HOURLY.strip("\n") + "\ndescription: new\n")).touches == ()


def test_without_a_database_nobody_knows(tmp_path: Path) -> None:
    root = written(tmp_path / "defs", a=PRIMARY, b=BACKUP, c=RAW, d=DELAYS, e=HOURLY)
    (root / "hourly.sql").write_text("SELECT 1")
    falcon = installation_of(tmp_path, FALCON_DATABASE_URL="postgresql://falcon@127.0.0.1:1/none")
    assert update(falcon, given(tmp_path, LATER)).changed
