"""Compaction is killed, doubled and watched: no reader ever sees a mixture, and no row is ever lost."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from falcon_assets.errors import BeingWrittenError, StorageError
from falcon_assets.features.compaction.replacing import CompactedInstance, compact_instance
from falcon_assets.model.feed import Compaction, Feed, VersionRetention
from falcon_assets.model.instant import parse_instant
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.snapshots import is_there_repaired
from tests.builders import make_cluster, make_feed
from tests.processes import forked, killed_before
from tests.storage.kinds.test_publishing_crashes import MEMORY, STEPS

pytestmark = pytest.mark.soak
FIRST = parse_instant("2013-01-01T00:00Z")
PATH = "/raw/2013/01/01"
FEED: Feed = make_feed(
    name="numbers",
    frequency="days(1)",
    availability_flag="_SUCCESS",
    format="parquet",
    locations={"data": "/raw/${YEAR}/${MONTH}/${DAY}"},
    compact=Compaction(sort=("number",)).model_dump(),
)


@pytest.fixture
def home() -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def store_at(home: Path) -> ClusterStore:
    return ClusterStore(make_cluster(), home, {})


def place(home: Path) -> Path:
    return Path(store_at(home).path(PATH))


def land(home: Path, name: str, *numbers: int) -> None:
    """Adds a file to the instance, as another program does: whole, by a rename."""
    written = home / f"{name}.new"
    pq.write_table(pa.table({"number": list(numbers)}), written)
    while True:
        with suppress(FileNotFoundError):  # just then it was replaced
            written.rename(place(home) / f"{name}.parquet")
            return


def begin(home: Path, files: int = 3) -> list[int]:
    """An instance of some files; its numbers."""
    place(home).mkdir(parents=True)
    (place(home) / "_SUCCESS").touch()
    for number in range(files):
        land(home, f"landed-{number}", files - number, number)
    return sorted([*range(files), *range(1, files + 1)])


def compact(home: Path, feed: Feed = FEED, before: Callable[..., object] = lambda read, new: None) -> CompactedInstance:
    return compact_instance(store_at(home), feed, FIRST, "numbers", before)


def seen(home: Path) -> list[int] | None:
    """What a reader finds who lists the folder and then opens the files; None: there is no instance."""
    while True:
        try:
            names = [path.name for path in place(home).iterdir()]
        except FileNotFoundError:
            return None
        assert "_SUCCESS" in names, "data without its flag"
        with suppress(FileNotFoundError):  # replaced while it was read: a reader reads it again
            parts = [pq.read_table(place(home) / name) for name in sorted(names) if name.endswith(".parquet")]
            return [one for part in parts for one in part["number"].to_pylist()]


def is_compacted(home: Path) -> bool:
    return len(list(place(home).glob("*.parquet"))) == 1


@pytest.mark.parametrize("keeps", [False, True], ids=["replaced", "kept"])
def test_killed_at_every_step(home: Path, keeps: bool) -> None:
    feed = FEED.model_copy(update={"versions": VersionRetention(keep=1)}) if keeps else FEED
    outcomes = Counter[str]()
    for step in count(1):
        here = home / str(step)
        here.mkdir()
        numbers = begin(here)
        killed = killed_before(step, STEPS, partial(compact, here, feed))
        found = seen(here)
        assert found is None or sorted(found) == numbers
        outcomes["none" if found is None else "new" if is_compacted(here) else "old"] += 1
        # Whoever needs it next puts it back; else the next compaction does.
        store = store_at(here)
        assert is_there_repaired(kind_of(store), feed, FIRST, PATH, None)
        assert sorted(seen(here) or []) == numbers
        compact(here, feed)
        assert seen(here) == numbers
        assert is_compacted(here)
        left = {path.name for path in Path(store.staging).iterdir()} - {"replaced", "versions"}
        assert not left
        if not killed:
            break
    assert outcomes.keys() == {"none", "new", "old"}, outcomes


def test_two_at_once(home: Path) -> None:
    for round_ in range(20):
        here = home / str(round_)
        here.mkdir()
        numbers = begin(here, 12)

        def work(here: Path = here) -> None:
            with suppress(BeingWrittenError, StorageError):
                compact(here)

        children = [forked(work) for _ in range(2)]
        while any(os.waitpid(child, os.WNOHANG) == (0, 0) for child in children[:1]):
            found = seen(here)
            assert found is None or sorted(found) == numbers
        os.waitpid(children[1], 0)
        assert seen(here) == numbers
        assert is_compacted(here)


def test_a_file_that_comes_between_the_last_look_and_the_replacement_is_not_lost(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = begin(home)
    files = type(store_at(home).files)
    move = files.move

    def moved(self: object, source: str, target: str) -> None:
        if source == str(place(home)):
            monkeypatch.undo()
            land(home, "late", 99)
        move(self, source, target)

    monkeypatch.setattr(files, "move", moved)
    with pytest.raises(StorageError, match=r"cannot publish .*: it was written meanwhile"):
        compact(home)
    assert sorted(seen(home) or []) == [*numbers, 99]
    compact(home)
    assert seen(home) == [*numbers, 99]


def test_a_reader_that_polls_while_files_come_misses_nothing(home: Path) -> None:
    """Files are landed without pause; what a reader finds is always the first n of them, for some n."""
    begin(home, 1)
    landed, ended = [0, 1], threading.Event()
    problems, looks, compactions = list[str](), 0, 0

    def landing() -> None:
        for number in range(2, 150):
            land(home, f"late-{number}", number)
            landed.append(number)
            time.sleep(0.005 if number % 10 else 0.5)
        ended.set()

    def reading() -> None:
        nonlocal looks
        while not ended.is_set():
            least = len(landed)
            found = seen(home)
            looks += 1
            if found is not None and (len(found) < least or sorted(found) != list(range(len(found)))):
                problems.append(f"{least} were landed, and {sorted(found)} are there")

    threads = [threading.Thread(target=work) for work in (landing, reading)]
    for thread in threads:
        thread.start()
    while not ended.is_set():
        with suppress(StorageError):
            compactions += compact(home).new is not None
    for thread in threads:
        thread.join()
    compact(home)
    assert problems == []
    assert seen(home) == list(range(150))
    assert compactions > 5
    assert looks > 100
