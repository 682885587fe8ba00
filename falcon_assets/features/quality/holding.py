"""Checks of what a process computed before it is published: where one fails, the output is held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import dagster as dg

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import HeldOutputError
from falcon_assets.features.quality import store as rows
from falcon_assets.features.quality.checks import QualityChecks
from falcon_assets.features.quality.events import InstanceChecked, OutputHeld
from falcon_assets.features.quality.verdict import InstanceVerdict
from falcon_assets.history.events.event_log import observation
from falcon_assets.history.mapping import asset_keys as names
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.hooks import StagedOutput
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import format_instant
from falcon_assets.settings import Settings


@dataclass(frozen=True)
class CheckedOutput:
    """Fulfils :class:`.InspectedOutput`."""

    checks: QualityChecks
    feed: Feed
    found: InstanceChecked

    def record(self, version: str, at: datetime) -> InstanceChecked:
        return replace(self.found, checked_version=version, at=at, checked_staged=True)

    def evaluations(self, version: str) -> Iterator[dg.AssetCheckEvaluation]:
        return self.checks.evaluations(self.feed, replace(self.found, checked_version=version))


@dataclass(frozen=True)
class OutputChecks:
    """Fulfils :class:`.OutputInspection`: checks outputs of feeds that say ``on_error: hold``."""

    store: EntityStore
    cluster: Cluster
    settings: Settings
    ledger: Ledger

    def __call__(self, process: str, nominal: datetime, staged: Sequence[StagedOutput]) -> Mapping[str, CheckedOutput]:
        checked = {one.plan.name: self._checked(one) for one in staged if one.plan.feed.holds}
        wrong = [one for one in staged if one.plan.name in checked and _is_wrong(checked[one.plan.name].found)]
        if wrong:
            rerun = f"falcon instance rerun {process} --start {format_instant(nominal)} --cluster {self.cluster.name}"
            held = [self._held(one, checked[one.plan.name].found, process) for one in wrong]
            raise HeldOutputError("\n".join([*held, f"To compute it again, or publish what is accepted: {rerun}"]))
        return checked

    def _checked(self, one: StagedOutput) -> CheckedOutput:
        from falcon_assets.features.quality.checking import InstanceChecker  # noqa: PLC0415 - it needs Spark

        feed, key = one.plan.feed, (self.cluster.name, one.plan.feed.name, one.plan.instance)
        checker = InstanceChecker(self.store, self.cluster, self.settings, self.ledger)
        found = checker.check_staged(feed, key, one.url, one.plan.path)
        failed = {check.name for check in found.checks if check.is_error}
        if failed:
            self.ledger.catch_up()
            with self.ledger.engine.connect() as connection:
                before = rows.held_output(connection, key)
            is_accepted = before is not None and before.accepted_by is not None and failed <= before.failed
            found = replace(found, accepted_when_held=is_accepted)
        return CheckedOutput(QualityChecks(self.store, self.settings), feed, found)

    def _held(self, one: StagedOutput, found: InstanceChecked, process: str) -> str:
        """Keeps it aside, records that, and returns the sentence about it."""
        place, feed, instance = one.hold(), one.plan.feed, format_instant(one.plan.instance)
        held = OutputHeld(
            *(self.cluster.name, feed.name, one.plan.instance, place, process, self.settings.now()),
            *(found.checked_records, found.checks),
        )
        failed = "; ".join(f"{check.name}: {check.said}" for check in found.checks if check.is_error)
        partition = QualityChecks(self.store, self.settings).partition_of(feed, self.cluster.name, one.plan.instance)
        said = f"{feed.name} {instance} is held, not published: {failed}"
        event = observation(names.asset_key(self.cluster.name, feed.name), partition, held, description=said)
        self.ledger.instance.report_runless_asset_event(event)
        accept = f"falcon quality accept {feed.name} {instance} --cluster {self.cluster.name} --reason REASON"
        return f"{said}. It lies at {place} until the next attempt, for some days at most. To accept it: {accept}."


def _is_wrong(found: InstanceChecked) -> bool:
    return found.verdict is InstanceVerdict.INVALID and not found.accepted_when_held
