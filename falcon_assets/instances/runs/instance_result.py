"""The result of a process instance, and what history says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.history.events.columns import DataCaptured
from falcon_assets.history.events.feed_instances import FeedInstanceAvailable, KeptVersion
from falcon_assets.history.events.inputs import Consumption
from falcon_assets.history.events.process_instances import WorkDone
from falcon_assets.history.events.record import Record
from falcon_assets.hooks import InspectedOutput
from falcon_assets.instances.runs.environment import run_environment
from falcon_assets.planning.data_usage import Usage
from falcon_assets.planning.instance_record import LateChange
from falcon_assets.planning.process_instance import OutputPlan
from falcon_assets.settings import os_user
from falcon_assets.storage.instances.data_version import DataVersion


@dataclass(frozen=True)
class PublishedOutput:
    """``place`` is an absolute path or URL; ``kept`` are older versions beside it."""

    plan: OutputPlan
    place: str
    version: DataVersion
    records: int
    kept: tuple[KeptVersion, ...] | None = None
    inspected: InspectedOutput | None = None


@dataclass(frozen=True)
class InstanceResult:
    """The result of one process instance.

    ``inputs`` are the instances of each window, oldest first. ``usage`` is what was really read and written,
    ``undeclared`` the feed instances in it without a declaration. ``late`` has the changes for which it was rerun, up
    to the versions that it read. ``facts`` are recorded with its success.
    """

    nominal: datetime
    inputs: Mapping[str, tuple[Consumption, ...]]
    outputs: tuple[PublishedOutput, ...]
    application_id: str
    seconds: float
    usage: Usage
    late: tuple[LateChange, ...] = ()
    undeclared: tuple[Consumption, ...] = ()
    facts: tuple[Record, ...] = ()

    def available(
        self, output: PublishedOutput, process: str, cluster: str, at: datetime, definition: int | None
    ) -> FeedInstanceAvailable:
        """The record of an output that is published, with all that decisions need."""
        used = self.usage
        return FeedInstanceAvailable(
            cluster,
            output.plan.feed.name,
            output.plan.instance,
            output.version.version,
            at,
            output.version.bytes,
            output.records,
            output.version.files,
            process=process,
            nominal=self.nominal,
            inputs=self.inputs,
            late=self.late,
            path=output.place,
            definition=definition,
            kept_versions=output.kept,
            made_by=os_user(),
            environment=run_environment(),
            undeclared=self.undeclared,
            places=used.recorded_places,
            writes=used.recorded_writes,
            capture=self.captured.capture,
            warnings=self.captured.capture_warnings,
            columns=used.columns.get(output.plan.name),
        )

    @property
    def captured(self) -> DataCaptured:
        return DataCaptured(self.usage.capture, tuple(self.usage.warnings))

    @property
    def work(self) -> tuple[Record, ...]:
        """The records beside that of each output."""
        return self.captured, WorkDone(round(self.seconds, 3), self.application_id)
