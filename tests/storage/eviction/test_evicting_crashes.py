"""Killed at any point, the same call again completes an eviction; no reader sees a part, nothing else is touched."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falcon_assets.model.instant import parse_instant
from falcon_assets.planning.eviction import Verdict, plan_eviction
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.eviction.evicting import evict
from falcon_assets.storage.instances.stored_instances import stored_instances
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.staging import copies_folder
from tests.builders import VALIDITY, make_cluster, make_feed
from tests.processes import killed_before
from tests.properties import examples

pytestmark = pytest.mark.soak
NOW = parse_instant("2013-01-10T00:00Z")
CLUSTER = make_cluster()
BACKUP = make_cluster(name="backup", interfaces={"write": {"endpoint": "backup"}, "execute": {"endpoint": "local"}})
LOCATIONS = {"data": "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}", "stats": "/stats/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
DATA = {"part-0": "a" * 10, "carrier=US/part-1": "b" * 20, "_SUCCESS": ""}
OLD, YOUNG = ("2013/01/01/05", "2013/01/02/05"), "2013/01/09/05"
SIBLINGS = {"raw/2013/01/02/README": "x", "raw/2013/01/01-05": "y"}
ACTIONS = ["delete", "archive here", "archive elsewhere"]
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


class Feed:
    """A feed with two old instances, a young one and siblings, below ``home``, and what was decided on it."""

    def __init__(self, home: Path, action: str) -> None:
        self.store, self.backup = ClusterStore(CLUSTER, home, {}), ClusterStore(BACKUP, home, {})
        self.action, self.root = action, home / "data" / "primary"
        for instance in (*OLD, YOUNG):
            for name, content in DATA.items():
                self._write(f"raw/{instance}/{name}", content)
            self._write(f"stats/{instance.replace('/', '-')}/counts", "c")
        for instance in OLD:  # they were replicated from elsewhere
            staged = Path(copies_folder(self.store, f"/raw/{instance}"), "source")
            staged.mkdir(parents=True)
            (staged / "published.jsonl").touch()
        for name, content in SIBLINGS.items():
            self._write(name, content)
        retention: dict[str, Any] = {"limit": "days(3)"}
        if action != "delete":
            retention |= {"action": "archive", "archive_to": "/old/${YEAR}/${MONTH}/${DAY}/${HOUR}"}
        feed = make_feed(
            locations=LOCATIONS, clusters=[{"name": "primary", "validity": VALIDITY, "retention": retention}]
        )
        found = stored_instances(self.store, feed)
        self.verdicts: list[Verdict] = plan_eviction(InstancePaths(feed, CLUSTER), found, NOW)

    def _write(self, name: str, content: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(content)

    @property
    def archive(self) -> Path | None:
        """The root of the archive."""
        return {"archive here": self.root / "old", "archive elsewhere": Path(self.backup.path("/old"))}.get(self.action)

    def evict(self) -> None:
        target = self.backup if self.action == "archive elsewhere" else None
        errors = [gone.error for gone in evict(self.store, self.verdicts, "_SUCCESS", target)]
        assert errors == [None, None]
        kind_of(self.store).purge(patience=0)

    def copied(self) -> set[int]:
        """The inodes of what lies copied in the archive's staging location, as far as it is all there."""
        staged = Path(self.backup.staging, "copies")
        return {file.stat().st_ino for file in staged.rglob("part-*") if file.read_text() in DATA.values()}

    def archived(self) -> set[int]:
        """The inodes of what is in the archive."""
        return {file.stat().st_ino for file in self.archive.rglob("part-*")} if self.archive else set()

    def check_while_incomplete(self) -> None:
        """What a reader may see: the whole instance or none; with an archive, the whole one somewhere."""
        for instance in OLD:
            here = content(self.root / "raw" / instance)
            assert here in (DATA, {})
            if self.archive:
                there = content(self.archive / instance)
                assert there in (DATA, {})
                assert here or there
        self.check_others()

    def check_others(self) -> None:
        assert content(self.root / "raw" / YOUNG) == DATA
        assert content(self.root / "stats" / YOUNG.replace("/", "-")) == {"counts": "c"}
        assert {name: (self.root / name).read_text() for name in SIBLINGS} == SIBLINGS

    def check_complete(self) -> None:
        self.check_others()
        young = {f"raw/{YOUNG}/{name}" for name in DATA} | {f"stats/{YOUNG.replace('/', '-')}/counts"}
        ours = {name for name in content(self.root) if not name.startswith("old/")}  # and nothing in staging
        assert ours == young | set(SIBLINGS)
        assert {entry.name for entry in (self.root / "raw/2013/01").iterdir()} == {"01-05", "02", "09"}
        if self.archive:
            assert {name: content(self.archive / name) for name in OLD} == dict.fromkeys(OLD, DATA)
            assert [content(self.archive / f"{name}.stats") for name in OLD] == [{"counts": "c"}] * 2
            assert not content(Path(self.backup.staging))


def content(folder: Path) -> dict[str, str]:
    """The files below the folder."""
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("action", ACTIONS)
def test_killed_at_every_step(home: Path, action: str) -> None:
    states, resumed = set(), 0
    for step in count(1):
        feed = Feed(home / str(step), action)
        if not killed_before(step, STEPS, feed.evict):
            feed.check_complete()
            break
        feed.check_while_incomplete()
        states.add(tuple(bool(content(feed.root / "raw" / instance)) for instance in OLD))
        copied = feed.copied()
        feed.evict()
        feed.check_complete()
        # What was copied and verified is not copied again: only the file that was being written is another one.
        again = copied - feed.archived()
        assert len(again) <= 1
        resumed += len(copied) - len(again)
    assert step > 40
    assert states == {(True, True), (False, True), (False, False)}
    assert (resumed > 20) == (action == "archive elsewhere")


@given(action=st.sampled_from(ACTIONS), steps=st.lists(st.integers(1, 60), max_size=6))
@examples(40)
def test_killed_again_and_again(action: str, steps: list[int]) -> None:
    with TemporaryDirectory(dir=MEMORY) as folder:
        feed = Feed(Path(folder), action)
        for step in steps:
            killed_before(step, STEPS, feed.evict)
            feed.check_while_incomplete()
        feed.evict()
        feed.check_complete()
