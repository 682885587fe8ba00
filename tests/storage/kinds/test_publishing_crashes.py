"""A reader sees the whole old instance, the whole new one, or none, wherever the publisher is killed."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget
from tests.builders import make_cluster
from tests.processes import forked, killed_before
from tests.properties import examples

pytestmark = pytest.mark.soak
OUTPUTS = {
    "delays": OutputTarget("/delays/2013/01/01/00", "_SUCCESS", "0755"),
    "summary": OutputTarget("/summary/2013-01-01-00", None),
}
STEPS = {
    "open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.scandir", "os.listdir", "os.utime",
    "os.truncate", "os.link", "os.symlink", "shutil.rmtree", "shutil.move", "shutil.copyfile", "fcntl.flock",
}  # fmt: skip
"""Audit events of everything that touches a file system. Each is raised just *before* the system call."""


MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""A kill does not care whether the file system is on a disk; thousands of fsyncs do."""


@pytest.fixture
def home() -> Iterator[Path]:
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


def store_at(home: Path) -> ClusterStore:
    return ClusterStore(make_cluster(), home, {})


def write(folder: Path, generation: int) -> None:
    """As Spark does: names of their own for each generation, some in sub-partitions, side files beside them."""
    total = 2 + generation % 2
    for number in range(total):
        parent = folder / f"carrier={number % 2}"
        parent.mkdir(parents=True, exist_ok=True)
        record = {"generation": generation, "files": total}
        (parent / f"part-{number:05}-{uuid.uuid4()}.json").write_text(json.dumps(record))
    (folder / "carrier=0" / ".part-00000.json.crc").touch()
    (folder / "_SUCCESS").touch()


def publish(store: ClusterStore, generation: int, fail: bool = False) -> None:
    with kind_of(store).publish(f"generation {generation}", OUTPUTS) as publication:
        for name in OUTPUTS:
            write(Path(publication.staging(name)), generation)
        if fail:
            raise InterruptedError
        for name in OUTPUTS:
            publication.commit(name)


def publish_and_die(store: ClusterStore, generation: int, step: int) -> bool:
    """Publishes in a process that kills itself just before its ``step``-th step; whether it lived to the end."""
    return not killed_before(step, STEPS, partial(publish, store, generation))


class PartSeenError(AssertionError):
    """A reader saw what it must never see."""


def seen(store: ClusterStore, output: str) -> int | None:
    """The generation that a reader sees, None where there is no instance.

    It reads as Spark does: first it lists everything, folder by folder, then it opens the files.
    """
    target = OUTPUTS[output]
    base = Path(store.path(target.path))
    while True:
        try:
            top = {entry.name: entry for entry in os.scandir(base)}
        except FileNotFoundError:
            return None
        try:
            files = [file for folder in top.values() if folder.is_dir() for file in os.scandir(folder)]
            records = [json.loads(Path(file).read_text()) for file in files]
        except FileNotFoundError:
            continue  # replaced while it was read: a reader reads it again
        if target.flag and target.flag not in top:
            raise PartSeenError(f"data without its flag: {sorted(top)}")
        if not records or any(record != records[0] for record in records) or len(records) != records[0]["files"]:
            raise PartSeenError(f"a part or a mixture: {records}")
        if strays := top.keys() - {"carrier=0", "carrier=1", target.flag}:
            raise PartSeenError(f"not of the instance: {strays}")
        return int(records[0]["generation"])


def left_in_staging(store: ClusterStore) -> list[Path]:
    """What a publication or a repair forgot; replaced instances wait for a minute before they go."""
    return [path for path in Path(store.staging).iterdir() if path.name != "replaced"]


@pytest.mark.parametrize("next_run", ["succeeds", "fails"])
@pytest.mark.parametrize("written", ["for the first time", "again"])
def test_killed_at_every_step(home: Path, written: str, next_run: str) -> None:
    old = 1 if written == "again" else None
    outcomes: Counter[tuple[int | None, ...]] = Counter()
    for step in count(1):
        store = store_at(home / str(step))
        if old:
            publish(store, old)
        if publish_and_die(store, 2, step):
            break
        after_kill = tuple(seen(store, output) for output in OUTPUTS)
        assert set(after_kill) <= {old, 2, None}
        outcomes[after_kill] += 1
        if next_run == "fails":
            with pytest.raises(InterruptedError):
                publish(store, 3, fail=True)
            # What was whole is there again: nothing that a reader ever saw is lost by the crash.
            assert [seen(store, output) for output in OUTPUTS] == [state or old for state in after_kill]
            assert left_in_staging(store) == []
        publish(store, 4)
        assert [seen(store, output) for output in OUTPUTS] == [4, 4]
        assert left_in_staging(store) == []
    assert step > 100
    # All that can be seen was seen: before, in the gap of each output, between the outputs, and after.
    assert outcomes.keys() == {(old, old), (None, old), (2, old), (2, None), (2, 2)}


@given(steps=st.lists(st.integers(1, 200), max_size=5))
@examples(60)
def test_killed_again_and_again(steps: list[int]) -> None:
    with TemporaryDirectory(dir=MEMORY) as home:
        store = store_at(Path(home))
        latest = dict.fromkeys(OUTPUTS, 0)
        for generation, step in enumerate(steps, start=1):
            publish_and_die(store, generation, step)
            for output in OUTPUTS:
                state = seen(store, output)
                assert state is None or state >= latest[output], "an older instance came back"
                latest[output] = state or latest[output]
        with pytest.raises(InterruptedError):
            publish(store, 99, fail=True)
        assert {output: seen(store, output) or 0 for output in OUTPUTS} == latest
        assert left_in_staging(store) == []


def hold(store: ClusterStore, generation: int) -> dict[str, HeldData]:
    targets = {name: replace(target, holds=True) for name, target in OUTPUTS.items()}
    with kind_of(store).publish(f"generation {generation}", targets) as publication:
        for name in OUTPUTS:
            write(Path(publication.staging(name)), generation)
        return {name: publication.hold(name) for name in OUTPUTS}


def publish_held(store: ClusterStore, held: dict[str, HeldData]) -> None:
    with kind_of(store).publish("held", OUTPUTS, held=held) as publication:
        for name in OUTPUTS:
            publication.commit(name)


def test_killed_while_it_publishes_what_was_held(home: Path) -> None:
    """What was held is there again, or is the instance: who publishes it again completes it."""
    outcomes = set[tuple[int | None, ...]]()
    for step in count(1):
        store = store_at(home / str(step))
        publish(store, 1)
        held = hold(store, 2)
        if not killed_before(step, STEPS, partial(publish_held, store, held)):
            break
        after_kill = tuple(seen(store, output) for output in OUTPUTS)
        assert set(after_kill) <= {1, 2, None}
        outcomes.add(after_kill)
        publish_held(store, held)
        assert [seen(store, output) for output in OUTPUTS] == [2, 2]
        assert [*Path(store.staging, "held").iterdir()] == []
        assert {one.name for one in left_in_staging(store)} == {"held"}
    assert outcomes == {(1, 1), (None, 1), (2, 1), (2, None), (2, 2)}


def test_killed_while_it_holds(home: Path) -> None:
    for step in count(1):
        store = store_at(home / str(step))
        publish(store, 1)
        if not killed_before(step, STEPS, partial(hold, store, 2)):
            break
        assert [seen(store, output) for output in OUTPUTS] == [1, 1]
        held = hold(store, 3)
        publish_held(store, held)
        assert [seen(store, output) for output in OUTPUTS] == [3, 3]
        assert [*Path(store.staging, "held").iterdir()] == []
    assert step > 50


def test_replaced_data_never_comes_back(home: Path) -> None:
    """Killed after the swap; then the new one is evicted; then the next run repairs."""
    states = set()
    for step in count(1):
        store = store_at(home / str(step))
        publish(store, 1)
        if publish_and_die(store, 2, step):
            break
        for output, target in OUTPUTS.items():
            if seen(store, output) == 2:
                Path(store.path(target.path)).rename(home / f"evicted-{step}-{output}")
                states.add(output)
                with pytest.raises(InterruptedError):
                    publish(store, 3, fail=True)
                assert seen(store, output) is None
    assert states == set(OUTPUTS)


def test_a_reader_that_polls_all_the_while_never_sees_a_part(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    publish(store, 1)
    stop, (reading, writing) = tmp_path / "stop", os.pipe()

    def read() -> None:
        views: Counter[str] = Counter()
        while not stop.exists():
            try:
                views.update("whole" if seen(store, output) else "none" for output in OUTPUTS)
            except PartSeenError as error:
                views[str(error)] += 1
        os.write(writing, json.dumps(views).encode())

    reader = forked(read)
    chance, ends = random.Random(7), Counter[str]()
    try:
        for generation in range(2, 302):
            writer = psutil.Process(forked(partial(publish, store, generation)))
            try:
                assert writer.wait(timeout=chance.choice([chance.uniform(0.0, 0.03), 60.0])) == 0
                ends["finished"] += 1
            except psutil.TimeoutExpired:
                writer.kill()
                writer.wait()
                ends["killed"] += 1
    finally:
        stop.touch()
    views = Counter(json.loads(os.read(reading, 1 << 16)))
    os.waitpid(reader, 0)
    assert set(views) <= {"whole", "none"}
    assert views["whole"] > 1000
    assert ends["killed"] > 50
    assert ends["finished"] > 50
    publish(store, 999)
    assert [seen(store, output) for output in OUTPUTS] == [999, 999]
    assert left_in_staging(store) == []
