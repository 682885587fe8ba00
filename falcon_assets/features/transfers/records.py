"""What is recorded of imports and exports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from falcon_assets.history.events import record as keys
from falcon_assets.history.events.record import Record, Size, Text, Time
from falcon_assets.model.instant import Instant


@dataclass(frozen=True)
class Transferred(Record):
    """What an instance took from a datasource; recorded with its success.

    Attributes:
        process: Name of the import.
        dataset: The table, query, path or topic.
        low_watermark: From where changes were read, as the type of the datasource writes it.
        high_watermark: Up to where, from where the next instance goes on.
        newest: The greatest value of the column of an incremental import among what was read.
        behind: What the next instance reads although it was there already, and why.
        source_columns: Name and type of the columns that were read, the type as in the feed.
    """

    key = "transferred"

    process: Annotated[Text, keys.PROCESS]
    cluster: Annotated[Text, keys.CLUSTER]
    nominal: Annotated[Instant, keys.NOMINAL]
    at: Annotated[Time, keys.AT]
    transferred: Literal["import"]
    datasource: Text
    dataset: Text
    rows: Size = None
    low_watermark: Text | None = None
    high_watermark: Text | None = None
    newest: Text | None = None
    behind: Text | None = None
    source_columns: tuple[tuple[Text, Text], ...] = ()


@dataclass(frozen=True)
class InstanceDelivered(Record):
    """A delivery of an instance of a feed to a datasource; recorded with the success of its export.

    Attributes:
        process: Name of the export.
        delivered_feed: The feed; ``sent_version`` is the data version that was sent.
        dataset: The table, resource or topic.
        execution: Identifies the delivery at the target.
    """

    key = "execution"

    process: Annotated[Text, keys.PROCESS]
    cluster: Annotated[Text, keys.CLUSTER]
    nominal: Annotated[Instant, keys.NOMINAL]
    at: Annotated[Time, keys.AT]
    delivered_feed: Text
    sent_version: Text
    datasource: Text
    dataset: Text
    execution: Text
    rows: Annotated[int, Field(ge=0)]
