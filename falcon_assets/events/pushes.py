"""Partitions that somebody else reports by Dagster's own means, and the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from falcon_assets.events import record as keys
from falcon_assets.events.record import Record, Text, Words


@dataclass(frozen=True)
class PartitionPushed(Record):
    """Somebody else says that a partition is there: nothing is known about it until a collector has checked.

    Attributes:
        partition: What they said, the key of an instance or not; empty: nothing.
    """

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    partition: Annotated[Text, keys.PARTITION]


@dataclass(frozen=True)
class PushRefused(Record):
    """A collector has checked what was pushed, and there is no instance to record.

    Attributes:
        partition: As it was pushed.
        push_event: The latest push that this answers.
        reason: Why there is none.
    """

    key = keys.PUSHED.alias

    cluster: Annotated[Text, keys.CLUSTER]
    feed: Annotated[Text, keys.ASSET]
    partition: Annotated[Text, keys.PUSHED]
    push_event: Annotated[int, keys.PUSH_EVENT]
    reason: Annotated[Words, keys.REASON] = ""
