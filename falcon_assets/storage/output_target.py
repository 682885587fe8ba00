"""Where one output of a process instance goes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from falcon_assets.model.feed import Feed

_INSTANCE = "%Y-%m-%dT%H-%MZ"
"""Without a colon: Hadoop takes no path that has one."""


@dataclass(frozen=True)
class KeptAs:
    """Of which instance of which feed it is a version that is kept."""

    feed: str
    """The name of the feed."""
    instance: datetime
    """The nominal time."""

    @property
    def name(self) -> str:
        """Names them in paths: ``FEED/INSTANCE``."""
        return f"{self.feed}/{self.instance.strftime(_INSTANCE)}"

    @classmethod
    def named(cls, name: str) -> KeptAs | None:
        """That of the given name; None: it is the name of none."""
        feed, _, instance = name.rpartition("/")
        try:
            return cls(feed, datetime.strptime(instance, _INSTANCE).replace(tzinfo=UTC))
        except ValueError:
            return None


@dataclass(frozen=True)
class OutputTarget:
    """The final place of one output, and what makes it complete."""

    path: str
    """The final path, below the root of the store."""
    flag: str | None
    """Name of the availability flag to set; None: the presence of the path says "complete"."""
    permission: str | None = None
    """Octal mode of the feed's ``acl``; None or ``*`` leaves it alone."""
    format: str = ""
    """What the files of an output in a table are written as."""
    makes_table: bool = False
    """Whether a table that is not there is made."""
    merges_schema: bool = False
    """Whether columns that a table does not have are added to it."""
    keeps: KeptAs | None = None
    """What it replaces is kept as a version of this; None: it goes."""


def output_target(feed: Feed, instance: datetime, path: str) -> OutputTarget:
    """Where an instance of ``feed`` goes, as the feed declares it."""
    permission = feed.acl.permission if feed.acl else None
    keeps = KeptAs(feed.name, instance) if feed.versions else None
    return OutputTarget(path, feed.availability_flag, permission, keeps=keeps)
