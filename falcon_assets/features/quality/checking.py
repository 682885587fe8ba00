"""Checks a version of an instance: reads it, measures, judges, and records the verdict in Dagster's log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from falcon_assets.catalog.store import EntityStore
from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.reading import read_input
from falcon_assets.compute.spark.data.schemas import parse_schema
from falcon_assets.compute.spark.jvm import in_utc
from falcon_assets.compute.spark.sessions import apply_settings, isolated
from falcon_assets.compute.spark_executor import SparkExecutor
from falcon_assets.errors import FalconError, StorageError, WorkflowError
from falcon_assets.features.quality import store as rows
from falcon_assets.features.quality.checks import QualityChecks
from falcon_assets.features.quality.events import InstanceChecked, as_storable
from falcon_assets.features.quality.measuring import CheckedInstance, InstanceMeasuring, UnreadableDataError
from falcon_assets.features.quality.profile import ColumnProfile
from falcon_assets.features.quality.store import InstanceKey, VerdictRow
from falcon_assets.features.quality.verdict import Measured, QualityResult, judged, verdict_of
from falcon_assets.history.events.event_log import observation
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.hooks import StagedOutput
from falcon_assets.instances.runs.instance_run import read_as_data
from falcon_assets.instances.runs.run_locks import all_taken
from falcon_assets.instances.runs.spark_access import SparkAccess
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.model.quality_check import QualityCheck
from falcon_assets.model.table_uri import TableUri
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.settings import Settings
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.kinds.kind_of import kind_of
from falcon_assets.storage.kinds.reading import ReadableInstance
from falcon_assets.storage.tables.catalog import Column as TableColumn
from falcon_assets.storage.tables.column_types import as_read
from falcon_assets.storage.tables.key_values import NO_VALUE, same

_GIVEN_UP_AFTER = 3
"""Attempts to read data that Spark cannot read; then the instance is invalid."""


class OtherVersionError(StorageError):
    """The version is not there any more; the present one may not have been collected yet."""


@dataclass(frozen=True)
class InstanceChecker:
    """Checks instances on one cluster; the session stays open, so further ones are faster."""

    store: EntityStore
    cluster: Cluster
    settings: Settings
    ledger: Ledger

    def check(
        self, feed: Feed, key: InstanceKey, version: str, *, full: bool = False, anew: bool = False
    ) -> VerdictRow | None:
        """Returns the verdict about a version, which is measured unless there is one; None: another process does.

        ``full``: all checks, at once; ``anew``: even if there is a verdict.

        Raises:
            WorkflowError: Spark does not work, or the data cannot be read.
            StorageError: its store fails; OtherVersionError: the version is not there any more.
        """
        subject = f"{feed.name} {format_instant(key[2])}"
        with all_taken(self.ledger.engine, [f"quality {' '.join(key[:2])} {format_instant(key[2])}"]) as is_ours:
            if not is_ours:
                return None
            self.ledger.catch_up()
            with self.ledger.engine.begin() as connection:
                if not anew and (known := rows.verdict_about(connection, key, version)):
                    return known
                attempt = rows.begin_attempt(connection, key, version)
            try:
                found = self._checked(feed, key, version, full=full)
            except FalconError as error:
                if not isinstance(error, UnreadableDataError) or attempt < _GIVEN_UP_AFTER:
                    with self.ledger.engine.begin() as connection:
                        rows.attempt_failed(connection, key, version, str(error))
                    raise
                found = self._unreadable(key, version, str(error))
            for evaluation in QualityChecks(self.store, self.settings).evaluations(feed, found):
                self.ledger.instance.report_runless_asset_event(evaluation)
            # Last: after a kill before it, the version is checked again, and evaluations replace each other.
            said = f"{subject} is {found.verdict.value.lower()}"
            partition = QualityChecks(self.store, self.settings).partition_of(feed, self.cluster.name, key[2])
            event = observation(names.asset_key(*key[:2]), partition, found, description=said)
            self.ledger.instance.report_runless_asset_event(event)
            self.ledger.catch_up()
            with self.ledger.engine.connect() as connection:
                return rows.verdict_about(connection, key, version)

    def profile(self, feed: Feed, key: InstanceKey, version: str) -> Measured:
        """Computes the profile of a version, and records nothing; raises as :meth:`check`."""
        with ExitStack() as held:
            return self._measuring(held, feed, key, version).measure((), profile=True)

    def check_staged(self, one: StagedOutput) -> InstanceChecked:
        """Judges what was computed, and has no version yet."""
        feed, key = one.plan.feed, (self.cluster.name, one.plan.feed.name, one.plan.instance)
        with ExitStack() as held:
            access = self._access(feed)
            spark = self._session(held, access, feed)
            try:
                data = _staged_frame(spark, one)
                found = self._judged(feed, key, self._measuring_of(held, spark, access, feed, key, data))
            except UnreadableDataError as error:  # nobody else is writing it: it stays so
                return self._unreadable(key, "", str(error))
        return self._said(key, "", feed.checks, *found)

    def _checked(self, feed: Feed, key: InstanceKey, version: str, *, full: bool) -> InstanceChecked:
        kind, path = kind_of(self._stores(feed)), InstancePaths(feed, self.cluster).data(key[2])
        subject = f"{feed.name} {format_instant(key[2])}"
        if not kind.is_available(feed, path):
            raise StorageError(f"{subject}: {kind.why_unavailable(feed, path)[1]}")
        listed = kind.listing(path, feed.availability_flag)
        with ExitStack() as held:
            results, suite, measured = self._judged(feed, key, self._measuring(held, feed, key, version), full=full)
        if kind.listing(path, feed.availability_flag).signature != listed.signature:
            raise OtherVersionError(f"{subject} was replaced while it was checked")
        return self._said(key, version, feed.checks, results, suite, measured)

    def _judged(
        self, feed: Feed, key: InstanceKey, measuring: InstanceMeasuring, *, full: bool = False
    ) -> tuple[list[QualityResult], str, Measured]:
        """The results, the suite that was measured, and the figures of the first pass."""
        quick = [one for one in feed.checks if one.suite == "quick"]
        asked = list(feed.checks) if full or not quick else quick
        last = max((getattr(one, "last", None) or 0 for one in feed.checks), default=0)
        with self.ledger.engine.connect() as connection:
            past = rows.past_figures(rows.verdicts_before(connection, *key, last, valid=True))
        measured = measuring.measure(asked, profile=feed.profile)
        results = list(judged(asked, measured, key[2], past))
        if len(asked) < len(feed.checks) and not all(one.passed for one in results):
            rest = [one for one in feed.checks if one.suite == "full"]
            results += judged(rest, measuring.measure(rest), key[2], past)
            asked = list(feed.checks)
        return results, "full" if len(asked) == len(feed.checks) else "quick", measured

    def _said(
        self,
        key: InstanceKey,
        version: str,
        declared: Sequence[QualityCheck],
        results: Sequence[QualityResult],
        suite: str,
        measured: Measured | None = None,
    ) -> InstanceChecked:
        order = {one.title: number for number, one in enumerate(declared)}
        sorted_ones = sorted(results, key=lambda one: order.get(one.name, 0))
        checks = tuple(QualityResult(**as_storable(one.as_data())) for one in sorted_ones)
        profile = None if measured is None or measured.profile is None else measured.profile
        return InstanceChecked(
            *key,
            verdict_of(results),
            version,
            self.settings.now(),
            suite,
            measured.records if measured else None,
            checks,
            None if profile is None else tuple(ColumnProfile.of_data(as_storable(one.as_data())) for one in profile),
        )

    def _unreadable(self, key: InstanceKey, version: str, why: str) -> InstanceChecked:
        result = QualityResult("readable", "readable", "error", passed=False, said=why, problem=True)
        return self._said(key, version, (), [result], "quick")

    def _measuring(self, held: ExitStack, feed: Feed, key: InstanceKey, version: str) -> InstanceMeasuring:
        """The data, within ``held``; raises StorageError where it is of another version."""
        access = self._access(feed)
        found = self._found(held, access, feed, key[2])
        if found.version.version != version:
            raise OtherVersionError(f"{feed.name} {format_instant(key[2])} is another version by now than {version}")
        spark = self._session(held, access, feed)
        return self._measuring_of(held, spark, access, feed, key, _frame(spark, feed, found))

    def _access(self, feed: Feed) -> SparkAccess:
        executor = SparkExecutor(self.cluster, lambda: self._store.working, self.settings.home)
        executor.require_reachable()
        others = [self.store.feed(name) for check in feed.checks for _, name in check.feeds_read()]
        return SparkAccess(executor, self._store, [self._stores(one) for one in (feed, *others)])

    def _session(self, held: ExitStack, access: SparkAccess, feed: Feed) -> SparkSession:
        held.enter_context(in_utc())
        spark = held.enter_context(isolated(access.executor.session()))
        apply_settings(spark, access.settings, feed.name)
        return spark

    def _measuring_of(
        self, held: ExitStack, spark: SparkSession, access: SparkAccess, feed: Feed, key: InstanceKey, data: DataFrame
    ) -> InstanceMeasuring:
        def other(name: str) -> DataFrame:
            return self._other(held, spark, access, self.store.feed(name), key)

        return InstanceMeasuring(spark, data, CheckedInstance(feed.name, self.cluster.name, key[2]), other)

    def _found(self, held: ExitStack, access: SparkAccess, feed: Feed, instance: datetime) -> ReadableInstance:
        path = InstancePaths(feed, self.cluster).data(instance)
        kind = kind_of(self._stores(feed))
        return held.enter_context(kind.reading(path, feed.availability_flag, access.staging))

    def _other(
        self, held: ExitStack, spark: SparkSession, access: SparkAccess, feed: Feed, key: InstanceKey
    ) -> DataFrame:
        instance = feed_timeline(feed, self.cluster.name).at_or_before(key[2])
        when = f"{feed.name} at or before {format_instant(key[2])}"
        if instance is None:
            raise WorkflowError(f"there is no instance of {when}")
        path = InstancePaths(feed, self.cluster).data(instance)
        if not kind_of(self._stores(feed)).is_available(feed, path):
            raise WorkflowError(f"waits for {feed.name} {format_instant(instance)}, whose keys are to be there")
        return _frame(spark, feed, self._found(held, access, feed, instance))

    @cached_property
    def _store(self) -> ClusterStore:
        settings = self.settings
        return ClusterStore(self.cluster, settings.home, settings.environ, roots=roots_of(settings))

    @cached_property
    def _stores(self) -> StoresOf:
        return StoresOf(self.cluster, self.settings.home, self.settings.environ, roots_of(self.settings))


def _frame(spark: SparkSession, feed: Feed, found: ReadableInstance) -> DataFrame:
    return _readable(spark, read_as_data(feed.name, feed, [found]))


def _readable(spark: SparkSession, data: InputData) -> DataFrame:
    try:
        return read_input(spark, data)
    except WorkflowError as error:
        raise UnreadableDataError(str(error)) from error


def _staged_frame(spark: SparkSession, one: StagedOutput) -> DataFrame:
    """With the keys of a table's partitions, in the types that its readers get."""
    feed = one.plan.feed
    if not one.keys:
        return _readable(spark, InputData(feed.name, feed, (one.url,)))
    declared = parse_schema(feed.schema_) if feed.schema_ is not None else ()
    types = {field.name.lower(): field.dataType.simpleString() for field in declared}
    fixed, keys = TableUri.parse(one.plan.path).fixed, dict[str, Column]()
    for name, kind in one.keys.items():
        if name.lower() in fixed:
            (value,) = same([TableColumn(name, kind)], (fixed[name.lower()],))
            said = lit(None if value == NO_VALUE else value)
        else:  # the folders say it
            said = col(f"`{name}`")
        keys[name] = said.cast(as_read(types.get(name.lower(), kind)))
    of_files = feed.model_copy(update={"schema_": None})
    return _readable(spark, InputData(feed.name, of_files, (one.url,))).withColumns(keys)
