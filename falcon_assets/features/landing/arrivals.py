"""Folders in which data may land now: the operating system says at once that something is written there.

This only makes a collector look earlier. What nobody tells, as of a file that another machine writes, its next look at
everything finds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from pathlib import Path

from sqlalchemy import Engine

# Documented, in spite of its name; watchfiles.watch() begins to watch only with the first wait, which is too late here.
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from falcon_assets.errors import FalconError
from falcon_assets.features.landing.collector import Collector
from falcon_assets.features.landing.store import last_push
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instance_paths import InstancePaths
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.storage.cluster_store import ClusterStore

_NEWEST = 3
"""Instances of a feed whose folders are watched, and as many that somebody has begun to write."""
_MOST_FOLDERS = 4096
"""Watched for a cluster: the kernel keeps a kilobyte for each, and has a limit for all that a user watches."""
_STEP_MS, _TOGETHER_MS = 20, 100
"""How often the changes are looked at that the system told, and how long they are gathered."""
_SLICE_SECONDS = 0.5
"""How long a report of new data may be unseen."""
_AGAIN_SECONDS = 60.0
"""After the system refused to watch."""
_POLL_SECONDS, _POLL_WATCHED_SECONDS = 0.5, 10.0
"""From a look at everything to the next, and where all folders are watched: then it finds only what lands as old."""
_SHARE, _SHARE_WATCHED = 20, 60
"""Looks at everything take at most one part in so many of the time."""


@dataclass
class Arrivals:
    """What a collector looks at, and when."""

    collector: Collector
    _notify: RustNotify | None = field(default=None, init=False)
    _refused_at: float | None = field(default=None, init=False)
    _wanted: dict[str, Collection[str] | None] = field(default_factory=dict, init=False)
    """Feed -> the folders to watch for it; None: not all can be."""
    _folders: dict[str, set[str]] = field(default_factory=dict, init=False)
    """Watched folder -> the feeds that may land in it."""
    _begun: dict[str, dict[str, None]] = field(default_factory=dict, init=False)
    """Feed -> folders that were made of late where it lands, the newest last."""
    _touched: set[str] = field(default_factory=set, init=False)
    _all_watched: bool = field(default=False, init=False)
    _looked_at: float | None = field(default=None, init=False)
    _took: float = field(default=0.0, init=False)
    _push: int = field(default=0, init=False)

    def wait(self, engine: Engine, seconds: float) -> None:
        """Returns when something lands, or is reported, or it is time to look at everything, or after so long."""
        give_up = time.monotonic() + seconds
        while (left := min(give_up, self._next_look) - time.monotonic()) > 0 and not self._touched:
            self._hear(min(left, _SLICE_SECONDS))
            if self._push_of(engine) > self._push:
                return

    @contextmanager
    def look(self, engine: Engine, *, everything: bool) -> Iterator[Collection[str] | None]:
        """Gives the feeds to look at in the block, None: all; ``everything``: whatever the time."""
        touched, began = frozenset(self._touched), time.monotonic()
        self._touched.clear()
        self._push = self._push_of(engine)
        everything = everything or began >= self._next_look
        self._watch(self.collector.feeds if everything else touched)
        yield None if everything else touched
        if everything:
            self._looked_at = time.monotonic()
            self._took = self._looked_at - began

    def _push_of(self, engine: Engine) -> int:
        with engine.connect() as connection:
            return last_push(connection, self.collector.cluster.name)

    @property
    def _next_look(self) -> float:
        least, share = (_POLL_WATCHED_SECONDS, _SHARE_WATCHED) if self._all_watched else (_POLL_SECONDS, _SHARE)
        return (self._looked_at or 0.0) + max(least, (share - 1) * self._took)

    def _hear(self, seconds: float) -> None:
        if self._notify is None:
            time.sleep(seconds)
            return
        told = self._notify.watch(_TOGETHER_MS, _STEP_MS, max(1, int(seconds * 1000)), None)
        if isinstance(told, str):
            return
        for _, path in told:
            folder = str(Path(path).parent)
            for feed in self._folders.get(folder, ()):
                self._touched.add(feed)
                if path not in self._folders and Path(path).is_dir():
                    begun = self._begun.setdefault(feed, {})
                    begun[path] = None
                    if len(begun) > _NEWEST:
                        del begun[next(iter(begun))]

    def _watch(self, names: Collection[str]) -> None:
        """Before the look, so that nothing lands unseen in between."""
        if self._refused_at is not None and time.monotonic() - self._refused_at < _AGAIN_SECONDS:
            return
        self._refused_at = None
        now = self.collector.settings.now()
        for name in names:
            self._wanted[name] = self._folders_of(self.collector.feeds[name], now)
        wanted = dict[str, set[str]]()
        for name, folders in self._wanted.items():
            for folder in folders or ():
                wanted.setdefault(folder, set()).add(name)
        self._all_watched = None not in self._wanted.values() and len(wanted) <= _MOST_FOLDERS
        wanted = dict(islice(wanted.items(), _MOST_FOLDERS))
        if wanted.keys() != self._folders.keys() or self._notify is None:
            self._notify_of(wanted)
        self._folders = wanted if self._notify else {}

    def _notify_of(self, folders: Collection[str]) -> None:
        before, self._notify = self._notify, None
        if before is not None:
            before.close()
        if not folders:
            return
        try:
            self._notify = RustNotify([*folders], False, False, 0, False, True)
        except FileNotFoundError:  # one went in between: the next time
            self._all_watched = False
        except (OSError, WatchfilesRustInternalError):  # too many are watched, or this system cannot
            self._all_watched, self._refused_at = False, time.monotonic()

    def _folders_of(self, feed: Feed, now: datetime) -> Collection[str] | None:
        """Of the newest instances, and the next one, those that are there, or else what is there of their parents.

        None: some are not to be watched.
        """
        cluster = self.collector.cluster
        if feed.table_on(cluster.name) or feed.rollup:
            return None
        try:
            stores = self.collector.files_of(feed).volumes
            paths, line = InstancePaths(feed, cluster), feed_timeline(feed, cluster.name)
            newest = line.index_at_or_before(now)
            instances = [line.instance(at) for at in range(max(0, newest - _NEWEST + 1), newest + 2)]
            data = [paths.data(one) for one in instances if line.contains(one)]
            if not all(store.files.is_own(store.identity.path) for store in stores):
                return None
            ours = dict.fromkeys(there for store in stores for path in data if (there := _there(store, path)))
        except FalconError:
            return None
        return ours | self._begun.get(feed.name, {})


def _there(store: ClusterStore, path: str) -> str | None:
    folder, root = store.path(path), store.identity.path
    while not os.path.isdir(folder):  # noqa: PTH112 - twice as fast, for thousands of them
        if len(folder) <= len(root):
            return None
        folder = folder.rpartition("/")[0]
    return folder
