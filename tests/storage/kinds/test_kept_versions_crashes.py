"""Whatever a reader ever saw of a feed that keeps versions is there or kept, wherever a publisher is killed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from falcon_assets.errors import StorageError
from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.eviction import VersionVerdict
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.eviction.evicting import evict_versions
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import output_target
from tests.builders import make_cluster, make_feed
from tests.processes import killed_before

pytestmark = pytest.mark.soak
FEED = make_feed(
    locations={"data": "/raw/${YEAR}/${MONTH}/${DAY}"},
    frequency="days(1)",
    availability_flag="_SUCCESS",
    versions={"keep": 3},
)
DAY = parse_instant("2013-01-01T00:00Z")
PATH = "/raw/2013/01/01"
TARGET = output_target(FEED, DAY, PATH)
STEPS = {
    "open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.scandir", "os.listdir", "os.utime",
    "os.truncate", "os.link", "os.symlink", "shutil.rmtree", "shutil.move", "shutil.copyfile", "shutil.copytree",
    "fcntl.flock",
}  # fmt: skip
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


@pytest.fixture
def home() -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def publish(store: ClusterStore, text: str, *, fail: bool = False) -> str:
    with kind_of(store).publish("daily", {"out": TARGET}) as publication:
        folder = Path(publication.staging("out"))
        folder.mkdir(parents=True)
        for part in ("part-0", "part-1", "part-2"):
            (folder / part).write_text(text)
        if fail:
            raise InterruptedError
        return publication.commit("out").version


def present(store: ClusterStore) -> str | None:
    kind = kind_of(store)
    return kind.version(PATH, FEED.availability_flag).version if kind.is_available(FEED, PATH) else None


def kept(store: ClusterStore) -> set[str]:
    """The versions that are kept, each of which is whole."""
    kind, found = kind_of(store), set()
    for one in kind.kept_versions(FEED.name):
        assert kind.version(one.path, FEED.availability_flag).version == one.version
        assert Path(store.path(one.path), "_SUCCESS").exists()
        found.add(one.version)
    return found


def staged(store: ClusterStore) -> set[str]:
    return {one.name for one in Path(store.staging).iterdir()} - {"replaced", "versions", "evicted"}


def after_two(home: Path) -> tuple[ClusterStore, str, str]:
    store = ClusterStore(make_cluster(), home, {})
    return store, publish(store, "one"), publish(store, "two")


@pytest.mark.parametrize("next_run", ["fails", "succeeds"])
def test_a_publication_killed_at_every_step(home: Path, next_run: str) -> None:
    outcomes = set()
    for step in count(1):
        store, one, two = after_two(home / str(step))
        lived = not killed_before(step, STEPS, partial(publish, store, "three"))
        seen = present(store)
        assert one in kept(store)
        outcomes.add(seen == two if seen else None)
        if next_run == "fails":
            with pytest.raises(InterruptedError):
                publish(store, "four", fail=True)
            assert present(store) == (seen or two)
            assert kept(store) == ({one} if present(store) == two else {one, two})
        else:
            four = publish(store, "four")
            assert present(store) == four
            assert kept(store) == {one, two} | ({seen} if seen else set())
        assert staged(store) == set()
        if lived:
            break
    assert step > 50
    assert outcomes == {True, None, False}


def test_a_restore_killed_at_every_step(home: Path) -> None:
    outcomes = set()
    for step in count(1):
        store, one, two = after_two(home / str(step))
        restore = partial(kind_of(store).restore, "raw", TARGET)
        lived = not killed_before(step, STEPS, partial(restore, one))
        outcomes.add(present(store))
        assert kept(store) | {present(store)} >= {one}
        assert restore(one)[0].version == one
        assert present(store) == one
        assert kept(store) - {one} == {two}
        publish(store, "three")
        assert kept(store) == {one, two}
        assert staged(store) == set()
        if lived:
            break
    assert step > 50
    assert outcomes == {one, two, None}


def test_an_eviction_killed_at_every_step(home: Path) -> None:
    outcomes = set()

    def evict(store: ClusterStore) -> None:
        found = kind_of(store).kept_versions(FEED.name)
        verdicts = [VersionVerdict(one, None, True, "") for one in found]
        assert all(error is None for _, error in evict_versions(store, InstancePaths(FEED, store.cluster), verdicts))

    for step in count(1):
        store, _, two = after_two(home / str(step))
        lived = not killed_before(step, STEPS, partial(evict, store))
        outcomes.add(len(kept(store)))
        evict(store)
        assert (present(store), kept(store)) == (two, set())
        with pytest.raises(StorageError, match="there is no version"):
            kind_of(store).restore("raw", TARGET, "0" * 32)
        if lived:
            break
    assert outcomes == {0, 1}
