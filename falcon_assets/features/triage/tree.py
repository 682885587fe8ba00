"""The tree of causes: equal causes are grouped, each is unfolded once, depth and breadth are limited."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TypeAlias

from falcon_assets.features.triage.fixes import rerun
from falcon_assets.features.triage.known import Data, Obstacle, Work
from falcon_assets.features.triage.reasons import DoneWithout, GoesOn, NotArrived
from falcon_assets.features.triage.walk import Finding, Search
from falcon_assets.operations.operation import Result
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.rollups import leaves_of

DEEPEST = 40
BROADEST = 10


@dataclass(frozen=True)
class Cause:
    """A missing instance, a group of equal ones, or another obstacle, and why.

    Attributes:
        cluster: None: it is no instance.
        reason: None: the instance exists.
        fix: The command for the group; None: it needs none, or its causes do.
        between: Instances of its own process that are left out between it and its causes.
        more: The number of causes left out.
        is_told: Whether its causes are shown at an earlier place.
    """

    name: str
    kind: str
    cluster: str | None
    first: datetime | None
    last: datetime | None
    count: int
    state: str
    reason: Reason | None
    fix: str | None = None
    causes: tuple[Cause, ...] = ()
    record: InstanceRecord | None = None
    between: int = 0
    more: int = 0
    is_told: bool = False

    @property
    def unasked(self) -> str:
        """The first reason, here or below, why a store could not be queried; empty: all could."""
        own = self.reason.problem if isinstance(self.reason, NotArrived) else ""
        return own or next(filter(None, (one.unasked for one in self.causes)), "")


@dataclass(frozen=True)
class CausesOfReason(Result):
    """What a search ends at for one reason; ``fixes`` are the commands, each once."""

    reason: str
    count: int
    entities: tuple[str, ...]
    fixes: tuple[str, ...]


def by_reason(cause: Cause) -> list[CausesOfReason]:
    """Groups the ends of a tree by the codes of their reasons."""
    found: dict[str, list[Cause]] = {}
    for one in _ends(cause):
        if one.reason is not None:
            found.setdefault(one.reason.kind, []).append(one)
    return [
        CausesOfReason(
            code,
            sum(one.count for one in ends),
            tuple(dict.fromkeys(one.name for one in ends)),
            tuple(dict.fromkeys(one.fix for one in ends if one.fix)),
        )
        for code, ends in found.items()
    ]


def _ends(cause: Cause) -> Iterator[Cause]:
    for one in cause.causes:
        yield from _ends(one)
    if not (cause.causes or cause.is_told):
        yield cause


Key: TypeAlias = Work | Data
_Name: TypeAlias = tuple[str, str]


def causes_of(search: Search, key: Key) -> Cause:
    return _Causes(search).cause([key], 0)


@dataclass
class _Causes:
    search: Search
    _shapes: dict[tuple[object, ...], int] = field(default_factory=dict)
    _shape_of: dict[tuple[type, Key], int] = field(default_factory=dict)
    _told: set[tuple[type, Key]] = field(default_factory=set)
    _obstacles: set[str] = field(default_factory=set)

    def cause(self, keys: Sequence[Key], depth: int) -> Cause:
        keys = sorted(keys, key=_instant)
        key, found = keys[0], self._finding(keys[0])
        first, last = _instant(key), _instant(keys[-1])
        kind, name = self._kind(key), key.workload if isinstance(key, Work) else key.feed
        new = [one for one in keys if _typed(one) not in self._told]
        is_told = not new and bool(found.works or found.data)
        self._told.update(map(_typed, keys))
        cause = Cause(
            *(name, kind, key.cluster, first, last, len(keys), found.state, self._reason(key, depth)),
            fix=self._fix(key, first, last, depth),
            record=found.record,
            is_told=is_told,
        )
        if is_told:
            return cause
        below, between = self._below(new)
        groups: dict[int, list[Key]] = {}
        for one in below:
            groups.setdefault(self._shape(one), []).append(one)
        shown = list(groups.values())[:BROADEST]
        causes = [_of_obstacle(one) for one in found.obstacles if one.name not in self._obstacles]
        self._obstacles.update(one.name for one in found.obstacles)
        if depth < DEEPEST:
            causes += [self.cause(group, depth + 1) for group in shown]
        elif shown:
            causes.append(replace(cause, reason=GoesOn(), fix=None))
        left = sum(self._finding(one).further for one in new) + sum(map(len, list(groups.values())[BROADEST:]))
        return replace(cause, causes=tuple(causes), between=between, more=left)

    def _finding(self, key: Key) -> Finding:
        return self.search.works[key] if isinstance(key, Work) else self.search.data[key]

    def _reason(self, key: Key, depth: int) -> Reason | None:
        found = self._finding(key)
        return DoneWithout() if found.reason is None and depth else found.reason

    def _fix(self, key: Key, first: datetime, last: datetime, depth: int) -> str | None:
        fix = self._finding(key).fix
        if fix is None and isinstance(self._reason(key, depth), DoneWithout) and isinstance(key, Work):
            fix = rerun(key, InstanceState.SUCCEEDED)
        return fix.command(first, last) if fix else None

    def _kind(self, key: Key) -> str:
        if isinstance(key, Data):
            return "feed"
        workload = self.search.entities.workload(key.workload, key.cluster)
        return workload.kind if workload else "process"

    def _shape(self, key: Key) -> int:
        """Returns a number shared by instances that differ only in their times."""
        typed = _typed(key)
        if typed not in self._shape_of:
            found = self._finding(key)
            self._shape_of[typed] = -1  # nothing leads back to itself; were it so, the search would end here
            below = frozenset(map(self._shape, self._below([key])[0]))
            reason = found.reason
            said = (reason.kind, getattr(reason, "error", "")) if reason else ()
            shape = (*key[:2], isinstance(key, Work), found.state, said, below)
            self._shape_of[typed] = self._shapes.setdefault(shape, len(self._shapes))
        return self._shape_of[typed]

    def _below(self, keys: Iterable[Key]) -> tuple[list[Key], int]:
        works, lacking = dict[Work, None](), dict[Data, None]()
        between = 0
        for key in keys:
            found = self._finding(key)
            if isinstance(key, Data):
                # Several may bring it: those that have done so are not the cause, unless all have.
                undone = [one for one in found.works if self.search.works[one].reason]
                works.update(dict.fromkeys(undone or found.works))
                lacking.update(dict.fromkeys(found.data))
                continue
            begins, passed = self._beginnings(key)
            between += passed
            for data in found.data:
                if not self._in_cycle(key, data):
                    lacking[data] = None
            works.update(dict.fromkeys(begins))
        return [*works, *lacking], between

    # Cycles over several processes: shown as where they begin.

    @cached_property
    def _cycles(self) -> dict[_Name, frozenset[_Name]]:
        """Workload -> the workloads in a cycle with it; only for those in a cycle."""
        reads: dict[_Name, set[_Name]] = {}
        following = {work[:2] for work in self.search.works}
        while following:
            reads |= {name: self._brings(name) for name in following}
            following = {one for name in following for one in reads[name]} - reads.keys()
        reach = {name: _reached(name, reads) for name in reads}
        return {
            name: frozenset(one for one in found if name in reach[one])
            for name, found in reach.items()
            if name in found
        }

    def _brings(self, name: _Name) -> set[_Name]:
        entities = self.search.entities
        workload = entities.workload(*name)
        read = [entities.feeds[one.feed] for one in workload.inputs if not one.optional] if workload else []
        feeds = [leaf.name for one in read for leaf in leaves_of(one, entities.feeds)]
        where = workload.reads_on if workload else ""
        bringing = [[*entities.producers(feed, where), *entities.replications_to(feed, where)] for feed in feeds]
        return {(one.name, one.cluster) for brought in bringing for one in brought}

    def _in_cycle(self, work: Work, data: Data) -> bool:
        cycle = self._cycles.get(work[:2])
        return cycle is not None and any(one[:2] in cycle for one in self.search.data[data].works)

    def _beginnings(self, work: Work) -> tuple[list[Work], int]:
        """Returns the beginnings of an instance's cycle over several processes, and the number of skipped instances."""
        if work[:2] not in self._cycles:
            return [], 0
        begins, seen = dict[Work, None](), {work}
        following = self._next_in_cycle(work)
        while following:
            one = following.pop()
            if one in seen:
                continue
            seen.add(one)
            further = self._next_in_cycle(one)
            following += further
            if not further:
                begins[one] = None
        passed = sum(self.search.works[one].between for one in seen)
        return list(begins), len(seen) - len(begins) - 1 + passed

    def _next_in_cycle(self, work: Work) -> list[Work]:
        cycle = self._cycles[work[:2]]
        found = self.search.works[work]
        lacks = [*found.works, *(one for data in found.data for one in self.search.data[data].works)]
        return [one for one in lacks if one[:2] in cycle]


def _reached(start: _Name, reads: Mapping[_Name, Collection[_Name]]) -> set[_Name]:
    found: set[_Name] = set()
    following = list(reads.get(start, ()))
    while following:
        one = following.pop()
        if one not in found:
            found.add(one)
            following += reads.get(one, ())
    return found


def _typed(key: Key) -> tuple[type, Key]:
    """Distinguishes instances of a process from those of a feed of the same name."""
    return type(key), key


def _instant(key: Key) -> datetime:
    return key[2]


def _of_obstacle(one: Obstacle) -> Cause:
    return Cause(one.name, one.kind, None, None, None, 1, one.state, one.reason, one.fix)
