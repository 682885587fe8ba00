"""Chains of instances that read the output of earlier ones: their beginnings, whatever the length."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from falcon_assets.features.triage.known import Stretch
from falcon_assets.planning.timeline import Timeline, feed_timeline
from falcon_assets.planning.window_offsets import window_offsets
from falcon_assets.planning.workloads import Workload

_WAITS, _THERE, _EVICTED, _STOPS = range(4)
_FIRST_BLOCK = 256
_LARGEST_BLOCK = 16_384
_KEPT = 20
"""Beginnings that are returned, the oldest first."""


@dataclass(frozen=True)
class OwnOutput:
    """A feed that a process reads and writes in steps of equal length.

    Attributes:
        timeline: Of the process.
        data: Of the feed.
        writes: Steps from an instance to the feed instance that it writes.
        reads: Steps from an instance to those whose outputs it reads; all negative.
    """

    feed: str
    timeline: Timeline
    data: Timeline
    step: timedelta
    writes: int
    reads: tuple[int, ...]

    def written(self, nominal: datetime) -> datetime:
        return nominal + self.writes * self.step


def own_output(workload: Workload) -> OwnOutput | None:
    """Returns how a workload reads its own output; None: it does not, or not in the same way at all times."""
    if len(workload.own_feeds) != 1:
        return None
    (feed,) = workload.own_feeds
    own, data = workload.timeline, feed_timeline(workload.feeds[feed], workload.cluster)
    outputs = [one.instance.call for one in workload.outputs if one.feed == feed]
    inputs = [one for one in workload.inputs if one.feed == feed and not one.optional]
    if not _steps_together(own, data) or len(outputs) != 1 or not all(one.is_of_times for one in inputs):
        return None
    written = window_offsets(own, data, outputs[0], outputs[0])
    windows = [window_offsets(own, data, one.start.call, one.end.call) for one in inputs]
    if written is None or None in windows:
        return None
    reads = {k - written[0] for window in windows if window for k in range(window[0], window[1] + 1)}
    if not reads or max(reads) >= 0:
        return None
    return OwnOutput(feed, own, data, own.frequency.length, written[0], tuple(sorted(reads)))


def _steps_together(own: Timeline, data: Timeline) -> bool:
    if not (own.frequency.is_absolute and data.frequency.is_absolute):
        return False
    return own.frequency.length == data.frequency.length and not (data.start - own.start) % own.frequency.length


@dataclass(frozen=True)
class Chain:
    """The oldest beginnings of a chain: awaited instances that wait for no own output, and evicted outputs."""

    begins: tuple[datetime, ...]
    evicted: tuple[datetime, ...]
    between: int


def beginnings(own: OwnOutput, nominal: datetime, stretch: Callable[[datetime, datetime], Stretch]) -> Chain | None:
    """Finds the beginnings of a chain, asking for longer and longer stretches; None: no own output is missing."""
    known, back = _Known(own, nominal, stretch), [-one for one in own.reads]
    begins, evicted, between = list[int](), list[int](), 0
    # By how many steps they are back, as all of what they read is farther back.
    waited_for, last, place = {*back}, max(back), 0
    while place < last:
        place += 1
        if place not in waited_for:
            continue
        waited_for.remove(place)
        state = known.state(place)
        if state == _EVICTED:
            evicted.append(place)
        if state in (_THERE, _EVICTED):
            continue
        lacks = [place + one for one in back if known.state(place + one) != _THERE] if state == _WAITS else []
        if lacks:
            between += 1
            waited_for.update(lacks)
            last = max(last, *lacks)
        else:
            begins.append(place)
    if not begins and not evicted:
        return None
    return Chain(
        tuple(nominal - one * own.step for one in begins[: -_KEPT - 1 : -1]),
        tuple(own.written(nominal - one * own.step) for one in evicted[: -_KEPT - 1 : -1]),
        between,
    )


class _Known:
    """The states of a chain, by steps back from its last instance."""

    def __init__(self, own: OwnOutput, nominal: datetime, stretch: Callable[[datetime, datetime], Stretch]) -> None:
        self._own, self._nominal, self._ask = own, nominal, stretch
        self._block = _FIRST_BLOCK
        self._states = bytearray([_STOPS])  # the one that is asked for

    def state(self, back: int) -> int:
        """Instances before the first one count as there: they are not waited for."""
        while back >= len(self._states):
            self._ask_block()
        return self._states[back]

    def _ask_block(self) -> None:
        own, newest = self._own, len(self._states)
        oldest = newest + self._block - 1
        self._states += bytes([_WAITS]) * self._block
        found = self._ask(self._nominal - oldest * own.step, self._nominal - newest * own.step)
        self._set(found.stops, _STOPS)
        # Those before the first instance, whose outputs may be instances of the feed all the same.
        first = max(self._back(own.timeline.instance(own.timeline.first)) + 1, newest)
        self._states[first:] = bytes([_STOPS]) * (oldest + 1 - first)
        writes = own.writes * own.step
        self._set((one - writes for one in found.evicted), _EVICTED)
        self._set((one - writes for one in found.there), _THERE)
        unborn = max(self._back(own.data.start - writes) + 1, newest)
        self._states[unborn:] = bytes([_THERE]) * (oldest + 1 - unborn)
        self._block = min(2 * self._block, _LARGEST_BLOCK)

    def _set(self, nominals: Iterable[datetime], state: int) -> None:
        for nominal in nominals:
            back, off = divmod(self._nominal - nominal, self._own.step)
            if not off:  # others are of a timeline that the process, or the feed, had before
                self._states[back] = state

    def _back(self, nominal: datetime) -> int:
        return (self._nominal - nominal) // self._own.step
