"""Reasons for the state of an instance: as data for programs, as a sentence for people.

Here are the base and the reasons without a rule of their own. Those for which coordinators wait are in
``instances/rules/waiting.py``, those of retention in ``reasons_to_keep.py``; features have theirs in their folders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, ClassVar, dataclass_transform

from falcon_assets.model.instant import format_instant
from falcon_assets.planning.timeline import Timeline


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Reason:
    """A reason; each kind is a class, a frozen dataclass by itself, whose fields are the details.

    ``class Late(Reason, says="is late since {since}")`` declares the sentence, which is its ``str``; where details
    are optional, override that.
    """

    kind: ClassVar[str] = ""
    """Derived from the name of the class: ``inputs_missing``; stored, so a class keeps its name."""
    _says: ClassVar[str] = ""

    def __init_subclass__(cls, says: str | None = None) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        cls._says = cls._says if says is None else says
        dataclass(frozen=True)(cls)

    def __str__(self) -> str:
        return self._says.format_map({one.name: _shown(getattr(self, one.name)) for one in fields(self)})

    def as_data(self) -> dict[str, Any]:
        """``kind``, ``text`` and the fields, in types of JSON; times as ``YYYY-MM-DDTHH:MMZ``, lengths in seconds."""
        return {"kind": self.kind, "text": str(self), **_plain(self)}

    @classmethod
    def is_in(cls, data: Mapping[str, Any] | None) -> bool:
        """Whether recorded data is of a reason of this kind."""
        return data is not None and data.get("kind") == cls.kind


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_shown, value))
    return format_instant(value) if isinstance(value, datetime) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, timedelta):
        return int(value.total_seconds())
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value


@dataclass(frozen=True)
class SeenSource:
    """What was seen of an instance on a cluster of another colo, whose installation has a database of its own.

    Attributes:
        looked_at: The last complete look; None: there was none.
        begun: Whether it was there then, and not complete.
        failed_at: The last look, if it was in vain, and ``problem`` why; None: it was not.
    """

    cluster: str
    colo: str
    looked_at: datetime | None
    begun: bool
    failed_at: datetime | None
    problem: str

    def answers_since(self, instant: datetime) -> bool:
        return self.failed_at is None and self.looked_at is not None and self.looked_at > instant

    def __str__(self) -> str:
        where = f"on {self.cluster} of colo {self.colo}"
        found = "not complete" if self.begun else "not there"
        seen = f"{found} at {format_instant(self.looked_at)}" if self.looked_at else "not looked at yet"
        if self.failed_at is None:
            return f"{where}: {seen}"
        return f"{where}: {seen}; could not be looked at on {format_instant(self.failed_at)}: {self.problem}"


# Of instances without a run.


class NotScheduled(Reason, says="does not run by itself: {entity} is not scheduled"):
    entity: str


class TimePending(Reason, says="is due at {until}"):
    until: datetime


class OffTimeline(Reason, says="is kept unchanged, and is not an instance of the present definition: {why_not}"):
    """The definition lacks the instance since its frequency, start or end changed."""

    why_not: str

    @classmethod
    def of(cls, timeline: Timeline, nominal: datetime) -> OffTimeline | None:
        return None if timeline.contains(nominal) else cls(timeline.why_not(nominal))


class LaunchPending(Reason, says="is ready: its coordinator launches it at its next tick"):
    pass


class RerunRequested(Reason):
    """``by`` is empty for late data; ``waits`` None: nothing holds it back."""

    by: str
    why: str
    waits: str | None

    def __str__(self) -> str:
        asked = f"asked for by {self.by}" if self.by else "what it read has changed"
        return "is to run again: " + "; ".join(filter(None, (": ".join(filter(None, (asked, self.why))), self.waits)))


class Undecidable(Reason, says="cannot be decided on: {problem}"):
    """The workload cannot be decided on."""

    problem: str


# Of instances that ran, or that somebody stopped.


class StoreAway(Reason, says="{text}"):
    text: str


class ExecutorAway(Reason, says="{text}"):
    """The executor that it was given did not answer when its run began."""

    text: str


class BeingWritten(Reason, says="{text}"):
    text: str


class HeldBack(Reason, says="{text}"):
    """Its output is kept aside, unpublished; it is not tried again by itself."""

    text: str


class NewerIsWritten(
    Reason, says="snapshot {feed} has its instance {newest} already, which an earlier one does not replace"
):
    feed: str
    newest: datetime


class NewerIsDelivered(
    Reason, says="{target} has instance {newest} already, which an earlier one does not replace (load: replace)"
):
    """``target`` is a table of a datasource."""

    target: str
    newest: datetime


class Commanded(Reason):
    by: str
    why: str

    def __str__(self) -> str:
        return f"{self.kind} by {self.by}" + (f": {self.why}" if self.why else "")


class Killed(Commanded):
    pass


class Suspended(Commanded):
    pass


class Resumed(Commanded):
    pass


# Of instances of feeds that are not there.


class RemovedByRetention(Reason):
    action: str
    why: str
    archive: str | None

    def __str__(self) -> str:
        done = f"was archived to {self.archive}" if self.archive else "was deleted by retention"
        return f"{done}: {self.why}" if self.why else done


class NotLanded(Reason, says="has not landed"):
    pass


class NotComplete(Reason):
    flag: str | None

    def __str__(self) -> str:
        return f"was there without its availability flag {self.flag}" if self.flag else "was there incomplete"


class RecordsMissing(Reason):
    """Fewer records came than its feed asks for.

    ``share`` and ``at_least`` are percent; ``expected`` and ``records`` None: not known; ``missing`` names parts of
    which fewer came than were sent; ``since``: the last report or count.
    """

    expected: int | None
    records: int | None
    share: str | None
    at_least: str
    missing: tuple[str, ...]
    since: datetime | None

    def __str__(self) -> str:
        since = f" since {format_instant(self.since)}" if self.since else ""
        if self.expected is None:
            return f"is not known to be complete: nobody has said how many records were sent{since}"
        if self.records is None:
            return f"has none of the {self.expected} records that were sent{since}"
        several = len(self.missing) > 1 or any(one.startswith("parts") for one in self.missing)
        missing = f", {', '.join(self.missing)} {'are' if several else 'is'} missing" if self.missing else ""
        return f"has {self.share} % of {self.at_least} %{missing}{since}"


class MembersMissing(Reason):
    """Of a roll-up: ``first`` names missing members, ``more`` is the number of others, ``members`` that of all."""

    first: tuple[str, ...]
    more: int
    members: int

    def __str__(self) -> str:
        if not self.members:
            return "has no members: none of its feeds has an instance in its time"
        if not self.first:
            return "has all its members, and is recorded in a moment"
        others = f" and {self.more} more" if self.more else ""
        return f"lacks {len(self.first) + self.more} of its {self.members} members: {', '.join(self.first)}{others}"


class TakenBack(Reason, says="was there, and was taken back"):
    """An instance that was recorded, but that a reader found missing."""


class NotRefreshedSince(Reason, says="needs a refresh at or after {needed}"):
    needed: datetime


class NotWritten(Reason):
    process: str
    instance: datetime | None
    state: str | None

    def __str__(self) -> str:
        if self.instance is None:
            return f"is written by no instance of {self.process}"
        return f"is not written: {self.process} {format_instant(self.instance)} is {self.state}"


class NotCopied(Reason, says="is not copied: {replication} is {state}"):
    replication: str
    state: str
