"""Data that is replaced in place, on file systems and on object stores."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.snapshots import is_there, refreshed_at, why_not_there
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.landing import collect_snapshot
from tests.builders import make_cluster, make_feed
from tests.s3_server import ENVIRON, lake

FLAG, PATH = "_SUCCESS", "/carriers"
FEED = make_feed(snapshot=True, locations={"data": PATH}, frequency="days(1)")
FIRST, SECOND, THIRD, FOURTH = (parse_instant(f"2013-01-0{day}T00:00Z") for day in (1, 2, 3, 4))
NOW = parse_instant("2013-01-04T05:00Z")
CLOCK = Clock()


@pytest.fixture(params=["renaming", "objects"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> StorageKind:
    if request.param == "renaming":
        return kind_of(ClusterStore(make_cluster(), tmp_path, {}))
    bucket = f"snapshots-{uuid.uuid4()}"
    s3 = request.getfixturevalue("s3")
    store = ClusterStore(make_cluster(**lake(s3, name="primary", bucket=bucket)), Path("/"), ENVIRON)
    store.fs.mkdir(bucket)
    return kind_of(store)


def write(kind: StorageKind, name: str, content: bytes) -> None:
    place = f"{kind.store.path(PATH)}/{name}"
    kind.store.fs.makedirs(place.rpartition("/")[0], exist_ok=True)
    kind.store.fs.pipe_file(place, content)


def test_it_is_the_instance_of_every_time_up_to_its_refresh(kind: StorageKind) -> None:
    known: dict[datetime, str | None] = {}

    def collected() -> list[datetime]:
        found = list(collect_snapshot(kind, FEED, [(FIRST, NOW)], known, CLOCK, NOW))
        known.update({one.instance: one.signature for one in found})
        assert all(one.version == kind.version(PATH, FLAG) for one in found)
        return [one.instance for one in found]

    assert collected() == []
    write(kind, "part-0", b"abc")
    assert collected() == []
    write(kind, FLAG, b"")  # in our days: on a clock that shows 2013 that is now
    assert collected() == [FIRST, SECOND, THIRD, FOURTH]
    assert collected() == []
    write(kind, "part-0", b"another")
    assert collected() == [FOURTH]


def test_what_it_lacks_is_said(kind: StorageKind) -> None:
    place = kind.store.shown(PATH)
    assert why_not_there(kind, FEED, FIRST, PATH, CLOCK) == (False, f"there is nothing at {place}")
    write(kind, "part-0", b"abc")
    assert not is_there(kind, FEED, FIRST, PATH, CLOCK)
    assert why_not_there(kind, FEED, FIRST, PATH, CLOCK) == (True, f"there is no {FLAG} in {place}")
    write(kind, FLAG, b"")
    refreshed = refreshed_at(kind, FEED, PATH, CLOCK)
    assert refreshed is not None
    assert is_there(kind, FEED, refreshed, PATH, CLOCK)
    later = refreshed + timedelta(minutes=1)
    assert not is_there(kind, FEED, later, PATH, CLOCK)
    is_begun, said = why_not_there(kind, FEED, later, PATH, CLOCK)
    assert is_begun
    assert said.startswith("snapshot last refreshed at ")


def test_without_files_nobody_knows_when(kind: StorageKind) -> None:
    write(kind, FLAG, b"")
    assert not is_there(kind, FEED, FIRST, PATH, CLOCK)
    said = f"when {kind.store.shown(PATH)} was refreshed is unknown: it has no files with a time"
    assert why_not_there(kind, FEED, FIRST, PATH, CLOCK) == (True, said)
    assert list(collect_snapshot(kind, FEED, [(FIRST, NOW)], {}, CLOCK, NOW)) == []


def test_what_goes_while_it_is_asked_for_is_not_there(kind: StorageKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(kind), "is_available", lambda self, feed, path: True)
    assert refreshed_at(kind, FEED, PATH, CLOCK) is None
    assert list(collect_snapshot(kind, FEED, [(FIRST, NOW)], {}, CLOCK, NOW)) == []


def test_nothing_that_goes_by_instances_finds_it(kind: StorageKind) -> None:
    write(kind, "part-0", b"abc")
    write(kind, FLAG, b"")
    with pytest.raises(StorageError, match="all its instances share one path, and it is never taken"):
        kind.stored(FEED)
    assert list(kind.instances(FEED, [(FIRST, NOW)])) == []
