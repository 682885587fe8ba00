"""What a publication replaces stays beside it where the feed says so, and can be brought back."""

from __future__ import annotations

from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.eviction import StoredVersion, VersionVerdict
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.eviction.evicting import evict_versions
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget, output_target
from falcon_assets.storage.staging import copies_folder
from tests.builders import make_cluster, make_feed

FLAG = "_SUCCESS"
FEED = make_feed(
    locations={"data": "/raw/${YEAR}/${MONTH}/${DAY}"},
    frequency="days(1)",
    availability_flag=FLAG,
    versions={"keep": 3, "for": "days(7)"},
)
DAY, NEXT = (parse_instant(f"2013-01-0{day}T00:00Z") for day in (1, 2))
PATH = "/raw/2013/01/01"
TARGET = output_target(FEED, DAY, PATH)


@pytest.fixture
def store(tmp_path: Path) -> ClusterStore:
    return ClusterStore(make_cluster(), tmp_path, {})


def publish(store: ClusterStore, text: str, target: OutputTarget = TARGET) -> str:
    """Gives the version of an instance that holds this text."""
    with kind_of(store).publish("daily", {"out": target}) as publication:
        folder = Path(publication.staging("out"), "country=US")
        folder.mkdir(parents=True)
        (folder / "part-0").write_text(text)
        return publication.commit("out").version


def present(store: ClusterStore) -> str:
    return Path(store.path(PATH), "country=US", "part-0").read_text()


def kept(store: ClusterStore) -> set[str]:
    return {one.version for one in kind_of(store).kept_versions(FEED.name)}


def evicted(store: ClusterStore, *versions: str) -> list[str]:
    """Why those versions, which are kept, could not be evicted."""
    found = [one for one in kind_of(store).kept_versions(FEED.name) if one.version in versions]
    verdicts = [VersionVerdict(one, None, True, "") for one in found]
    done = evict_versions(store, InstancePaths(FEED, store.cluster), verdicts)
    return [str(error) for _, error in done if error]


def test_what_is_replaced_is_kept_as_it_was(store: ClusterStore) -> None:
    one, two, three = (publish(store, text) for text in ("one", "two", "three"))
    assert present(store) == "three"
    found = kind_of(store).kept_versions(FEED.name)
    assert {found_one.version for found_one in found} == {one, two}
    assert kind_of(store).kept_versions(FEED.name, DAY) == found
    assert kind_of(store).kept_versions(FEED.name, NEXT) == []
    assert kind_of(store).kept_versions("other") == []
    for version in found:
        assert version.nominal == DAY
        assert kind_of(store).version(version.path, FLAG).version == version.version
        assert Path(store.path(version.path), FLAG).is_file()
    assert three not in kept(store)


def test_the_same_again_is_no_version(store: ClusterStore) -> None:
    assert publish(store, "one") == publish(store, "one")
    assert kept(store) == set()


def test_what_was_incomplete_is_no_version(store: ClusterStore) -> None:
    publish(store, "one")
    Path(store.path(PATH), FLAG).unlink()
    publish(store, "two")
    assert kept(store) == set()


def test_a_feed_that_keeps_none_leaves_none(store: ClusterStore) -> None:
    for text in ("one", "two"):
        publish(store, text, OutputTarget(PATH, FLAG))
    assert kept(store) == set()


def test_a_version_that_comes_again_is_kept_once(store: ClusterStore) -> None:
    one, two = publish(store, "one"), publish(store, "two")
    publish(store, "one")
    publish(store, "two")
    assert present(store) == "two"
    assert kept(store) == {one}
    publish(store, "three")
    assert kept(store) == {one, two}


def test_a_single_file_is_kept_and_restored(store: ClusterStore) -> None:
    target = OutputTarget("/raw/day.csv", None, keeps=TARGET.keeps)

    def write(text: str) -> str:
        with kind_of(store).publish("daily", {"out": target}) as publication:
            Path(publication.staging("out")).write_text(text)
            return publication.commit("out").version

    one, _ = write("one"), write("two")
    assert kind_of(store).restore("raw", target, one)[1]
    assert Path(store.path("/raw/day.csv")).read_text() == "one"


def test_no_reader_takes_a_version_for_an_instance(store: ClusterStore) -> None:
    publish(store, "one")
    publish(store, "two")
    kind, span = kind_of(store), [(DAY, NEXT)]
    assert list(kind.instances(FEED, span)) == [(DAY, PATH)]
    assert [one.nominal for one in kind.stored(FEED)] == [DAY]
    # A feed whose folders have the depth of those of versions, at the root of the cluster.
    deep = make_feed(locations={"data": "/${YEAR}/a/b/c/${MONTH}/${DAY}"}, frequency="days(1)")
    assert list(kind.instances(deep, span)) == []
    assert kind.stored(deep) == []


def test_a_version_is_restored_by_a_publication(store: ClusterStore) -> None:
    one, two = publish(store, "one"), publish(store, "two")
    staged = Path(copies_folder(store, PATH), "east")
    staged.mkdir(parents=True)
    assert kind_of(store).restore("raw", TARGET, one, dry_run=True)[1]
    assert (present(store), kept(store)) == ("two", {one})
    done, is_new = kind_of(store).restore("raw", TARGET, one)
    assert (done.version, is_new) == (one, True)
    assert (present(store), kept(store)) == ("one", {two})
    assert not staged.exists()  # its plan was made for what is not there any more
    assert kind_of(store).is_available(FEED, PATH)
    assert kind_of(store).restore("raw", TARGET, one)[1] is False
    assert kind_of(store).restore("raw", TARGET, two)[1]
    assert (present(store), kept(store)) == ("two", {one})


def test_what_was_taken_away_by_hand_is_restored(store: ClusterStore, tmp_path: Path) -> None:
    one, _ = publish(store, "one"), publish(store, "two")
    Path(store.path(PATH)).rename(tmp_path / "away")
    assert kind_of(store).restore("raw", TARGET, one)[1]
    assert (present(store), kept(store)) == ("one", set())


@pytest.mark.parametrize("version", ["0" * 32, "..", "../..", "", "."])
def test_a_version_that_is_not_kept_is_refused(store: ClusterStore, version: str) -> None:
    publish(store, "one")
    publish(store, "two")
    with pytest.raises(StorageError, match=r"raw: there is no version .*: it was not kept, or is removed already"):
        kind_of(store).restore("raw", TARGET, version)
    assert present(store) == "two"


def test_a_version_that_somebody_changed_is_refused(store: ClusterStore) -> None:
    one, _ = publish(store, "one"), publish(store, "two")
    (found,) = kind_of(store).kept_versions(FEED.name)
    Path(store.path(found.path), "country=US", "part-0").write_text("other")
    with pytest.raises(StorageError, match=f"raw: what lies at .*{one} is not version {one} any more"):
        kind_of(store).restore("raw", TARGET, one)
    assert (present(store), kept(store)) == ("two", {one})


def test_nothing_is_restored_or_evicted_while_it_is_written(store: ClusterStore) -> None:
    one, _ = publish(store, "one"), publish(store, "two")
    with kind_of(store).publish("daily", {"out": TARGET}):
        with pytest.raises(StorageError, match="is being written by another run"):
            kind_of(store).restore("raw", TARGET, one)
        assert evicted(store, one) == [
            "cluster 'primary': cannot evict /raw/2013/01/01: it is being written by a run; it goes when that has ended"
        ]
    assert kept(store) == {one}


def test_a_version_goes_alone_and_for_good(store: ClusterStore) -> None:
    one, two, _ = (publish(store, text) for text in ("one", "two", "three"))
    assert evicted(store, one) == []
    assert (present(store), kept(store)) == ("three", {two})
    assert evicted(store, two) == []
    assert kept(store) == set()
    below = Path(store.staging, "versions", "primary", FEED.name)
    assert list(below.iterdir()) == []
    kind_of(store).purge(patience=0)
    assert kind_of(store).is_purged()


def test_what_went_already_is_gone(store: ClusterStore) -> None:
    lost = StoredVersion(DAY, "0" * 32, "", "")
    done = evict_versions(store, InstancePaths(FEED, store.cluster), [VersionVerdict(lost, None, True, "")])
    assert [error for _, error in done] == [None]


def test_strange_names_beside_versions_are_left_alone(store: ClusterStore) -> None:
    one, _ = publish(store, "one"), publish(store, "two")
    below = Path(store.staging, "versions", "primary", FEED.name)
    (below / "notes.txt").touch()
    assert kept(store) == {one}
    assert [found.name for found in (below / "2013-01-01T00-00Z").iterdir()] == [one]
