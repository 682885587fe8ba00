"""The place where one output of a process instance is published."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from falcon_assets.model.feed import Feed

_INSTANCE = "%Y-%m-%dT%H-%MZ"
"""Without a colon: Hadoop takes no path that has one."""


@dataclass(frozen=True)
class KeptAs:
    feed: str
    instance: datetime

    @property
    def name(self) -> str:
        return f"{self.feed}/{self.instance.strftime(_INSTANCE)}"

    @classmethod
    def named(cls, name: str) -> KeptAs | None:
        feed, _, instance = name.rpartition("/")
        try:
            return cls(feed, datetime.strptime(instance, _INSTANCE).replace(tzinfo=UTC))
        except ValueError:
            return None


@dataclass(frozen=True)
class OutputTarget:
    path: str
    flag: str | None
    """Name of the availability flag to set; None: the existence of the path marks it as complete."""
    permission: str | None = None
    """Octal mode of the feed's ``acl``; None or ``*`` leaves it alone."""
    format: str = ""
    makes_table: bool = False
    merges_schema: bool = False
    keeps: KeptAs | None = None
    """The output that this one replaces is kept as a version of this instance; None: it is deleted."""
    holds: bool = False
    """An output of an earlier attempt may have been kept aside, and goes with this one."""
    replaces: str | None = None
    """The signature of what it may replace: where something else is by then, that stays (StorageError)."""


def output_target(feed: Feed, instance: datetime, path: str) -> OutputTarget:
    permission = feed.acl.permission if feed.acl else None
    keeps = KeptAs(feed.name, instance) if feed.versions else None
    return OutputTarget(path, feed.availability_flag, permission, keeps=keeps)
