"""What comes of the instances of a run, from the threads that compute them to the one that records it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import TypeAlias

from falcon_assets.history.dagster_internals.events import AT_ONCE
from falcon_assets.instances.runs.instance_work import Done

_TOGETHER_SECONDS = 0.1
"""How long what arrived waits for others, which are recorded with it."""


@dataclass(frozen=True)
class LeftAlone:
    """Not computed by this run: another run did, or a needed instance failed; ``waits``: it is left to a later run."""

    why: str
    waits: bool = False


@dataclass(frozen=True)
class StoppedInstance:
    """A command, which has recorded the new state, took the instance during its computation."""

    why: str


Outcome: TypeAlias = Done | Exception | LeftAlone | StoppedInstance | None
"""None: the instance has begun."""


class Outcomes:
    """Outcomes of instances, in the order in which they are put; safe from several threads."""

    def __init__(self) -> None:
        self._put: SimpleQueue[tuple[datetime, Outcome]] = SimpleQueue()
        self._arrived: deque[tuple[datetime, Outcome]] = deque()

    def put(self, nominal: datetime, outcome: Outcome) -> None:
        self._put.put((nominal, outcome))

    def wait(self, begun: int) -> int:
        """Waits until something arrives, and a moment for more; returns how many of the instances ``begun`` ended.

        An interruption loses nothing of it.
        """
        ended, until = 0, None
        while ended < begun and len(self._arrived) < AT_ONCE:
            try:
                self._arrived.append(
                    self._put.get(timeout=None if until is None else max(0.0, until - time.monotonic()))
                )
            except Empty:
                break
            ended += self._arrived[-1][1] is not None
            until = until or time.monotonic() + _TOGETHER_SECONDS
        return ended

    def arrived(self) -> Iterator[tuple[datetime, Outcome]]:
        """Removes what was waited for."""
        while self._arrived:
            yield self._arrived.popleft()

    def all(self) -> Iterator[tuple[datetime, Outcome]]:
        """Removes what was put, whether or not it was waited for."""
        while not self._put.empty():
            self._arrived.append(self._put.get())
        yield from self.arrived()
