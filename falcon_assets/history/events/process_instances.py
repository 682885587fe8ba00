"""Records about instances of processes: their states, and late data without a rerun."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

from falcon_assets.base.texts import recorded
from falcon_assets.history.events import record as keys
from falcon_assets.history.events.inputs import Changes, Inputs
from falcon_assets.history.events.record import Data, Record, Size, Text, Time, VersionNumber, Words
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.planning.instance_record import InstanceState

if TYPE_CHECKING:
    import dagster as dg


@dataclass(frozen=True)
class InstanceChanged(Record):
    """A process instance changed its state.

    Attributes:
        inputs: The versions it read, where it succeeded.
        reason_data: The reason for programs: its kind and subject.
        definition: The version of the entity definition it runs with; None: it does not run, or is unknown.
        before: The state in which a command found it; None: the change is not by a command.
        executor: The executor that it runs on; None: it does not run, or its cluster has none to choose from.
    """

    key = "state"

    process: Annotated[Text, keys.PROCESS]
    cluster: Annotated[Text, keys.CLUSTER]
    nominal: Annotated[Instant, keys.NOMINAL]
    state: InstanceState
    at: Annotated[Time, keys.AT]
    reason: Annotated[Words, keys.REASON] = ""
    inputs: Annotated[Inputs | None, keys.INPUTS] = None
    late: Annotated[Changes, keys.LATE] = ()
    reason_data: Annotated[Data, keys.REASON_DATA] = None
    definition: VersionNumber = None
    before: Annotated[InstanceState | None, keys.STATE_BEFORE] = None
    bytes_copied: Size = None
    executor: Text | None = None

    def metadata(self) -> dict[str, Any]:
        said = super().metadata()
        return {key: said[key] for key in (self.key, keys.REASON.alias) if key in said} | said

    def event(self, key: dg.AssetKey, partition: str, causes: str | None = None) -> dg.AssetObservation:
        """Returns an observation on the first asset of the process; ``causes`` is Markdown for the UI, not recorded."""
        import dagster as dg  # noqa: PLC0415 - takes seconds, and commands that only read need none of it

        what = f"{self.process} {format_instant(self.nominal)}: {self.state.value}"
        said = f"{what}: {recorded(self.reason)}" if self.reason else what
        shown = {"causes": dg.MetadataValue.md(causes)} if causes else {}
        metadata = keys.for_people(self.metadata() | shown)
        return dg.AssetObservation(key, partition=partition, description=said, metadata=metadata)


@dataclass(frozen=True)
class CameTooLate(Record):
    """The version ``too_late`` of an input arrived after its cut-off: the process instance does not rerun."""

    key = "too_late"

    process: Annotated[Text, keys.PROCESS]
    cluster: Annotated[Text, keys.CLUSTER]
    nominal: Annotated[Instant, keys.NOMINAL]
    feed: Text
    instance: Annotated[Instant, keys.INSTANCE]
    too_late: Text
    at: Annotated[Time, keys.AT]


@dataclass(frozen=True)
class RunQueued:
    """Of several runs for one attempt (empty: the next) of an instance, only the first has the instance."""

    process: str
    cluster: str
    nominals: tuple[datetime, ...]
    attempts: tuple[int, ...] = ()


class RunEnding(str, Enum):
    FAILED = "failed"
    KILLED = "killed"
    INTERRUPTED = "interrupted"
    """Its process or database ended or was asked to end: the instances did not cause it."""


@dataclass(frozen=True)
class RunEnded:
    """A run is over; ``died``: its process was killed, perhaps because of its computation."""

    ending: RunEnding
    at: datetime
    reason: str = ""
    died: bool = False


@dataclass(frozen=True)
class WorkDone(Record):
    duration_seconds: float
    spark_application_id: str | None = None


@dataclass(frozen=True)
class FilesCopied(Record):
    source: Text
    files_copied: int
    files_skipped: int
    files_failed: int
    bytes_copied: int
    verification: str
