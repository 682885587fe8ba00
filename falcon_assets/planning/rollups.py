"""Roll-ups: which instances of its members make an instance, and which instances a member's instance belongs to.

The members' instances whose nominal time lies in the period from an instance to the next one belong to it. In one zone
these are absolute times; where zones differ, wall clocks are compared: the member's in its zone, the period in its own.
So a day of the world has the day of each region, although their midnights differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeAlias

from falcon_assets.model.feed import Feed
from falcon_assets.model.wall_clock import MICROSECOND, moments_of_wall, to_wall
from falcon_assets.planning.instance_record import FeedState
from falcon_assets.planning.timeline import Timeline, feed_timeline

MemberInstance: TypeAlias = tuple[str, datetime]
"""Feed and nominal time."""
ROLLED_UP = " rolled up"
"""After the name of a feed, stands for what makes its instances, where there is a process or a replication else."""
ZONES_APART = timedelta(hours=26)
"""More than the clocks of two zones differ, and than a zone's clock is ever changed by."""


@dataclass(frozen=True)
class Membership:
    """The instances of one member in those of a roll-up, on one cluster."""

    rollup: Timeline
    member: Timeline

    @cached_property
    def _is_absolute(self) -> bool:
        return self.rollup.timezone == self.member.timezone

    def members(self, instance: datetime) -> list[datetime]:
        """Returns the member's instances that exist in the period of an instance, oldest first."""
        found = self.member.between(*self.span(instance, instance))
        if self._is_absolute:
            return found
        index = self.rollup.index_at_or_before(instance)
        begin, end = self._bound(index), self._bound(index + 1)
        return [one for one in found if begin <= self._wall(one) < end]

    def span(self, first: datetime, last: datetime) -> tuple[datetime, datetime]:
        """Returns times between which all instances of the member lie that are in those from ``first`` to ``last``."""
        begin = self._bound(self.rollup.index_at_or_before(first))
        end = self._bound(self.rollup.index_at_or_before(last) + 1)
        if self._is_absolute:
            return begin, end - MICROSECOND
        zone = self.member.timezone
        return moments_of_wall(begin, zone)[0] - ZONES_APART, moments_of_wall(end, zone)[1] + ZONES_APART

    def rollups(self, instance: datetime) -> list[datetime]:
        """Returns the instances that one of the member belongs to: one at most, except where clocks go back."""
        if self._is_absolute:
            found = self.rollup.at_or_before(instance)
            return [] if found is None or instance >= self._after(found) else [found]
        wall = self._wall(instance)
        first, last = moments_of_wall(wall, self.rollup.timezone)
        indexes = self.rollup.indexes(first - self._step, last + ZONES_APART)
        return [self.rollup.instance(k) for k in indexes if self._bound(k) <= wall < self._bound(k + 1)]

    @property
    def _step(self) -> timedelta:
        return self.rollup.frequency.length * 2 + ZONES_APART

    def _after(self, instance: datetime) -> datetime:
        return self.rollup.instance(self.rollup.index_at_or_before(instance) + 1)

    def _bound(self, index: int) -> datetime:
        """The beginning of a period: absolute in one zone, else on the wall clock."""
        if self._is_absolute:
            return self.rollup.instance(index)
        if self.rollup.frequency.is_absolute:
            return to_wall(self.rollup.instance(index), self.rollup.timezone)
        return self.rollup.wall(index)

    def _wall(self, instance: datetime) -> datetime:
        return to_wall(instance, self.member.timezone)


@dataclass(frozen=True)
class MemberOf:
    """A member of a roll-up on a cluster."""

    feed: Feed
    is_optional: bool
    membership: Membership


def members_of(feed: Feed, cluster: str) -> list[MemberOf]:
    """Returns the members of a roll-up; none for any other feed. Raises UnknownEntityError off the cluster."""
    if feed.rollup is None:
        return []
    line, optional = feed_timeline(feed, cluster), feed.rollup.optional
    return [
        MemberOf(one, one.name in optional, Membership(line, feed_timeline(one, cluster))) for one in feed.rollup.feeds
    ]


Above: TypeAlias = Mapping[str, Sequence[tuple[Feed, Membership]]]
"""Member -> the roll-ups that it is a member of."""


def rollups_above(rollups: Iterable[Feed], cluster: str) -> Above:
    found: dict[str, list[tuple[Feed, Membership]]] = {}
    for rollup in rollups:
        for one in members_of(rollup, cluster):
            found.setdefault(one.feed.name, []).append((rollup, one.membership))
    return found


def above(names: Iterable[str], rollups: Above) -> Iterator[Feed]:
    """Yields the roll-ups that feeds are in, at any depth, each once."""
    pending, seen = list(names), set[str]()
    while pending:
        for rollup, _ in rollups.get(pending.pop(), ()):
            if rollup.name not in seen:
                seen.add(rollup.name)
                pending.append(rollup.name)
                yield rollup


def made_with(name: str, instance: datetime, rollups: Above) -> dict[str, set[datetime]]:
    """Returns the instances that have the data of one, by feed: itself, and those of roll-ups, at any depth."""
    found: dict[str, set[datetime]] = {}
    pending = [(name, instance)]
    while pending:
        feed, at = pending.pop()
        if at not in found.setdefault(feed, set()):
            found[feed].add(at)
            pending += [(rollup.name, one) for rollup, of in rollups.get(feed, ()) for one in of.rollups(at)]
    return found


def leaf_spans(feed: Feed, cluster: str, first: datetime, last: datetime) -> Iterator[tuple[str, datetime, datetime]]:
    """Yields the feeds with data in the instances of one from ``first`` to ``last``, and times that theirs lie in."""
    if feed.rollup is None:
        yield feed.name, first, last
    for one in members_of(feed, cluster):
        yield from leaf_spans(one.feed, cluster, *one.membership.span(first, last))


def leaves_of(feed: Feed, feeds: Mapping[str, Feed]) -> Iterator[Feed]:
    """Yields the feeds with data that a roll-up is made of in the end, each once; any other feed is its own."""
    pending, seen = [feed], set[str]()
    while pending:
        one = pending.pop(0)
        if one.name in seen:
            continue
        seen.add(one.name)
        if one.rollup is None:
            yield one
        else:
            pending[:0] = [feeds[name] for name in one.rollup.of if name in feeds]


def member_input(name: str, feed: str) -> str:
    """The name of what an input reads of one of those feeds, where it asks for them."""
    return f"{name}__{feed}"


OF_MEMBERS = ("format", "options", "schema_", "partitions")
"""Fields of a feed by which a roll-up is read as its first member with data is."""


class RolledUp(Mapping[str, Feed]):
    """Feeds by name, of which roll-ups have their members, and read as these are: with their format and columns."""

    def __init__(self, feeds: Mapping[str, Feed], rollups: Collection[str]) -> None:
        self._feeds, self._rollups = feeds, rollups
        self._found: dict[str, Feed] = {}

    def __getitem__(self, name: str) -> Feed:
        if name not in self._rollups:
            return self._feeds[name]
        if name not in self._found:
            self._found.setdefault(name, self._rolled_up(self._feeds[name]))
        return self._found[name]

    def _rolled_up(self, feed: Feed) -> Feed:
        assert feed.rollup
        members = tuple(self[one] for one in feed.rollup.of)
        leaf = next(leaves_of(members[0], self))
        alike = {name: getattr(leaf, name) for name in OF_MEMBERS}
        return feed.model_copy(update={"rollup": feed.rollup.with_feeds(members), **alike})

    def __contains__(self, name: object) -> bool:
        return name in self._feeds

    def __iter__(self) -> Iterator[str]:
        return iter(self._feeds)

    def __len__(self) -> int:
        return len(self._feeds)


def version_of(versions: Iterable[tuple[str, datetime, str]]) -> str:
    """Returns the version of an instance made of member instances (feed, nominal time, version) in any order."""
    digest = hashlib.blake2b(digest_size=16)
    for feed, instance, version in sorted(versions):
        digest.update(f"{feed} {instance.timestamp():.6f} {version}\n".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class MemberPart:
    """An instance of a member that belongs to an instance.

    Attributes:
        state: None, as ``version``: it has never been there.
        same_rows: Other versions of it that have the same rows, as those from before a compaction.
    """

    feed: str
    instance: datetime
    is_optional: bool
    state: FeedState | None = None
    version: str | None = None
    same_rows: frozenset[str] = frozenset()

    @property
    def is_there(self) -> bool:
        return self.state is FeedState.AVAILABLE

    @property
    def was_there(self) -> bool:
        """Also what retention took: whoever has been made of it stays."""
        return self.state in (FeedState.AVAILABLE, FeedState.EVICTED)


def version_made(parts: Sequence[MemberPart], *, is_recorded: bool) -> str | None:
    """Returns the version of an instance; None: it is not complete.

    It is complete when all its parts are there that are not optional. Where it is recorded already, parts that
    retention took count as they were.
    """
    required = [one for one in parts if not one.is_optional]
    if not required or not all(one.was_there if is_recorded else one.is_there for one in required):
        return None
    known = [one for one in parts if one.was_there and one.version]
    return version_of((one.feed, one.instance, one.version or "") for one in known)


def has_same_rows(parts: Sequence[MemberPart], made_of: Mapping[MemberInstance, str]) -> bool:
    """Whether the parts have the rows of those that an earlier version was made of, all of them and no others."""
    there = {(one.feed, one.instance): {one.version, *one.same_rows} for one in parts if one.was_there}
    return there.keys() == made_of.keys() and all(version in there[key] for key, version in made_of.items())
