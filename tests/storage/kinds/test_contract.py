"""What every kind of storage has to do, done with each of them; what one cannot do is refused."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.planning.data_usage import normal_place
from falcon_assets.planning.eviction import StoredInstance, Verdict, VersionVerdict
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.old_folders import FolderPass
from falcon_assets.planning.replication import ReplicationOptions
from falcon_assets.storage.copying.copy_target import publish_if_complete
from falcon_assets.storage.copying.instance_copy import InstanceCopy
from falcon_assets.storage.eviction.evicting import evict, evict_versions
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.kinds.available_instances import AvailableInstances
from falcon_assets.storage.kinds.storage_kind import StorageKind
from falcon_assets.storage.landing import collect
from tests.storage.kinds.samples import FIRST, KINDS, Sample, killed_while_publishing, place_of, sample


# The last two are kinds that are here already, by another catalog and on another store.
@pytest.fixture(params=[*KINDS[:-2], "volumes", *(pytest.param(one, marks=pytest.mark.soak) for one in KINDS[-2:])])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
    return sample(request, request.param, tmp_path)


def test_instances_are_found_where_they_landed(stored: Sample) -> None:
    first, second = stored.day(1), stored.day(2)
    assert list(stored.kind.instances(stored.feed, [(first, second)])) == []
    assert stored.kind.stored(stored.feed) == []
    assert not stored.kind.is_available(stored.feed, stored.path())
    stored.land(1, 2, 3)
    stored.kind.require_there()
    assert list(stored.kind.instances(stored.feed, [(first, second)])) == [(first, stored.path())]
    assert list(stored.kind.instances(stored.feed, [(second, second)])) == []
    assert stored.kind.stored(stored.feed) == [StoredInstance(first, (stored.location(),))]
    assert stored.kind.is_available(stored.feed, stored.path())
    assert not stored.kind.is_available(stored.feed, stored.path(2))
    assert stored.numbers() == [1, 2, 3]


def test_the_instance_of_what_was_read_is_known(stored: Sample) -> None:
    """As Spark names it: by the folder, and by a file in it."""
    for day in (1, 2):
        stored.publish(day, day=day)
    if Ability.WITHOUT_CONNECTOR in stored.kind.cannot and stored.kind.connector is None:
        flag = stored.feed.availability_flag
        with (
            pytest.raises(StorageError, match="is read and written through folders"),
            stored.kind.reading(stored.path(1), flag),
        ):
            pass
        return
    for day in (1, 2):
        with stored.kind.reading(stored.path(day), stored.feed.availability_flag) as found:
            folders = [one.url for one in found.folders]
            folders += [place for one in found.partitions for place in one.partition.places]
        for place in map(normal_place, folders):
            assert stored.kind.instance_at(stored.feed, place) == stored.day(day)
            assert stored.kind.instance_at(stored.feed, f"{place}/part-0") == stored.day(day)
            assert stored.kind.instance_at(stored.feed, f"{place}x") is None
            assert stored.kind.instance_at(stored.feed, place.rpartition("/")[0]) is None


def test_what_is_not_there_is_said(stored: Sample) -> None:
    is_there, why = stored.kind.why_unavailable(stored.feed, stored.path())
    assert not is_there and why.startswith("there is no")
    for ask in (stored.kind.version, stored.kind.listing):
        with pytest.raises(StorageError, match="there is nothing at "):
            ask(stored.path(), stored.feed.availability_flag)
    with (
        pytest.raises(StorageError, match="there is nothing at "),
        stored.kind.reading(stored.path(), stored.feed.availability_flag, stored.staging),
    ):
        pass
    stored.land(1)
    assert stored.kind.why_unavailable(stored.feed, stored.path())[0]


def test_what_landed_anew_is_another_version(stored: Sample) -> None:
    flag = stored.feed.availability_flag
    stored.land(1, 2)
    listing, version = stored.kind.listing(stored.path(), flag), stored.version()
    assert (stored.kind.listing(stored.path(), flag), stored.version()) == (listing, version)
    stored.land(1, 3)
    assert stored.kind.listing(stored.path(), flag).signature != listing.signature
    assert stored.version() != version
    stored.land(4, day=2)
    assert stored.version(2) not in (version, stored.version())


def test_late_data_is_collected_once(stored: Sample) -> None:
    known: dict[datetime, str | None] = {}

    def collected() -> list[tuple[datetime, str]]:
        found = list(collect(stored.kind, stored.feed, [(stored.day(1), stored.day(3))], known, FIRST))
        known.update({one.instance: one.signature for one in found})
        return [(one.instance, one.version.version) for one in found]

    assert collected() == []
    stored.land(1)
    stored.land(2, day=3)
    assert collected() == [(stored.day(1), stored.version(1)), (stored.day(3), stored.version(3))]
    assert collected() == []
    stored.land(3)
    assert collected() == [(stored.day(1), stored.version(1))]


def test_the_latest_instances_are_found(stored: Sample) -> None:
    stored.land(1)
    stored.land(2, day=3)
    there = AvailableInstances(stored.kind, stored.feed)
    assert list(there.backwards(stored.day(1), stored.day(200))) == [stored.day(3), stored.day(1)]


def test_a_pass_over_all_places_finds_what_is_there(stored: Sample) -> None:
    begun = FolderPass(stored.path()).next(stored.day(1), tells_changes=stored.kind.tells_changes)
    assert begun is not None

    def found() -> list[object]:
        visits = list(stored.kind.visits(stored.feed, stored.day(2), begun))
        assert [visit.problem for visit in visits if visit.problem] == []
        return [one for visit in visits for one in visit.found]

    assert found() == []
    stored.land(1)
    assert found() == [(stored.day(1), stored.path())]


def test_an_output_takes_the_place_of_the_one_before(stored: Sample) -> None:
    first = stored.publish(1, 2, 3)
    assert (stored.numbers(), stored.version()) == ([1, 2, 3], first)
    second = stored.publish(4)
    assert (stored.numbers(), stored.version()) == ([4], second)
    assert second != first
    stored.land(5)
    stored.publish(6)
    assert stored.numbers() == [6]


def test_what_is_staged_can_be_named_for_spark(stored: Sample) -> None:
    with stored.kind.publish("daily", {"out": stored.target()}, stored.staging) as publication:
        url = publication.staging_url("out")
        assert place_of(url) == publication.staging("out")
        assert url.partition("://")[0] in ("file", "s3a", "hdfs")
        assert not stored.is_there(publication.staging("out"))


def test_what_is_read_has_its_version(stored: Sample) -> None:
    stored.publish(1, 2)
    with stored.kind.reading(stored.path(), stored.feed.availability_flag, stored.staging) as read:
        assert read.version == stored.kind.version(stored.path(), stored.feed.availability_flag)
        assert read.version.files > 0 and read.version.bytes > 0


def test_what_is_not_committed_never_was(stored: Sample) -> None:
    version = stored.publish(1)
    with (
        pytest.raises(InterruptedError),
        stored.kind.publish("daily", {"out": stored.target()}, stored.staging) as publication,
    ):
        place = publication.staging("out")
        stored.write(place, 2)
        raise InterruptedError
    assert not stored.is_there(place)
    assert (stored.numbers(), stored.version()) == ([1], version)


def test_nothing_written_is_no_output(stored: Sample) -> None:
    stored.publish(1)
    with (
        pytest.raises(StorageError, match=r"cannot publish .*: nothing was written to "),
        stored.kind.publish("daily", {"out": stored.target()}, stored.staging) as publication,
    ):
        publication.commit("out")
    assert stored.numbers() == [1]


def test_of_two_runs_that_write_the_same_only_one_publishes(stored: Sample) -> None:
    stored.publish(1)
    with (
        pytest.raises(StorageError, match=stored.BUSY),
        stored.kind.publish("first", {"out": stored.target()}, stored.staging) as first,
    ):
        stored.write(first.staging("out"), 2)
        stored.publish(3)
        first.commit("out")
    assert stored.numbers() in ([3], [1], None)  # the second one, or none of them
    stored.publish(4)
    assert stored.numbers() == [4]


def test_locks_keep_others_away(stored: Sample) -> None:
    removal = stored.kind.removal(stored.feed.availability_flag)
    with stored.kind.publish("daily", {"out": stored.target()}, stored.staging):
        if Ability.LOCK in stored.kind.cannot:
            with removal.held(stored.location()):
                pass
        else:
            with pytest.raises(StorageError, match="it is being written by a run"), removal.held(stored.location()):
                pass


def test_what_a_killed_run_left_is_put_right(stored: Sample) -> None:
    stored.publish(1)
    killed_while_publishing(stored)
    assert stored.numbers() in (None, [1])
    stored.publish(2)
    assert stored.numbers() == [2]


def test_an_instance_goes_and_another_one_stays(stored: Sample) -> None:
    stored.publish(1, 2)
    stored.publish(3, day=2)
    flag = stored.feed.availability_flag
    assert stored.kind.is_untouched(stored.location(), flag)
    with (removal := stored.kind.removal(flag)).held(stored.location()) as place:
        version = stored.kind.version(stored.path(), flag)
        assert removal.measure(place) == (version.files, version.bytes)
        removal.remove(stored.location(), place)
    with (removal := stored.kind.removal(flag)).held(stored.location()) as place:
        assert removal.measure(place) == (0, 0)
        removal.remove(stored.location(), place)  # as after a crash
    assert not stored.kind.is_untouched(stored.location(), flag)
    assert (stored.numbers(1), stored.numbers(2)) == (None, [3])
    assert [one.nominal for one in stored.kind.stored(stored.feed)] == [stored.day(2)]
    stored.kind.purge(patience=0)
    assert stored.kind.is_purged()
    stored.publish(4)
    assert stored.numbers() == [4]


def test_what_may_not_be_touched_stays(stored: Sample) -> None:
    stored.publish(1)
    for path, why in stored.FORBIDDEN.items():
        removal = stored.kind.removal(stored.feed.availability_flag)
        with pytest.raises(StorageError, match=why), removal.held(stored.location(path=path)):
            pass
    assert stored.numbers() == [1]


def test_nothing_is_set_aside_where_nothing_is(stored: Sample) -> None:
    removal = stored.kind.removal(stored.feed.availability_flag)
    removal.set_aside(removal.place(stored.location()))
    stored.kind.purge()
    assert stored.kind.is_purged()


def test_an_instance_is_archived(stored: Sample) -> None:
    stored.publish(1, 2)
    (found,) = stored.kind.stored(stored.feed)
    verdict = Verdict(found, "archive", "old", "/archive/1")
    (gone,) = evict(stored.store, [verdict], stored.feed.availability_flag, stored.store)
    assert (gone.error, stored.numbers(), stored.kind.has(stored.path())) == (None, None, False)
    assert stored.archived("/archive/1") == [1, 2]
    (again,) = evict(stored.store, [verdict], stored.feed.availability_flag, stored.store)  # as after a crash
    assert (again.error, stored.archived("/archive/1")) == (None, [1, 2])


def test_what_is_replaced_is_kept_and_restored(stored: Sample) -> None:
    target = stored.target(keeps=True)
    first, second = stored.publish(1, 2, keeps=True), stored.publish(3, keeps=True)
    assert [one[:2] for one in stored.kind.kept_versions(stored.feed.name, stored.day(1))] == [(stored.day(1), first)]
    done, is_new = stored.kind.restore("daily", target, first)
    assert (done.version, is_new) == (first, True)
    assert (stored.version(), stored.numbers()) == (first, [1, 2])
    (kept,) = stored.kind.kept_versions(stored.feed.name)
    assert kept.version == second
    assert [one.nominal for one in stored.kind.stored(stored.feed)] == [stored.day(1)]
    again, is_new = stored.kind.restore("daily", target, first)
    assert (again.version, is_new) == (first, False)
    verdict = VersionVerdict(kept, None, True, "")
    paths = InstancePaths(stored.feed, stored.cluster)
    assert list(evict_versions(stored.store, paths, [verdict])) == [(verdict, None)]
    assert stored.kind.kept_versions(stored.feed.name) == []
    with pytest.raises(StorageError, match=f"there is no version {second}: it was not kept, or is removed already"):
        stored.kind.restore("daily", target, second)
    assert stored.numbers() == [1, 2]


def test_an_instance_is_moved_at_once_or_not_at_all(stored: Sample) -> None:
    stored.publish(1, 2)
    is_moved = stored.kind.move(stored.path(), stored.kind, stored.path(2))
    assert is_moved == (Ability.RENAME not in stored.kind.cannot)
    assert (stored.numbers(1), stored.numbers(2)) == ((None, [1, 2]) if is_moved else ([1, 2], None))


def test_an_instance_is_copied(stored: Sample) -> None:
    stored.publish(1, 2)
    stored.publish(5, day=2)
    flag = stored.feed.availability_flag
    assert stored.kind.source_files(stored.path(3), flag, is_hidden) is None
    there = stored.kind.source_files(stored.path(), flag, is_hidden)
    assert there is not None and all(size > 0 for size, _ in there.files.values())
    part = stored.kind.copy_target(stored.target(2), "east")
    with InstanceCopy(stored.kind, stored.path(), part, lambda _: True, ReplicationOptions()) as copy:
        copied = copy.finish(copy.run_here())
    assert stored.numbers(2) == ([5] if Ability.RENAME not in stored.kind.cannot or flag is None else None)
    version = publish_if_complete("daily", [stored.kind.copy_target(stored.target(2), "east")])
    assert version is not None and version.version == stored.version(2)
    assert (copied.files_copied, stored.numbers(1), stored.numbers(2)) == (len(there.files), [1, 2], [1, 2])


def test_every_operation_is_in_this_contract() -> None:
    done = Path(__file__).read_text()
    assert [name for name in sorted(StorageKind.__abstractmethods__) if f"kind.{name}" not in done] == []
