"""Versions of feed instances that an instance read, and late changes among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from falcon_assets.history.events.record import Text
from falcon_assets.model.instant import Instant, format_instant, parse_instant
from falcon_assets.planning.instance_record import LateChange


@dataclass(frozen=True)
class Consumption:
    """An input instance that was read.

    Attributes:
        version: The version just before reading; None: the instance was missing, and the input is optional.
        cluster: Where it was read; None: the cluster of the process.
    """

    feed: Text
    instance: Instant
    version: Text | None
    cluster: Text | None = None
    path: Text | None = None


def _with_feeds(value: Any) -> Any:
    # The first events did not say the feed.
    if not isinstance(value, Mapping):
        return value
    return {
        name: [one for one in read if not isinstance(one, Mapping) or "feed" in one] if isinstance(read, list) else read
        for name, read in value.items()
    }


Inputs = Annotated[Mapping[Text, tuple[Consumption, ...]], BeforeValidator(_with_feeds)]
"""By the name of the input, oldest first."""


def changes_as_json(changes: Iterable[LateChange]) -> list[dict[str, str | None]]:
    return [
        {
            "input": one.input,
            "feed": one.feed,
            "instance": format_instant(one.instance),
            "from": one.before,
            "to": one.after,
        }
        for one in changes
    ]


def changes_of_json(changes: Iterable[Mapping[str, Any]]) -> tuple[LateChange, ...]:
    return tuple(
        LateChange(one["input"], one["feed"], parse_instant(one["instance"]), one["from"], one["to"]) for one in changes
    )


def _changes(value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError("no list of changes")
    try:
        return changes_of_json(value)
    except (KeyError, TypeError) as error:
        raise ValueError("no list of changes") from error


Changes = Annotated[tuple[LateChange, ...], BeforeValidator(_changes), PlainSerializer(changes_as_json)]
