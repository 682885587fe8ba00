"""Passes over the old instances of a feed: data that landed late in the past is found within a bounded time.

A pass visits all folders that can have instances, in the order of their paths, a few in every tick; any process
continues it in the next tick. All times are real ones: a simulated clock lists no faster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

REST_SHORT, REST_LONG = timedelta(minutes=1), timedelta(minutes=10)
ALL_EVERY = timedelta(days=1)
"""How often unchanged folders are listed too: times of folders can be set back, and clocks be wrong."""
SLACK = timedelta(minutes=5)
"""How slow the clock of a file server may be, the granularity of its times included."""


@dataclass(frozen=True)
class FolderPass:
    """Progress of the passes over a feed on a cluster; None: no such pass.

    With another ``template`` everything is listed anew. ``before`` and ``all_before`` are when the last complete pass
    began, and the last one that listed unchanged folders too.
    """

    template: str
    began: datetime | None = None
    folder: str = ""
    lists_all: bool = True
    before: datetime | None = None
    all_before: datetime | None = None

    def next(self, now: datetime, *, tells_changes: bool) -> FolderPass | None:
        """The pass to continue, or a new one where it is due; None: not now."""
        if self.began is not None and self.began <= now:
            return self
        if not _is_over(self.before, REST_SHORT if tells_changes else REST_LONG, now):
            return None
        is_set_back = self.before is not None and self.before > now  # then times mean nothing
        lists_all = not tells_changes or is_set_back or _is_over(self.all_before, ALL_EVERY, now)
        return replace(self, began=now, folder="", lists_all=lists_all)

    def must_list(self, changed: datetime | None) -> bool:
        return self.lists_all or changed is None or self.before is None or changed >= self.before - SLACK

    def through(self, folder: str) -> FolderPass:
        return replace(self, folder=folder)

    def ended(self, *, is_empty: bool = False) -> FolderPass:
        """Ends the pass; after one without any folder, as of a disk that is not mounted, the next one lists all."""
        all_before = None if is_empty else self.began if self.lists_all else self.all_before
        return FolderPass(self.template, before=self.began, all_before=all_before)

    def is_through(self, folder: str) -> bool:
        """Whether the present pass has listed ``folder``, or everything that can lie in it."""
        steps, last = folder.split("/"), self.folder.split("/")
        return bool(self.folder) and (steps <= last if len(steps) >= len(last) else steps < last[: len(steps)])


def _is_over(began: datetime | None, length: timedelta, now: datetime) -> bool:
    """A time in the future was written by another clock, and counts as over."""
    return began is None or began > now or now - began >= length
