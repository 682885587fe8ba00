"""Instances of processes: the states that they come to, and late data that nothing is run again for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from falcon_assets.events import record as keys
from falcon_assets.events.inputs import Changes, Inputs
from falcon_assets.events.record import Data, Record, Size, Text, Time, VersionNumber, Words
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.planning.instances.instance_record import InstanceState
from falcon_assets.texts import recorded

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
