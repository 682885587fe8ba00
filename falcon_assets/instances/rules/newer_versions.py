"""Inputs of which each version is used once (``newer_than: last_run``): whether there is one that was not used.

It is decided for instances that coordinators start. What people run, or run again, reads the version that is there.
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
    """The version of an input that was used last, and what is there.

    Attributes:
        version: That version.
        nominal: The instance that used it.
        used: When that succeeded; None: not known.
        present: The version that is there.
        seen: When that was seen.
    """

    version: str
    nominal: datetime
    used: datetime | None
    present: str
    seen: datetime

    @property
    def is_present(self) -> bool:
        """Whether nothing newer is there."""
        return self.version == self.present

    def __str__(self) -> str:
        """``version 8d3f01ab (used by 2013-01-02T05:00Z at ...; still there, seen at 2013-01-02T05:10Z)``."""
        used = f" at {format_instant(self.used)}" if self.used else ""
        there = "still there" if self.is_present else f"now version {self.present[:_SHOWN]} is there"
        by = f"used by {format_instant(self.nominal)}{used}"
        return f"version {self.version[:_SHOWN]} ({by}; {there}, seen at {format_instant(self.seen)})"


@dataclass(frozen=True)
class NewerVersions:
    """Tells which instances of a workload lack a version that was not used.

    Attributes:
        workload: The workload.
        last_used: By the name of the input, where any instance succeeded.
        records: What is known of instances that are not over.
    """

    workload: Workload
    last_used: Mapping[str, LastUse]
    records: Mapping[datetime, InstanceRecord]

    @classmethod
    def of(
        cls, workload: Workload, last_used: Mapping[str, LastUse], records: Mapping[datetime, InstanceRecord]
    ) -> NewerVersions | None:
        """Of that workload; None where each of its instances may use any version."""
        return cls(workload, last_used, records) if any(one.newer_than for one in workload.inputs) else None

    def missing(self, nominal: datetime) -> list[MissingInput]:
        """What an instance that nobody asked for lacks: the version that is there is another's, or was used."""
        if self._user is not None and self._user != nominal:
            return self.left_to(self._user)
        return self.used

    @cached_property
    def used(self) -> list[MissingInput]:
        """What all lack whose version was used."""
        return [
            MissingInput(one.name, one.feed, f"newer than {used}")
            for one in self.workload.inputs
            if one.newer_than and (used := self.last_used.get(one.name)) and used.is_present
        ]

    def left_to(self, user: datetime) -> list[MissingInput]:
        """What all others lack while an instance is to use the version that is there."""
        said = f"newer than the version that {format_instant(user)} is to use"
        return [MissingInput(one.name, one.feed, said) for one in self.workload.inputs if one.newer_than]

    @cached_property
    def _user(self) -> datetime | None:
        """The instance that is to use what is there: in a run; else the oldest that failed and is tried again."""
        in_flight = (nominal for nominal, one in self.records.items() if one.in_flight)
        failed = (nominal for nominal, one in self.records.items() if self._is_tried_again(one))
        return min(in_flight, default=None) or min(failed, default=None)

    def _is_tried_again(self, record: InstanceRecord) -> bool:
        return record.state is InstanceState.FAILED and opens_at(record, self.workload.retry) is not None
