"""Copies of instances from a source of a feed: pulled by the target, verified, published once all sources arrived."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

from falcon_assets.base.cancellation import current_cancellation
from falcon_assets.compute.executor import Executor
from falcon_assets.compute.spark.copying import copy_instance
from falcon_assets.errors import MissingInputsError
from falcon_assets.history.events.event_log import materialization, observation
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, KeptVersion
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import FilesCopied, InstanceChanged, WorkDone
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.instances.runs.environment import run_environment
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.instance_work import Done, Event, Prepared
from falcon_assets.instances.runs.kept_versions import kept_versions
from falcon_assets.instances.runs.planned_inputs import Evicted
from falcon_assets.instances.store.consumed import versions_read
from falcon_assets.instances.store.former_instances import FormerInstances
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.instance_record import InstanceState, LateChange
from falcon_assets.planning.replication import Contribution, ReplicationOptions, replication_options, sources_of
from falcon_assets.planning.workloads import ReplicationWorkload, replication_name
from falcon_assets.settings import os_user
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_target import publish_if_complete
from falcon_assets.storage.copying.copy_task import CopyProgress
from falcon_assets.storage.copying.file_copy import MEBIBYTE
from falcon_assets.storage.copying.instance_copy import CopyResult, InstanceCopy
from falcon_assets.storage.files.ability import Ability
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.snapshots import is_there, is_there_repaired, why_not_there
from falcon_assets.storage.output_target import OutputTarget, output_target

Copying: TypeAlias = Callable[[str, CopyProgress], object]
"""Receives the progress of the copy of an instance, about once a second."""
_SAID_EVERY_SECONDS = 5.0
_MB = 1e6


@dataclass(frozen=True)
class Route:
    """The source and target of a replication; ``parts`` are the contributions of all sources."""

    replication: ReplicationWorkload
    feed: Feed
    source: ClusterStore
    target: ClusterStore
    parts: tuple[Contribution, ...]

    @property
    def part(self) -> Contribution:
        return next(part for part in self.parts if part.source == self.replication.reads_on)

    @property
    def options(self) -> ReplicationOptions:
        """With the share of an instance in the bandwidth, where several are copied at once."""
        options = replication_options(self.feed.properties)
        entry = self.feed.on(self.replication.cluster)
        if entry is None or entry.throttle is None:
            return options
        shared = entry.throttle.bytes_per_second / MEBIBYTE / self.replication.parallel
        return replace(options, bandwidth=shared)

    def source_path(self, instance: datetime) -> str:
        return InstancePaths(self.feed, self.source.cluster).data(instance)

    def output(self, instance: datetime) -> OutputTarget:
        path = InstancePaths(self.feed, self.target.cluster).data(instance)
        # What is copied into a table that is not there brings its columns with it.
        table = self.feed.table_on(self.target.cluster.name)
        merges = table is not None and table.merge_schema
        output = output_target(self.feed, instance, path)
        if replication_options(self.feed.properties).preserve_permission:
            output = replace(output, permission=None)  # its files have those of the source's
        return replace(output, format=self.feed.format, makes_table=True, merges_schema=merges)


@dataclass(frozen=True)
class ReplicationWork:
    """Copies instances in one run.

    Attributes:
        say: Receives the progress in words, now and then.
        copying: Receives it in numbers.
        version: Of the definition of the feed; None: none is recorded.
        clock: The falcon clock, where the feed lands on the source from outside; None: it does not.
    """

    route: Route
    executor: Executor
    claims: InstanceClaims
    say: Callable[[str], None]
    copying: Copying
    version: int | None
    clock: Clock | None

    def prepare(self, nominal: datetime, late: tuple[LateChange, ...] | None, evicted: Evicted) -> Prepared:
        route, path = self.route, self.route.source_path(nominal)
        asked = (kind_of(route.source), route.feed, nominal, path, self.clock)
        if not is_there(*asked):
            line = f"{route.feed.name} {format_instant(nominal)} at {route.source.shown(path)}"
            if route.feed.snapshot:
                line += f" ({why_not_there(*asked)[1]})"
            gone = evicted(route.feed.name, [nominal]).get(nominal)
            subject = f"{route.replication.name} on {route.replication.cluster} at {format_instant(nominal)}"
            if gone is not None:
                raise MissingInputsError(subject, [], [f"{line}, evicted on {format_instant(gone)}"])
            raise MissingInputsError(subject, [line], lacking=[(route.feed.name, nominal)])
        self._former.require_apart(route.target, route.feed, nominal, route.output(nominal).path)
        return _Copy(self, nominal, late or ())

    @cached_property
    def _former(self) -> FormerInstances:
        return FormerInstances(self.claims.ledger)

    def definition(self, nominal: datetime) -> int | None:
        return self.version

    def is_there(self, nominal: datetime, feed: str, instance: datetime) -> bool:
        route = self.route
        return is_there_repaired(kind_of(route.source), route.feed, instance, route.source_path(instance), self.clock)


@dataclass(frozen=True)
class _Copy:
    work: ReplicationWork
    nominal: datetime
    late: tuple[LateChange, ...]

    def run(self) -> Done:
        route = self.work.route
        path, output = route.source_path(self.nominal), route.output(self.nominal)
        to, own = kind_of(route.target), route.part.source
        with self._alone():
            target = to.copy_target(output, own)
            with InstanceCopy(kind_of(route.source), path, target, route.part.holds, route.options) as copy:
                # Between the first listing and the last, which have to be the same: it is what is copied. Replaced
                # before the first, the new data would be recorded as the old.
                read = kind_of(route.source).version(path, route.feed.availability_flag)
                result = copy_instance(self.work.executor, copy, self._progress())
            key = f"{route.feed.name} on {route.replication.cluster} at {format_instant(self.nominal)}"
            sources = [part.source for part in sources_of(route.parts, self.nominal)]
            parts = [to.copy_target(output, source) for source in sorted(sources, key=own.__ne__)]
            current_cancellation().make_final()  # what is half published is published
            version = publish_if_complete(key, parts)
        late = tuple(replace(one, after=read.version) for one in self.late)
        versions = {**self._others(sources), own: read.version}
        kept = kept_versions(route.target, route.feed, self.nominal)
        return _Copied(route, self.nominal, read, versions, result, version, late, kept)

    def _others(self, sources: Sequence[str]) -> dict[str, str | None]:
        """Returns the arrived versions of the other sources, by source."""
        ledger, route = self.work.claims.ledger, self.work.route
        if len(sources) < 2:
            return {}
        names_of = {replication_name(route.feed.name, source): source for source in sources}
        ledger.catch_up()
        with ledger.engine.connect() as connection:
            others = [(name, route.target.cluster.name, self.nominal) for name in names_of]
            found = versions_read(connection, others)
        return {names_of[key[0]]: version for key, version in found.items()}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Locks the instance where sources take turns.

        They do on stores without rename, where they change it in place; and among volumes, so that all meet on one.
        """
        route, locks = self.work.route, self.work.claims.locks
        meet = len(route.parts) > 1 and len(route.target.volumes) > 1
        if Ability.RENAME not in kind_of(route.target).cannot and not meet:
            yield
            return
        lock = f"falcon copy {route.feed.name} {route.replication.cluster} {format_instant(self.nominal)}"
        locks.wait_for(lock)
        try:
            yield
        finally:
            locks.release(lock)

    def _progress(self) -> Callable[[CopyProgress], None]:
        name = f"{self.work.route.replication.name} {format_instant(self.nominal)}"
        said = time.monotonic()

        def progress(now: CopyProgress) -> None:
            nonlocal said
            self.work.copying(name, now)
            if time.monotonic() - said >= _SAID_EVERY_SECONDS or now.files == now.of_files:
                said = time.monotonic()
                self.work.say(f"{name}: {in_words(now)}")

        return progress


@dataclass(frozen=True)
class _Copied:
    """A copied instance; ``version`` is None while another source has yet to contribute."""

    route: Route
    nominal: datetime
    read: DataVersion
    versions: Mapping[str, str | None]
    result: CopyResult
    version: DataVersion | None
    late: tuple[LateChange, ...]
    kept: tuple[KeptVersion, ...] | None

    def events(self, partition: str, at: datetime, definition: int | None) -> Iterator[Event]:
        replication, feed = self.route.replication, self.route.feed.name
        key, what = names.asset_key(replication.cluster, feed), f"{replication.name} {format_instant(self.nominal)}"
        inputs = {replication.inputs[0].name: (self._read(),)}
        instance = (replication.name, replication.cluster, self.nominal)
        succeeded = InstanceChanged(*instance, InstanceState.SUCCEEDED, at, inputs=inputs, definition=definition)
        work, copied = WorkDone(round(self.result.seconds, 3)), self._files()
        if self.version is None:
            said = f"{what} is copied; other sources are not yet"
            yield observation(key, partition, succeeded, copied, work, description=said)
            return
        available = FeedInstanceAvailable(
            replication.cluster,
            feed,
            self.nominal,
            self.version.version,
            at,
            self.version.bytes,
            files=self.version.files,
            process=replication.name,
            nominal=self.nominal,
            inputs=inputs,
            late=self.late,
            path=self.route.target.shown(self.route.output(self.nominal).path),
            definition=definition,
            source_versions=self.versions,
            kept_versions=self.kept,
            made_by=os_user(),
            environment=run_environment(),
        )
        yield materialization(key, partition, succeeded, available, copied, work, description=f"{what} is copied")

    def _read(self) -> Consumption:
        path = f"{self.route.source.root or ''}{self.route.source_path(self.nominal)}"
        source = self.route.replication.reads_on
        return Consumption(self.route.feed.name, self.nominal, self.read.version, source, path)

    def _files(self) -> FilesCopied:
        result = self.result
        return FilesCopied(
            self.route.replication.reads_on,
            result.files_copied,
            result.files_skipped,
            result.files_failed,
            result.bytes,
            result.verification or "nothing to verify",
        )


def in_words(now: CopyProgress) -> str:
    """Returns text like ``3 of 8 files, 12.5 of 40.0 MB, 6.2 MB/s``."""
    return (
        f"{now.files} of {now.of_files} files, {now.bytes / _MB:.1f} of {now.of_bytes / _MB:.1f} MB, "
        f"{now.rate / _MB:.1f} MB/s"
    )
