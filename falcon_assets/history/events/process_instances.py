"""Instances of processes: the states that they come to, and late data that nothing is run again for."""

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
    """A process instance came to a state.

    Attributes:
        at: When, on the falcon clock.
        reason: Why, in plain words.
        inputs: What it read, where it succeeded.
        late: The changed inputs for which it was run again.
        reason_data: The reason for programs: its kind and what it is about.
        definition: The version of the definition that it runs with; None: it does not run, or nobody knows.
        before: The state in which a command found it; None: no command says it.
        bytes_copied: Of a replication, the size of what it copied: see :class:`.FilesCopied`, which writes it.
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

    def metadata(self) -> dict[str, Any]:
        """See :class:`Record`; the UI shows it in this order."""
        said = super().metadata()
        return {key: said[key] for key in (self.key, keys.REASON.alias) if key in said} | said

    def event(self, key: dg.AssetKey, partition: str, causes: str | None = None) -> dg.AssetObservation:
        """An observation of its own, on a partition of the first asset of the process.

        Args:
            key: Of that asset.
            partition: The partition.
            causes: For people, as Markdown; the UI shows it, and it is not part of the record.
        """
        import dagster as dg  # noqa: PLC0415 - takes seconds, and commands that only read need none of it

        what = f"{self.process} {format_instant(self.nominal)}: {self.state.value}"
        said = f"{what}: {recorded(self.reason)}" if self.reason else what
        shown = {"causes": dg.MetadataValue.md(causes)} if causes else {}
        told = keys.for_people(self.metadata() | shown)
        return dg.AssetObservation(key, partition=partition, description=said, metadata=told)


@dataclass(frozen=True)
class CameTooLate(Record):
    """A version of a feed instance came after its cut-off, and a process instance that had read it does not rerun.

    Attributes:
        feed: The input feed.
        instance: Its instance.
        too_late: The version.
        at: When that was said, on the falcon clock.
    """

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
    """A run that a coordinator made for some instances of a process is there.

    ``attempts`` says for each of the instances which attempt the coordinator meant the run to be; none: the next.
    Of several runs for one attempt the first one has the instance, and the others are not for it.
    """

    process: str
    cluster: str
    nominals: tuple[datetime, ...]
    attempts: tuple[int, ...] = ()


class RunEnding(str, Enum):
    """How a run ended, for the instances that it left unfinished."""

    FAILED = "failed"
    KILLED = "killed"
    INTERRUPTED = "interrupted"
    """Who ran it was asked to end, or ended, or its database did: nothing is wrong with its instances."""


@dataclass(frozen=True)
class RunEnded:
    """A run is over; instances that it has not finished will not be finished by it.

    ``died``: its process was killed, by whomever; what it computes may be the reason.
    """

    ending: RunEnding
    at: datetime
    reason: str = ""
    died: bool = False


@dataclass(frozen=True)
class WorkDone(Record):
    """What it took to make an instance.

    Attributes:
        duration_seconds: From planning the instance to the last published output.
        spark_application_id: Of the Spark application that computed it.
    """

    duration_seconds: float
    spark_application_id: str | None = None


@dataclass(frozen=True)
class FilesCopied(Record):
    """What a replication copied of an instance.

    Attributes:
        source: The cluster that was read.
        files_copied: Files that were copied.
        files_skipped: Files that were there already.
        files_failed: Files that could not be copied.
        bytes_copied: Size of what was copied.
        verification: How that was verified.
    """

    source: Text
    files_copied: int
    files_skipped: int
    files_failed: int
    bytes_copied: int
    verification: str
