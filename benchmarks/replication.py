"""Replication between two local clusters, every file verified, against ``cp -a`` and ``rsync -a --checksum``."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from multiprocessing.pool import Pool
from pathlib import Path

from benchmarks import bare_copy
from benchmarks.measure import Line, Steps, alternate, line_of
from falcon_assets.compute.spark.copying import copy_instance
from falcon_assets.compute.spark.sessions import stop_sessions
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.replication import ReplicationOptions, contributions
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import CopyTarget, publish_copies
from falcon_assets.storage.copying.instance_copy import InstanceCopy
from falcon_assets.storage.files.local_files import SMALL
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget

BAR = 1 / 0.8
ROUNDS = 5
WARM_UP = 5
SIZES = {"1 GiB in 16 files": (16, 64 << 20), "20,000 files of 4 KiB": (20_000, 4 << 10)}
INSTANCE = datetime(2013, 1, 1, tzinfo=UTC)


def measure() -> list[Line]:
    """Copying and verifying against ``cp``; with everything on disk and published against ``cp`` and ``sync``.

    ``cp`` leaves in memory what it wrote; ours starts writing it to the disk while it copies. The start of Spark's
    session is in none of the figures: a run starts it once for all of its instances. Of small files most of the time
    is the operating system's: how much is shown by a copy that does nothing but the system calls of ours.
    """
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number, (what, (files, size)) in enumerate(SIZES.items()):
                lines += _lines(what, _Copies(Path(folder, str(number)), files, size), size)
        finally:
            stop_sessions()
    return lines


class _Copies:
    """The same instance, copied by us and by others, each time to a new place.

    Nothing is removed in between: ext4 without a journal looks at every file that was removed in the last minutes when
    it makes one, which takes ten times as long as making it.
    """

    def __init__(self, home: Path, files: int, size: int) -> None:
        source, target = _cluster("primary"), _cluster("backup")
        feed = _feed()
        self._source, self._target = ClusterStore(source, home, {}), ClusterStore(target, home, {})
        (self._part,) = contributions(feed, "backup", {"primary": source, "backup": target})
        self._path = InstancePaths(feed, source).data(INSTANCE)
        self._executor = SparkExecutor(target, lambda: str(home.parent))
        self._from, self._others = Path(self._source.path(self._path)), home / "others"
        self._numbers = count(1)
        _fill(self._from, files, size)
        self._warm_up()

    def ours(self) -> Steps:
        """Seconds to copy and verify, and to have it on disk and published."""
        output = OutputTarget(f"{self._path}/{next(self._numbers)}", "_SUCCESS")
        Path(self._target.path(self._path)).mkdir(parents=True, exist_ok=True)
        os.sync()
        started = time.perf_counter()
        _replicate(
            self._executor,
            InstanceCopy(
                kind_of(self._source), self._path, self._copy_target(output), self._part.holds, ReplicationOptions()
            ),
        )
        copied = time.perf_counter()
        publish_copies("benchmark", [self._copy_target(output)])
        return {"copy": copied - started, "publish": time.perf_counter() - copied}

    def by(self, *command: str) -> Callable[[], Steps]:
        """The same by that command."""

        def run() -> Steps:
            copy = self._others / str(next(self._numbers))
            self._others.mkdir(exist_ok=True)
            os.sync()
            started = time.perf_counter()
            subprocess.run([*command, f"{self._from}/", f"{copy}/"], check=True)
            copied = time.perf_counter()
            subprocess.run(["sync", "-f", self._others], check=True)
            return {"copy": copied - started, "publish": time.perf_counter() - copied}

        return run

    def bare(self, pool: Pool) -> Steps:
        """The same by the system calls alone, of files small enough for one read and one write each."""
        os.sync()
        started = time.perf_counter()
        bare_copy.copy(pool, self._from, self._others / str(next(self._numbers)))
        return {"copy": time.perf_counter() - started}

    def _copy_target(self, output: OutputTarget) -> CopyTarget:
        return kind_of(self._target).copy_target(output, "primary")

    def _warm_up(self) -> None:
        """Has Spark's session and both of its workers up, as in a run that copied some instances already."""
        _fill(Path(self._source.path("/warm")), 2, 96 << 20)
        for number in range(WARM_UP):
            output = OutputTarget(f"/warm/{number}", "_SUCCESS")
            _replicate(
                self._executor,
                InstanceCopy(
                    kind_of(self._source), "/warm", self._copy_target(output), self._part.holds, ReplicationOptions()
                ),
            )


def _replicate(executor: SparkExecutor, copy: InstanceCopy) -> None:
    with copy:
        copy_instance(executor, copy)


def _lines(what: str, copies: _Copies, size: int) -> list[Line]:
    rounds = list(alternate(ROUNDS, copies.ours, copies.by("cp", "-a")))
    lines = [
        line_of(f"replicate {what}, verified, by cp -a", rounds, ["copy"], BAR),
        line_of("  until it is on disk, and published, by cp -a and sync", rounds, ["copy", "publish"], BAR),
    ]
    if shutil.which("rsync"):
        rounds = list(alternate(ROUNDS, copies.ours, copies.by("rsync", "-a", "--checksum")))
        lines.append(line_of("  by rsync -a --checksum", rounds, ["copy"]))
    if size <= SMALL:
        with bare_copy.processes() as pool:
            rounds = list(alternate(ROUNDS, copies.ours, lambda: copies.bare(pool)))
        lines.append(line_of("  by its system calls alone, in two processes", rounds, ["copy"]))
    return lines


def _fill(folder: Path, files: int, size: int) -> None:
    folder.mkdir(parents=True)
    block = os.urandom(min(size, 1 << 20))
    for number in range(files):
        with (folder / f"part-{number:05}.json").open("wb") as file:
            for offset in range(0, size, len(block)):
                file.write(f"{number:08}{offset:016}".encode() + block[24:])
    (folder / "_SUCCESS").touch()


def _cluster(name: str) -> Cluster:
    interfaces = {"write": {"endpoint": f"data/{name}"}, "execute": {"endpoint": "local[2]"}}
    return Cluster.model_validate({"kind": "cluster", "name": name, "interfaces": interfaces})


def _feed() -> Feed:
    validity = {"start": "2013-01-01T00:00Z", "end": "2014-01-01T00:00Z"}
    return Feed.model_validate(
        {
            "kind": "feed",
            "name": "raw",
            "frequency": "hours(1)",
            "availability_flag": "_SUCCESS",
            "locations": {"data": "/raw/${YEAR}/${MONTH}/${DAY}/${HOUR}"},
            "clusters": [
                {"name": name, "type": role, "validity": validity}
                for name, role in (("primary", "source"), ("backup", "target"))
            ],
        }
    )
