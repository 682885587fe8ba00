"""Checks of what a process computed before it is published: where one fails, the output is held."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import HeldOutputError
from falcon_assets.features.quality.checks import QualityChecks
from falcon_assets.features.quality.events import InstanceChecked, OutputHeld
from falcon_assets.features.quality.verdict import InstanceVerdict
from falcon_assets.history.dagster_internals.events import Record as RecordEvents
from falcon_assets.history.events.event_log import observation
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.hooks import KeptAside, StagedOutput
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.settings import Settings
from falcon_assets.storage.staging import HELD_SECONDS


@dataclass(frozen=True)
class CheckedOutput:
    """Fulfils :class:`.InspectedOutput`."""

    checks: QualityChecks
    feed: Feed
    found: InstanceChecked

    def record(self, version: str, at: datetime) -> InstanceChecked:
        return replace(self.found, checked_version=version, at=at, checked_staged=True)

    def evaluations(self, version: str) -> Iterator[dg.AssetCheckEvaluation]:
        yield from self.checks.evaluations(self.feed, replace(self.found, checked_version=version))


@dataclass(frozen=True)
class OutputChecks:
    """Fulfils :class:`.OutputInspection`: checks outputs of feeds that say ``on_error: hold``."""

    store: EntityStore
    cluster: Cluster
    settings: Settings
    ledger: Ledger
    record: RecordEvents

    def __call__(self, process: str, nominal: datetime, staged: Sequence[StagedOutput]) -> Mapping[str, CheckedOutput]:
        from falcon_assets.features.quality.checking import InstanceChecker  # noqa: PLC0415 - it needs Spark

        checker = InstanceChecker(self.store, self.cluster, self.settings, self.ledger)
        checks = QualityChecks(self.store, self.settings)
        checked = {
            one.plan.name: CheckedOutput(checks, one.plan.feed, checker.check_staged(one))
            for one in staged
            if one.plan.feed.holds
        }
        if all(one.found.verdict is not InstanceVerdict.INVALID for one in checked.values()):
            return checked
        at = self.settings.now()
        held = [(one, one.hold(at)) for one in staged]  # all, as they are published together
        for one, kept in held:
            self._record(one, kept, checked.get(one.plan.name), process, nominal, at)
        raise HeldOutputError("\n".join(self._said(process, nominal, held, checked)))

    def _record(
        self,
        one: StagedOutput,
        kept: KeptAside,
        checked: CheckedOutput | None,
        process: str,
        nominal: datetime,
        at: datetime,
    ) -> None:
        feed, instance, found = one.plan.feed, one.plan.instance, checked.found if checked else None
        key = (self.cluster.name, feed.name, instance)
        facts = {name: value for one in kept.facts for name, value in one.metadata().items()}
        held = OutputHeld(*key, kept.place, process, nominal, at, facts=facts or None)
        if found is not None:
            held = replace(
                held,
                suite=found.suite,
                checked_records=found.checked_records,
                checks=found.checks,
                profile=found.profile,
            )
        partition = QualityChecks(self.store, self.settings).partition_of(feed, self.cluster.name, instance)
        said = f"{feed.name} {format_instant(instance)} is held, not published"
        event = observation(names.asset_key(*key[:2]), partition, held, *kept.records, description=said)
        self.record([event])

    def _said(
        self,
        process: str,
        nominal: datetime,
        held: Sequence[tuple[StagedOutput, KeptAside]],
        checked: Mapping[str, CheckedOutput],
    ) -> Iterator[str]:
        on, accept = f"--cluster {self.cluster.name}", "falcon quality accept"
        for one, kept in held:
            about = f"{one.plan.feed.name} {format_instant(one.plan.instance)}"
            checks = checked[one.plan.name].found.checks if one.plan.name in checked else ()
            failed = [f"{check.name}: {check.said}" for check in checks if check.is_error]
            said = f"not published: {'; '.join(failed)}" if failed else "not published, as it is published with that"
            yield f"{about} is held, {said}. It lies at {kept.place}."
            if failed:
                yield f"To publish it as it is: {accept} {about} {on} --reason REASON"
        days = f"{HELD_SECONDS / 86400:.0f} days"
        rerun = f"falcon instance rerun {shlex.quote(process)} --start {format_instant(nominal)} {on}"
        yield f"It is kept for {days}, or until it is computed again: {rerun}"
