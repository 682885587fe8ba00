"""Disks that are fuller than ``max_usage``, and archives that are too old: what goes, what stays, what is recorded."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from subprocess import run as call

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from falcon_assets.errors import RootAwayError
from falcon_assets.features.lineage.lifecycle_operations import set_lifecycle
from falcon_assets.features.lineage.subject import VersionQuery
from falcon_assets.features.retention.disks import Disk, RoomPass
from falcon_assets.features.retention.operations import PlanRetention
from falcon_assets.features.retention.passes import PassResult, RetentionPass
from falcon_assets.features.retention.plan import FeedPlan
from falcon_assets.features.retention.store import decisions
from falcon_assets.history.tables import DATA_VERSIONS, TOTALS
from falcon_assets.operations.audit import PlainRequest
from falcon_assets.operations.installation import Installation
from falcon_assets.storage.files.local_files import LocalFiles
from falcon_assets.storage.staging import held_folder
from tests.hours import hour
from tests.ledger.histories import empty
from tests.operations.opening import OpenAt
from tests.versioned import TREE, kept, place, present, publish

ARCHIVING = """clusters:
  - name: primary
    validity: {start: 2013-01-01T00:00Z, end: 2013-01-02T00:00Z}
    retention:
      limit: hours(3)
      action: archive
      archive_to: "/old/${YEAR}-${MONTH}-${DAY}-${HOUR}"
      archive_cluster: cold
      archive_limit: hours(9)
---
kind: process"""
COLD = """kind: cluster
name: cold
interfaces: {write: {endpoint: data/cold}, execute: {endpoint: "local[1]"}}
"""
VERSIONS = "versions: {keep: 9}\n"
ENTITIES = "---\n" + COLD + TREE["all.yaml"].replace("versions: {keep: 2, for: hours(6)}\n", VERSIONS)
ARCHIVED = ENTITIES.partition(VERSIONS)[0] + VERSIONS + ARCHIVING + ENTITIES.rpartition("kind: process")[2]
KEY = dg.AssetKey(["primary", "totals"])


def limited(entities: str, usage: str, cluster: str) -> dict[str, str]:
    """The definitions, with how full the disk of a cluster may be."""
    endpoint = f"endpoint: data/{cluster}"
    return {**TREE, "all.yaml": entities.replace(endpoint, f"{endpoint}, max_usage: {usage}")}


@pytest.fixture
def installed(
    open_at: OpenAt, write_entities: Callable[[dict[str, str]], Path], instance: dg.DagsterInstance
) -> Iterator[Callable[[dict[str, str], str], Installation]]:
    opened = []

    def at(definitions: dict[str, str], time: str) -> Installation:
        write_entities(definitions)
        opened.append(manager := open_at(time))
        installation = manager.__enter__()
        if len(opened) == 1:  # nothing of another test
            instance.event_log_storage.wipe()
            empty(installation.ledger.engine)
            for folder in installation.settings.home.glob("data/*"):
                shutil.rmtree(folder)
        return installation

    yield at
    for manager in opened:
        manager.__exit__(None, None, None)


def recording(installation: Installation) -> Callable[[Sequence[dg.AssetObservation]], None]:
    def record(events: Sequence[dg.AssetObservation]) -> None:
        for event in events:
            installation.ledger.instance.report_runless_asset_event(event)

    return record


def make_room(installation: Installation, cluster: str = "primary") -> PassResult:
    entities = installation.entities
    room = RoomPass(Disk(entities, entities.cluster(cluster), installation.settings), 0)
    passed = room.run(installation.ledger, recording(installation))
    installation.ledger.catch_up()
    return passed


def passes(installation: Installation) -> PassResult:
    entities = installation.entities
    found = RetentionPass(entities, entities.cluster("primary"), [entities.feed("totals")], installation.settings, 0)
    passed = found.run(installation.ledger, "run", recording(installation))
    installation.ledger.catch_up()
    return passed


def total(installation: Installation, action: str) -> int:
    with installation.ledger.engine.connect() as connection:
        own = (TOTALS.c.what == "evicted_bytes", TOTALS.c.label == action)
        return int(connection.execute(select(TOTALS.c.number).where(*own)).scalar() or 0)


def planned(installation: Installation) -> FeedPlan:
    (plan,) = PlanRetention(feed="totals", cluster="primary").run(installation)
    return plan


def keep_aside(installation: Installation) -> Path:
    """As a run does whose output failed its checks."""
    folder = Path(held_folder(place(installation).storage.store, "totals.1234")) / "written"
    folder.mkdir(parents=True)
    (folder / "part-0").write_text("wrong")
    return folder


def test_what_is_not_present_data_goes_from_a_disk_that_is_too_full(
    installed: Callable[[dict[str, str], str], Installation],
) -> None:
    now = installed(limited(ENTITIES, "1%", "primary"), "2013-01-01T12:00Z")
    first, second, third = (publish(now, text, hour(1)) for text in ("one", "two", "three"))
    critical, _ = publish(now, "wanted", hour(2)), publish(now, "other", hour(2))
    set_lifecycle(now, VersionQuery("totals", hour(2), version=critical), "critical", PlainRequest(reason="a report"))
    aside = keep_aside(now)
    plan = planned(now)
    why = {one.kept.version: (one.goes, one.reason.partition("%")[2]) for one in plan.versions}
    too_full = (True, " full, more than 1% (max_usage)")
    assert (why[first], why[second]) == (too_full, too_full)
    assert why[critical][0] is False
    passed = make_room(now)
    assert (passed.versions, passed.held, passed.problems) == (2, 1, ())
    assert not aside.exists()
    assert kept(now, hour(1)) == set()
    assert kept(now, hour(2)) == {critical}
    assert (present(now, hour(1)), present(now, hour(2))) == ("three", "other")
    assert third not in why
    assert total(now, "version") == len("one") + len("two")
    assert make_room(now).versions == 0
    asked = dg.AssetRecordsFilter(asset_key=KEY, asset_partitions=["2013-01-01T01:00Z"])
    event = now.ledger.instance.fetch_observations(asked, 1).records[0].event_log_entry.asset_observation
    assert event is not None
    assert event.description is not None
    assert event.description.endswith("full, more than 1% (max_usage)")


def test_a_disk_that_is_not_too_full_is_left_alone(installed: Callable[[dict[str, str], str], Installation]) -> None:
    now = installed(limited(ENTITIES, "99%", "primary"), "2013-01-01T12:00Z")
    one, _ = publish(now, "one", hour(3)), publish(now, "two", hour(3))
    assert {kept.goes for kept in planned(now).versions} == {False}
    assert make_room(now) == PassResult(0, 0, ())
    assert kept(now, hour(3)) == {one}


def test_nothing_goes_of_a_feed_that_is_not_running(
    installed: Callable[[dict[str, str], str], Installation],
) -> None:
    entities = ENTITIES.replace("name: totals\nschedule: true", "name: totals")
    now = installed(limited(entities, "1%", "primary"), "2013-01-01T12:00Z")
    one, _ = publish(now, "one", hour(4)), publish(now, "two", hour(4))
    assert make_room(now).versions == 0
    assert kept(now, hour(4)) == {one}


def archived(installation: Installation, number: int) -> Path:
    return installation.settings.home / f"data/cold/old/2013-01-01-{number:02}"


def place_of_version(installation: Installation, number: int, version: str) -> str | None:
    table = DATA_VERSIONS.c
    with installation.ledger.engine.connect() as connection:
        own = (table.instance == hour(number), table.version == version)
        return connection.execute(select(table.archived_to).where(*own)).scalar()


def test_archived_instances_go_when_they_are_too_old(
    installed: Callable[[dict[str, str], str], Installation],
) -> None:
    definitions = {**TREE, "all.yaml": ARCHIVED}
    now = installed(definitions, "2013-01-01T12:00Z")
    old, young = publish(now, "an old one", hour(5)), publish(now, "a young one", hour(8))
    assert passes(now).instances == 2
    assert place_of_version(now, 5, old) == "/old/2013-01-01-05"
    assert {archive.archived.instance.hour: archive.goes for archive in planned(now).archives} == {5: False, 8: False}
    later = installed(definitions, "2013-01-01T15:00Z")
    assert [(one.archived.instance.hour, one.goes, one.reason) for one in planned(later).archives] == [
        (5, True, "older than hours(9) (archive_limit)"),
        (8, False, "not older than hours(9) (archive_limit)"),
    ]
    assert passes(later).archives == 1
    assert not archived(later, 5).exists()
    assert (archived(later, 8) / "part-0").read_text() == "a young one"
    assert place_of_version(later, 5, old) is None
    assert place_of_version(later, 8, young) == "/old/2013-01-01-08"
    assert total(later, "archived") == len("an old one")
    assert passes(later) == PassResult(0, 0, ())
    with later.ledger.engine.connect() as connection:
        found = decisions(connection, [("totals", "primary", hour(5))])
    assert str(found["totals", "primary", hour(5)]) == (
        "was deleted by retention: older than hours(3); "
        "it was in the archive /old/2013-01-01-05 until 2013-01-01T15:00Z"
    )


def test_archives_go_from_the_disk_of_their_cluster(
    installed: Callable[[dict[str, str], str], Installation],
) -> None:
    now = installed(limited(ARCHIVED, "1%", "cold"), "2013-01-01T12:00Z")
    publish(now, "to be archived", hour(7))
    passes(now)
    one, _ = publish(now, "one", hour(11)), publish(now, "two", hour(11))
    (archive,) = planned(now).archives
    assert archive.reason.endswith("full, more than 1% (max_usage)")
    assert make_room(now, "cold").archives == 1
    assert not archived(now, 7).exists()
    assert archived(now, 7).parent.exists()
    assert kept(now, hour(11)) == {one}  # of another disk, as far as anybody says
    assert make_room(now, "cold").archives == 0


def test_a_pass_that_was_killed_after_it_removed_an_archive_is_completed(
    installed: Callable[[dict[str, str], str], Installation],
) -> None:
    definitions = {**TREE, "all.yaml": ARCHIVED}
    now = installed(definitions, "2013-01-01T12:00Z")
    publish(now, "archived", hour(5))
    passes(now)
    later = installed(definitions, "2013-01-01T15:00Z")
    before = total(later, "archived")

    def killed(events: Sequence[dg.AssetObservation]) -> None:
        raise KeyboardInterrupt

    entities = later.entities
    killing = RetentionPass(entities, entities.cluster("primary"), [entities.feed("totals")], later.settings, 0)
    with pytest.raises(KeyboardInterrupt):
        killing.run(later.ledger, "run", killed)
    assert not archived(later, 5).exists()
    assert passes(later).archives == 1
    assert passes(later).archives == 0
    assert total(later, "archived") == before + len("archived")


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[None]:
    """A file system of that size at a folder."""
    folder.mkdir(parents=True)
    call(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        call(["umount", "-l", folder], check=True)


def write_rows(installation: Installation, instance: datetime, seed: int) -> str:
    """About a MiB of rows that cannot be compressed."""
    version = publish(installation, "", instance, write=lambda folder: _rows(folder, seed))
    assert pq.read_table(_file(installation, instance)).num_rows == 1 << 17
    return version


def _rows(folder: Path, seed: int) -> None:
    numbers = [(seed * 7919 + number) * 2654435761 % (1 << 62) for number in range(1 << 17)]
    pq.write_table(pa.table({"n": pa.array(numbers, pa.int64())}), folder / "part-0.parquet", use_dictionary=False)


def _file(installation: Installation, instance: datetime) -> Path:
    return Path(place(installation, instance).storage.store.path(place(installation, instance).path), "part-0.parquet")


@pytest.mark.soak
def test_a_small_disk_stays_below_its_limit_and_keeps_its_present_data(
    installed: Callable[[dict[str, str], str], Installation],
) -> None:
    definitions = limited(ENTITIES, "60%", "primary")
    now = installed(definitions, "2013-01-01T14:00Z")
    folder, versions = now.settings.home / "data/primary", list[str]()
    with mounted(folder, "16m"):
        for number in range(12):
            now = installed(definitions, f"2013-01-01T14:{number:02}Z")
            versions.append(write_rows(now, hour(13), number))
            disk = LocalFiles(place(now).storage.store.fs)
            is_too_full = disk.space(str(folder)).excess(60) > 0
            assert (make_room(now).versions > 0) == is_too_full
            assert disk.space(str(folder)).excess(60) == 0
            there = len(kept(now, hour(13)))
            assert kept(now, hour(13)) == set(versions[-1 - there : -1])  # the last ones
        assert there in range(6, 10)
        assert pq.read_table(_file(now, hour(13))).num_rows == 1 << 17


@pytest.mark.soak
def test_volumes_share_what_comes_and_one_that_is_unmounted_comes_back_with_its_own(
    installed: Callable[[dict[str, str], str], Installation],
) -> None:
    """On two disks: where instances go, what a fuller one loses, and what goes on while one is away."""
    volumes = ENTITIES.replace("endpoint: data/primary", 'endpoints: [data/primary, "data/zweites ü"], max_usage: 50%')
    definitions = {**TREE, "all.yaml": volumes}
    now = installed(definitions, "2013-01-01T20:00Z")
    big, small = now.settings.home / "data/primary", now.settings.home / "data/zweites ü"
    elsewhere = now.settings.home / "elsewhere"
    with mounted(big, "24m"), mounted(small, "12m"):
        for number in range(14, 20):  # 6 MiB: 24 and 12 become 18 and 12
            write_rows(now, hour(number), number)
        assert sorted(_volume(now, number, big) for number in range(14, 20)) == [True] * 6
        for minute in range(8):  # versions of one of them, until the other disk has more room
            now = installed(definitions, f"2013-01-01T20:{minute:02}Z")
            write_rows(now, hour(14), 100 + minute)
        write_rows(now, hour(20), 20)
        assert not _volume(now, 20, big)
        now = installed(definitions, "2013-01-01T20:10Z")
        kept_there = write_rows(now, hour(20), 21) and kept(now, hour(20))
        assert len(kept_there) == 1
        assert (make_room(now).versions > 0, kept(now, hour(20))) == (True, kept_there)  # only of the disk that is full
        assert LocalFiles(place(now).storage.store.fs).space(str(big)).excess(50) == 0
        elsewhere.mkdir()
        call(["mount", "--move", small, elsewhere], check=True)
        try:
            with pytest.raises(RootAwayError, match="zweites ü is away"):
                write_rows(now, hour(20), 22)
            write_rows(now, hour(21), 21)
            assert _volume(now, 21, big)
        finally:
            call(["mount", "--move", elsewhere, small], check=True)
        for number in range(14, 22):
            assert pq.read_table(_file(now, hour(number))).num_rows == 1 << 17


def _volume(installation: Installation, number: int, folder: Path) -> bool:
    return _file(installation, hour(number)).is_relative_to(folder)
