"""Inputs whose versions are used once each (``newer_than: last_run``): whether an unused one is there.

Decided for instances that coordinators start; runs by hand and reruns read the version that is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from falcon_assets.instances.rules.readiness import MissingInput
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.retries import opens_at
from falcon_assets.planning.workloads import Workload

_SHOWN = 12


@dataclass(frozen=True)
class LastUse:
    """Last use of an input's versions, by instance ``nominal``, which succeeded at ``used`` (None: not known)."""

    version: str
    nominal: datetime
    used: datetime | None
    present: str
    seen: datetime

    @property
    def is_present(self) -> bool:
        return self.version == self.present

    def __str__(self) -> str:
        used = f" at {format_instant(self.used)}" if self.used else ""
        there = "still there" if self.is_present else f"now version {self.present[:_SHOWN]} is there"
        by = f"used by {format_instant(self.nominal)}{used}"
        return f"version {self.version[:_SHOWN]} ({by}; {there}, seen at {format_instant(self.seen)})"


@dataclass(frozen=True)
class NewerVersions:
    workload: Workload
    last_used: Mapping[str, LastUse]
    records: Mapping[datetime, InstanceRecord]

    @classmethod
    def of(
        cls, workload: Workload, last_used: Mapping[str, LastUse], records: Mapping[datetime, InstanceRecord]
    ) -> NewerVersions | None:
        """None where each instance may use any version."""
        return cls(workload, last_used, records) if any(one.newer_than for one in workload.inputs) else None

    def missing(self, nominal: datetime) -> list[MissingInput]:
        """For instances that were not requested: the version belongs to another instance, or was used."""
        if self._user is not None and self._user != nominal:
            return self.left_to(self._user)
        return self.used

    @cached_property
    def used(self) -> list[MissingInput]:
        return [
            MissingInput(one.name, one.feed, f"newer than {used}")
            for one in self.workload.inputs
            if one.newer_than and (used := self.last_used.get(one.name)) and used.is_present
        ]

    def left_to(self, user: datetime) -> list[MissingInput]:
        said = f"newer than the version that {format_instant(user)} is to use"
        return [MissingInput(one.name, one.feed, said) for one in self.workload.inputs if one.newer_than]

    @cached_property
    def _user(self) -> datetime | None:
        """The instance that has the present version: in a run; else the oldest that failed and is retried."""
        in_flight = (nominal for nominal, one in self.records.items() if one.in_flight)
        failed = (nominal for nominal, one in self.records.items() if self._is_tried_again(one))
        return min(in_flight, default=None) or min(failed, default=None)

    def _is_tried_again(self, record: InstanceRecord) -> bool:
        return record.state is InstanceState.FAILED and opens_at(record, self.workload.retry) is not None
