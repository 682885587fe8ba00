"""A source and a target with an instance to copy, and copies without Spark: its tasks run one after the other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from falcon_assets.planning.replication import Contribution, ReplicationOptions, contributions
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import CopyTarget, publish_copies, publish_if_complete
from falcon_assets.storage.copying.copy_task import FileReport, TaskSummary, run_task
from falcon_assets.storage.copying.instance_copy import CopyResult, InstanceCopy
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.output_target import OutputTarget
from tests.builders import VALIDITY, make_cluster, make_feed

PATH = "/raw/2013/01/01/00"
FLAG = "_SUCCESS"


@dataclass
class CopySandbox:
    """Sources ``primary`` (and others, each with a partition) and the target ``backup``."""

    home: Path
    environ: Mapping[str, str] = field(default_factory=dict)
    target: Mapping[str, Any] = field(default_factory=dict)
    """What the target's cluster declares, if it is not a local one."""
    sources: Mapping[str, str | None] = field(default_factory=lambda: {"primary": None})
    """Source cluster -> partition."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """What the source clusters declare, if they are not local ones."""
    flag: str | None = FLAG
    reports: list[FileReport] = field(default_factory=list)
    """What became of each file that the last copy looked at."""

    def store(self, name: str = "backup", *, readonly: bool = False) -> ClusterStore:
        declared = self.target if name == "backup" else self.source
        local = {
            "interfaces": {"write": {"endpoint": f"data/{name}"}, "execute": {"endpoint": "local[2]"}},
            "colo": f"{name}-colo",
        }
        return ClusterStore(
            make_cluster(**{**local, **declared, "name": name}), self.home, self.environ, readonly=readonly
        )

    def parts(self) -> tuple[Contribution, ...]:
        sources = [
            {"name": name, "type": "source", "validity": VALIDITY, **({"partition": partition} if partition else {})}
            for name, partition in self.sources.items()
        ]
        feed = make_feed(
            partitions=["carrier"], clusters=[*sources, {"name": "backup", "type": "target", "validity": VALIDITY}]
        )
        clusters = {name: self.store(name).cluster for name in (*self.sources, "backup")}
        return contributions(feed, "backup", clusters)

    def output(self, permission: str | None = None) -> OutputTarget:
        return OutputTarget(PATH, self.flag, permission)

    def copying(
        self, options: ReplicationOptions | None = None, source: str = "primary", permission: str | None = None
    ) -> InstanceCopy:
        (part,) = (part for part in self.parts() if part.source == source)
        target = self.copy_target(source, permission)
        return InstanceCopy(kind_of(self.store(source)), PATH, target, part.holds, options or ReplicationOptions())

    def copy_target(self, source: str, permission: str | None = None) -> CopyTarget:
        return kind_of(self.store()).copy_target(self.output(permission), source)

    def copy(
        self, options: ReplicationOptions | None = None, source: str = "primary", permission: str | None = None
    ) -> CopyResult:
        with self.copying(options, source, permission) as copy:
            self.reports = [report for n in range(len(copy.plan.tasks)) for report in run_task(copy.job, n)]
            return copy.finish(TaskSummary.of(self.reports))

    def publish(self, sources: Iterable[str] = ("primary",), permission: str | None = None) -> DataVersion:
        return publish_copies("raw-flights on backup", [self.copy_target(source, permission) for source in sources])

    def bring(self, source: str, options: ReplicationOptions | None = None) -> DataVersion | None:
        """Copies from one of several sources, and publishes the instance if that completes it."""
        self.copy(options, source)
        sources = sorted(self.sources, key=source.__ne__)
        return publish_if_complete("raw-flights on backup", list(map(self.copy_target, sources)))

    def replicate(self, options: ReplicationOptions | None = None) -> CopyResult:
        result = self.copy(options)
        if result.to_publish:
            self.publish()
        return result

    def write(self, files: Mapping[str, bytes], source: str = "primary") -> None:
        """Makes these the files of the source's instance, and no others; complete. Files that stay are not touched."""
        store = self.store(source)
        base = store.path(PATH)
        for name in set(self.read(source)) - set(files):
            store.fs.rm_file(f"{base}/{name}")
        store.fs.makedirs(base, exist_ok=True)
        for name, content in files.items():
            if self.read(source).get(name) != content:
                store.fs.makedirs(f"{base}/{name}".rpartition("/")[0], exist_ok=True)
                store.fs.pipe_file(f"{base}/{name}", content)
        if self.flag:
            store.fs.pipe_file(f"{base}/{self.flag}", b"")

    def read(self, cluster: str = "backup") -> dict[str, bytes]:
        """The files of an instance without the flag, complete or not."""
        store = self.store(cluster)
        base = store.path(PATH)
        store.fs.invalidate_cache()
        if not store.fs.exists(base):
            return {}
        names = (str(name)[len(base) + 1 :] for name in store.fs.find(base))
        return {name: store.fs.cat_file(f"{base}/{name}") for name in names if name != self.flag}

    def is_complete(self) -> bool:
        store = self.store()
        store.fs.invalidate_cache()
        return bool(store.fs.exists(store.path(f"{PATH}/{self.flag}" if self.flag else PATH)))


def some_files(count: int = 6, size: int = 1000) -> dict[str, bytes]:
    """Files of several sizes, some in a folder, one of them empty."""
    names = [f"{'AA/' if number % 2 else ''}part-{number:05}.json" for number in range(count)]
    return {name: os.urandom(number * size) for number, name in enumerate(names)}
