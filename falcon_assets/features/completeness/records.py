"""Records of completeness in Dagster's log: reports of parts, and the share with which an instance was taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator

from falcon_assets.history.events import record as keys
from falcon_assets.history.events.event_log import Logged
from falcon_assets.history.events.instance_event import InstanceEvent
from falcon_assets.history.events.record import Record, Size, Text, Time
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.instant import Instant

Name = Annotated[Text, BeforeValidator(lambda value: str(value) if type(value) is int else value)]


@dataclass(frozen=True)
class ReportedPart:
    """Records of a part of an instance; what is None is not said, and stays as it was reported before.

    Attributes:
        source: The program or machine that sends; empty: there is only one.
        part: Its name among those of the source; empty: the source as a whole.
        records: The number of records that came.
        expected: The number of records that were sent.
        minimum: The least value in it, such as of a time or an offset; as a text, as the next two.
        offsets: The first and the last offset, ``FROM..TO``.
    """

    source: Name = ""
    part: Name = ""
    records: Size = None
    expected: Size = None
    minimum: Name | None = None
    maximum: Name | None = None
    offsets: Name | None = None


@dataclass(frozen=True)
class PartsReported(Record):
    """Parts of an instance were reported: an observation on its partition, from the package or anybody else."""

    key = "parts"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    partition: Annotated[Text, keys.PARTITION]
    parts: tuple[ReportedPart, ...]
    at: Annotated[Time, keys.AT]
    by: Text | None = None

    def metadata(self) -> dict[str, Any]:
        """Leaves out what is not said."""
        said = super().metadata()
        parts = [{key: value for key, value in one.items() if value is not None} for one in said[self.key]]
        return said | {self.key: parts}


@dataclass(frozen=True)
class CompletenessRecorded(Record):
    """The share with which an instance was taken, beside its version.

    Attributes:
        completeness: Percent, rounded down; None: not known.
        taken_incomplete: Whether that was less than its feed asks for, as it was waited for long enough.
        records_counted: Whether its files were counted, in the listing of that signature; else records were reported.
    """

    key = "completeness_at_least"

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    instance: Annotated[Instant, keys.INSTANCE]
    at: Annotated[Time, keys.AT]
    completeness_at_least: Text
    completeness: float | None = None
    records_expected: Size = None
    records: Size = None
    taken_incomplete: bool = False
    records_counted: bool = False
    signature: Text | None = None


@dataclass(frozen=True)
class WatermarkReached(Record):
    """How far a feed is complete, beside what has landed: the nominal time before which every instance is there."""

    key = "watermark"

    watermark: Instant

    def metadata(self) -> dict[str, Any]:
        import dagster as dg  # noqa: PLC0415 - takes a while, and the CLI reads records without it

        return {self.key: dg.MetadataValue.timestamp(self.watermark)}


def share_reached(facts: Sequence[Logged]) -> Iterator[InstanceEvent]:
    """Yields an event for each version that was not taken incomplete."""
    for event_id, one in ((logged.event_id, logged.fact) for logged in facts):
        if isinstance(one, CompletenessRecorded) and not one.taken_incomplete:
            what = (EventKind.SHARE_REACHED, "feed", one.feed, one.cluster, one.instance, one.at, str(event_id))
            share = {"percent": one.completeness, "records_expected": one.records_expected, "records": one.records}
            yield InstanceEvent(*what, event_id=event_id, run={"id": None, **share})
