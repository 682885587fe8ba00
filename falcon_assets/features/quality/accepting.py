"""Publishing what is held, once a person has accepted it: the data that was checked, as its process computed it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime

import dagster as dg

from falcon_assets.errors import StorageError, UnknownEntityError, UsageError
from falcon_assets.features.quality.checks import QualityChecks
from falcon_assets.features.quality.events import HeldAccepted, InstanceChecked, OutputHeld
from falcon_assets.features.quality.held_outputs import HeldOutput, held_output, held_with
from falcon_assets.features.quality.holding import CheckedOutput
from falcon_assets.features.quality.verdict import verdict_of
from falcon_assets.history.dagster_internals.events import record_in_run, record_outside_runs
from falcon_assets.history.events.columns import DataCaptured
from falcon_assets.history.events.event_log import record_in, records_of_features
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable
from falcon_assets.history.events.process_instances import InstanceChanged, WorkDone
from falcon_assets.history.events.record import CLUSTER, Record
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.mapping.partitions import key_of
from falcon_assets.hooks import hooks
from falcon_assets.instances.runs.instance_data import publications, target_on
from falcon_assets.instances.runs.kept_versions import kept_versions
from falcon_assets.instances.runs.materializations import Recorded, events_of
from falcon_assets.instances.runs.outside_runs import earlier_snapshots, without_runs
from falcon_assets.instances.store.former_instances import FormerInstances
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.data_roots import roots_of
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.instance_record import InstanceState
from falcon_assets.planning.workloads import Workload
from falcon_assets.storage.feed_store import StoresOf
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.held_data import HeldData


@dataclass(frozen=True)
class _Made:
    """What history would have said of an output, had it been published when it was held."""

    held: OutputHeld
    available: FeedInstanceAvailable
    captured: DataCaptured
    work: WorkDone
    run_id: str

    @property
    def facts(self) -> list[Record]:
        said = {**(self.held.facts or {}), str(CLUSTER.alias): self.held.cluster}
        return [kind.read(said) for kind in records_of_features() if kind.key in said]

    @property
    def data(self) -> HeldData:
        made = self.available
        return HeldData(self.held.held_at, DataVersion(made.version, made.files or 0, made.bytes or 0))


@dataclass(frozen=True)
class HeldAcceptance:
    """Accepts an output that is held; with the last one that is wrong, all of the instance are published."""

    installation: Installation
    held: HeldOutput

    def run(self, by: str, reason: str, *, dry_run: bool) -> list[HeldOutput]:
        """Returns the outputs that have yet to be accepted; empty: all are published. Repeated, it completes the first.

        Raises:
            UsageError: this one is not wrong.
            UnknownEntityError: the process is not declared there any more.
            StorageError: a run is writing the instance, what is held is gone, was changed or is outdated, or a store
                refuses.
        """
        held, ledger = self.held, self.installation.ledger
        with without_runs(ledger, self._workload, held.nominal, "accept it"):
            with ledger.engine.connect() as connection:
                present = held_output(connection, (held.cluster, held.feed, held.instance))
                every = held_with(connection, held)
            if present is None or present.event_id != held.event_id:
                raise StorageError(f"{held} was computed again meanwhile: falcon quality show says what was found")
            rest = [one for one in every if one.is_refused and one.event_id != held.event_id]
            if not held.failed:
                accept = [f"falcon quality accept {one} --cluster {one.cluster} --reason REASON" for one in rest]
                raise UsageError(f"{held} passed its checks; what is held with it did not: {'; '.join(accept)}")
            self._require_current(every)
            if not dry_run:
                if held.is_refused:
                    self._record(HeldAccepted(*_key(held), by, self.installation.settings.now(), reason))
                if not rest:
                    self._publish(every)
            return rest

    def _require_current(self, every: Sequence[HeldOutput]) -> None:
        workload, facts = self._workload, [fact for one in every for fact in self._made(one).facts]
        with self.installation.ledger.engine.connect() as connection:
            for fact in facts:
                for why in hooks().outdated_fact(connection=connection, workload=workload, fact=fact):
                    at = format_instant(self.held.nominal)
                    rerun = (
                        f"falcon instance rerun {shlex.quote(workload.name)} --start {at} --cluster {workload.cluster}"
                    )
                    raise StorageError(f"{self.held}: {why}: compute it again: {rerun}")

    @property
    def _workload(self) -> Workload:
        held = self.held
        if found := self.installation.entities.workload(held.process, held.cluster):
            return found
        raise UnknownEntityError(f"process {held.process!r} is not on cluster {held.cluster!r} any more")

    def _record(self, accepted: HeldAccepted) -> None:
        installation = self.installation
        feed = installation.entities.feed(accepted.feed)
        event = QualityChecks(installation.entities, installation.settings).held_accepted(feed, accepted)
        installation.ledger.instance.report_runless_asset_event(event)
        installation.ledger.catch_up()

    def _publish(self, every: Sequence[HeldOutput]) -> None:
        installation, workload = self.installation, self._workload
        settings, entities, ledger = installation.settings, installation.entities, installation.ledger
        nominal, cluster, now = self.held.nominal, entities.cluster(self.held.cluster), settings.now()
        stores = StoresOf(cluster, settings.home, settings.environ, roots_of(settings))
        made = {str(one): self._made(one) for one in every}
        outputs, accepted, former = {}, {}, FormerInstances(ledger)
        with ledger.engine.connect() as connection:
            for one in every:
                feed, present = entities.feed(one.feed), held_output(connection, _key(one))
                path = InstancePaths(feed, cluster).data(one.instance)
                former.require_apart(stores(feed), feed, one.instance, path)
                outputs[str(one)] = (stores(feed), target_on(cluster, feed, one.instance, path))
                accepted[str(one)] = present or one
        published = list[Recorded]()
        with ExitStack() as entered:
            key = f"{workload.name} at {format_instant(nominal)}"
            found = publications(entered, key, outputs, held={name: one.data for name, one in made.items()})
            for one in every:
                version = found[str(one)].commit(str(one))
                published.append(self._published(accepted[str(one)], made[str(one)], version, stores, now))
            self._succeed(workload, published, made[str(self.held)], now)

    def _made(self, one: HeldOutput) -> _Made:
        """Raises StorageError where the event is gone."""
        asked = dg.AssetRecordsFilter(names.asset_key(one.cluster, one.feed), storage_ids=[one.event_id])
        records = self.installation.ledger.instance.fetch_observations(asked, limit=1).records
        event = records[0].asset_observation if records else None
        if event is None:
            raise StorageError(f"{one}: Dagster's log does not have what it was made from any more: compute it again")
        return _Made(
            record_in(event, OutputHeld),
            record_in(event, FeedInstanceAvailable),
            record_in(event, DataCaptured),
            record_in(event, WorkDone),
            records[0].run_id,
        )

    def _published(
        self, one: HeldOutput, made: _Made, version: DataVersion, stores: StoresOf, now: datetime
    ) -> Recorded:
        installation = self.installation
        feed = installation.entities.feed(one.feed)
        available = replace(
            made.available,
            version=version.version,
            seen_at=now,
            bytes=version.bytes,
            files=version.files,
            kept_versions=kept_versions(stores(feed), feed, one.instance),
        )
        if not made.held.suite:
            return available, None
        held, suite = made.held, made.held.suite
        verdict = verdict_of(held.checks)
        measured = (held.checked_records, held.checks, held.profile)
        found = InstanceChecked(*_key(one), verdict, version.version, now, suite, *measured)
        if one.accepted_by is not None:
            reason = one.accepted_reason or ""
            found = replace(found, overruled_by=one.accepted_by, overruled_at=one.accepted_at, overruled_reason=reason)
        return available, CheckedOutput(QualityChecks(installation.entities, installation.settings), feed, found)

    def _succeed(self, workload: Workload, published: Sequence[Recorded], made: _Made, now: datetime) -> None:
        ledger, nominal, of = self.installation.ledger, self.held.nominal, made.available
        about = (workload.name, workload.cluster, nominal, InstanceState.SUCCEEDED, now)
        succeeded = InstanceChanged(*about, inputs=of.inputs, late=of.late, definition=of.definition)
        partition = key_of(workload.partitions.timeline, workload.partitions.partition_of(nominal))
        earlier = earlier_snapshots(ledger, workload, nominal)
        run = ledger.instance.get_run_by_id(made.run_id)  # which computed it
        record = record_in_run(ledger.instance, run, workload.op_name) if run else record_outside_runs(ledger.instance)
        work, facts = (made.captured, made.work), made.facts
        for event in events_of(published, succeeded, partition, work, earlier, facts):
            if isinstance(event, dg.AssetCheckEvaluation):
                ledger.instance.report_runless_asset_event(event)
            else:
                record([event])
        ledger.catch_up()


def _key(held: HeldOutput) -> tuple[str, str, datetime]:
    return held.cluster, held.feed, held.instance
