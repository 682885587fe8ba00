"""Passes over the old instances of a feed: whatever landed late in the past is found within a bounded time.

A pass goes through all folders that can have instances, in the order of their paths, a few in every tick. What a tick
leaves is gone on with in the next one, by any process. All times here are real ones: a simulated clock changes nothing
about how fast folders can be listed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

REST_SHORT, REST_LONG = timedelta(minutes=1), timedelta(minutes=10)
"""From the beginning of a pass to that of the next one, at least: where folders tell when they changed, and where every
one of them has to be listed."""
ALL_EVERY = timedelta(days=1)
"""How often unchanged folders are listed as well: times of folders can be set back, and clocks be wrong."""
SLACK = timedelta(minutes=5)
"""By how much the clock of a file server may be slow, the granularity of its times included."""


@dataclass(frozen=True)
class FolderPass:
    """How far the passes over a feed on a cluster are.

    Attributes:
        template: The template of its paths; for another template everything is listed anew.
        began: When the present pass began; None: none is under way.
        folder: The last folder that the present pass has listed; empty: none.
        lists_all: Whether the present pass lists unchanged folders too.
        before: When the last complete pass began; None: there was none.
        all_before: When the last complete pass that listed all folders began; None: there was none.
    """

    template: str
    began: datetime | None = None
    folder: str = ""
    lists_all: bool = True
    before: datetime | None = None
    all_before: datetime | None = None

    def next(self, now: datetime, *, tells_changes: bool) -> FolderPass | None:
        """The pass to go on with: the present one, or a new one where it is time for it; None: not now.

        Args:
            now: The time.
            tells_changes: Whether the store tells when a folder changed.
        """
        if self.began is not None and self.began <= now:
            return self
        if not _is_over(self.before, REST_SHORT if tells_changes else REST_LONG, now):
            return None
        is_set_back = self.before is not None and self.before > now  # then times tell nothing
        lists_all = not tells_changes or is_set_back or _is_over(self.all_before, ALL_EVERY, now)
        return replace(self, began=now, folder="", lists_all=lists_all)

    def must_list(self, changed: datetime | None) -> bool:
        """Whether the present pass has to list a folder that changed then; None: nobody knows when."""
        return self.lists_all or changed is None or self.before is None or changed >= self.before - SLACK

    def through(self, folder: str) -> FolderPass:
        """After ``folder`` was listed, which comes after all that were."""
        return replace(self, folder=folder)

    def ended(self, *, is_empty: bool = False) -> FolderPass:
        """After the last folder.

        Args:
            is_empty: Whether there was none. What is not there, a disk that is not mounted perhaps, may be back later
                with folders that changed meanwhile: then all of them are listed.
        """
        all_before = None if is_empty else self.began if self.lists_all else self.all_before
        return FolderPass(self.template, before=self.began, all_before=all_before)

    def is_through(self, folder: str) -> bool:
        """Whether the present pass has listed ``folder``, or all that can lie in it."""
        steps, last = folder.split("/"), self.folder.split("/")
        return bool(self.folder) and (steps <= last if len(steps) >= len(last) else steps < last[: len(steps)])


def _is_over(began: datetime | None, length: timedelta, now: datetime) -> bool:
    """Whether so much time has passed; a time that is yet to come was written by another clock."""
    return began is None or began > now or now - began >= length
