"""The gate of a collector: an instance that lies there is recorded when enough of what was sent is in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from falcon_assets.errors import FalconError
from falcon_assets.features.completeness.counting import can_count, count_records
from falcon_assets.features.completeness.expected import ExpectedCounts, Slot
from falcon_assets.features.completeness.records import CompletenessRecorded, ReportedPart, WatermarkReached
from falcon_assets.features.completeness.reporting import record_parts
from falcon_assets.features.completeness.rules import PartKey, is_admitted
from falcon_assets.features.completeness.store import (
    KnownShare,
    expected_parts,
    following_shares,
    known_shares,
    set_withheld,
    why_incomplete,
)
from falcon_assets.history.events.record import Record
from falcon_assets.history.platform.open_ledger import Ledger
from falcon_assets.history.tables.row_values import FeedKey
from falcon_assets.instances.store.watermarks import watermark
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.completeness import Completeness, Expected
from falcon_assets.model.feed import Feed
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.storage.kinds.storage_kind import StorageKind

_AT_ONCE = 1000
"""Instances of a feed whose shares the ledger is asked for in one go: a collector looks at them in their order."""


@dataclass
class _KnownShares:
    """Shares as the ledger has them in one pass; of each feed a span is known, from one instance on."""

    ledger: Ledger
    found: dict[FeedKey, KnownShare] = field(default_factory=dict)
    _spans: dict[tuple[str, str], tuple[datetime, datetime]] = field(default_factory=dict)

    def share(self, key: FeedKey) -> KnownShare:
        cluster, feed, instance = key
        first, end = self._spans.get((cluster, feed), (instance, instance))
        if not first <= instance < end:
            with self.ledger.engine.connect() as connection:
                following, end = following_shares(connection, key, _AT_ONCE)
            self._spans[cluster, feed] = instance, end
            self.found |= following
        return self.found.get(key, KnownShare())


@dataclass
class CompletenessGate:
    """Decides about the instances of one cluster in one pass of its collector, at ``now`` on the falcon clock."""

    ledger: Ledger
    cluster: Cluster
    counts: ExpectedCounts
    now: datetime
    problems: dict[str, str] = field(default_factory=dict)
    _seen: dict[FeedKey, KnownShare] = field(default_factory=dict)
    _silent: set[str] = field(default_factory=set)
    """Sources that did not answer in this pass."""
    _withheld: set[FeedKey] = field(default_factory=set)

    @cached_property
    def _known(self) -> _KnownShares:
        return _KnownShares(self.ledger)

    def admits(self, kind: StorageKind, feed: Feed, instance: datetime, path: str) -> bool:
        rule = feed.completeness
        if rule is None:
            return True
        key = self._key(feed, instance)
        self._seen[key] = self._share(kind, feed, instance, path)
        if not is_admitted(rule, self._seen[key], instance, self.now):
            self._withheld.add(key)
        return key not in self._withheld

    def why_withheld(self, feed: Feed, instance: datetime) -> str:
        key, rule = self._key(feed, instance), feed.completeness
        if rule is None or key not in self._withheld:
            return ""
        with self.ledger.engine.begin() as connection:
            set_withheld(connection, {key: self._seen[key]})
            return str(why_incomplete(connection, {key: rule}).get(key, ""))

    def records(self, kind: StorageKind, feed: Feed, instance: datetime, path: str) -> Sequence[Record]:
        """What is recorded beside the version of an instance that is new or has changed."""
        rule = feed.completeness
        if rule is None:
            return ()
        key = self._key(feed, instance)
        share = self._seen.get(key) or self._share(kind, feed, instance, path)
        return [
            CompletenessRecorded(
                self.cluster.name,
                feed.name,
                instance,
                self.now,
                f"{rule.at_least:f}",
                None if share.percent is None else float(share.percent),
                share.expected,
                share.records,
                not share.reaches(rule.at_least),
                share.counted is not None,
                share.counted,
            )
        ]

    def summary(self, feed: Feed, instances: Collection[datetime]) -> Sequence[Record]:
        if feed.completeness is None:
            return ()
        line = feed_timeline(feed, self.cluster.name)
        with self.ledger.engine.connect() as connection:
            reached = watermark(connection, line, self.cluster.name, feed.name, self.now, instances)
        return [WatermarkReached(reached)]

    def finish(self) -> Mapping[str, str]:
        """Stores the shares of what was withheld; returns why it could not be asked how much of a feed was sent."""
        with self.ledger.engine.begin() as connection:
            set_withheld(connection, {key: self._seen[key] for key in self._withheld})
        return self.problems

    def _key(self, feed: Feed, instance: datetime) -> FeedKey:
        return self.cluster.name, feed.name, instance

    def _share(self, kind: StorageKind, feed: Feed, instance: datetime, path: str) -> KnownShare:
        key, rule = self._key(feed, instance), feed.completeness
        assert rule
        share = self._known.share(key)
        if isinstance(rule.expected, Expected):
            share = self._asked(feed, rule, rule.expected, key, share)
        if share.records is not None and share.counted is None:
            return share
        return self._counted(kind, feed, path, share)

    def _asked(self, feed: Feed, rule: Completeness, expected: Expected, key: FeedKey, share: KnownShare) -> KnownShare:
        """Asks for the number sent once the slot is over, and reports it: it is in the log, as what others report."""
        line = feed_timeline(feed, self.cluster.name)
        slot = Slot(key[2], line.instance(line.index_at_or_before(key[2]) + 1))
        source = expected.source
        if self.now < slot.end or source in self._silent:
            return share
        try:
            with self.ledger.engine.connect() as connection:
                found = self.counts.of(expected, slot, connection)
        except FalconError as error:
            self.problems[feed.name] = str(error)
            self._silent.add(source)  # the others would wait as long
            return share
        if found is None:
            return share
        return self._reported(feed, key, found, share)

    def _reported(self, feed: Feed, key: FeedKey, found: Mapping[PartKey, int], share: KnownShare) -> KnownShare:
        with self.ledger.engine.connect() as connection:
            known = expected_parts(connection, key)
        changed = {part: number for part, number in found.items() if known.get(part) != number}
        if changed:
            parts = [ReportedPart(source, part, expected=number) for (source, part), number in changed.items()]
            record_parts(self.ledger, feed, self.cluster.name, key[2], parts, self.now)
            self.ledger.catch_up()
            with self.ledger.engine.connect() as connection:
                self._known.found |= known_shares(connection, [key])
            return self._known.share(key)
        return share

    def _counted(self, kind: StorageKind, feed: Feed, path: str, share: KnownShare) -> KnownShare:
        """Counts once for each version of the files."""
        if not can_count(feed, self.cluster.name):
            return share
        signature = kind.listing(path, feed.availability_flag).signature
        if share.counted == signature:
            return share
        records = count_records(kind, feed, path)  # what could not be counted is tried again
        return replace(share, records=records, changed_at=self.now, counted=None if records is None else signature)
