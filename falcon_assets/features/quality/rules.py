"""States of versions: what verdicts mean for roll-ups above and below, and for what was made from invalid data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import TypeAlias

SEEN_WITHIN = timedelta(days=7)
"""Older versions are checked on request only: who declares a check does not want years of data read."""
MadeFrom: TypeAlias = Mapping[int, Collection[int]]
"""Version -> the versions that it was made from, of a roll-up its parts; versions are numbers."""


class QualityState(str, Enum):
    VALID = "VALID"
    INVALID = "INVALID"
    BACKFILLED = "BACKFILLED"
    """It replaced an invalid version, and its checks have not run yet."""
    UNCHECKED = "UNCHECKED"


class Way(str, Enum):
    """The relation of a version to the one that decides; in words as they stand before its name."""

    OWN = ""
    CONTAINS = "contains"
    PART_OF = "part of"
    CONTAINS_PART_OF = "contains a part of"
    MADE_FROM = "made from"


_ABOVE = {
    Way.OWN: Way.CONTAINS,
    Way.CONTAINS: Way.CONTAINS,
    Way.PART_OF: Way.CONTAINS_PART_OF,
    Way.CONTAINS_PART_OF: Way.CONTAINS_PART_OF,
    Way.MADE_FROM: Way.MADE_FROM,
}
"""The relation of a roll-up, by that of its part."""
_GOES_DOWN = (Way.OWN, Way.PART_OF)
"""A roll-up that only contains something invalid says nothing of its other parts."""


@dataclass(frozen=True)
class VersionFacts:
    """Facts about a version.

    Attributes:
        own: What its checks, or a person, say of it; None: nothing, and nothing is awaited.
        is_present: No other version replaced it, and it is not evicted.
    """

    own: QualityState | None = None
    is_accepted: bool = False
    is_present: bool = True


@dataclass(frozen=True, order=True)
class FoundState:
    """``origin`` is the version whose verdict, or whose lack of one, decides."""

    state: QualityState
    way: Way
    origin: int


@dataclass(frozen=True)
class Propagation:
    """The versions that facts are about, and what each was made from; ``rollups`` are those whose sources are parts."""

    facts: Mapping[int, VersionFacts]
    made_from: MadeFrom
    rollups: Collection[int]

    def states(self) -> dict[int, FoundState]:
        """Returns the states of versions, without those of which nothing is known.

        Invalid passes to whatever was made from a version, to roll-ups that contain it, and from a roll-up that is
        invalid as a whole to its parts; at any depth, but not to a version that a person accepted. Checks that are
        awaited pass to roll-ups only.
        """
        users: dict[int, list[int]] = {}
        for output, inputs in self.made_from.items():
            for one in inputs:
                users.setdefault(one, []).append(output)

        def above(number: int, way: Way) -> Iterator[tuple[int, Way]]:
            return ((one, _ABOVE[way]) for one in users.get(number, ()) if one in self.rollups)

        def everywhere(number: int, way: Way) -> Iterator[tuple[int, Way]]:
            yield from above(number, way)
            yield from ((one, Way.MADE_FROM) for one in users.get(number, ()) if one not in self.rollups)
            if way in _GOES_DOWN and number in self.rollups:
                yield from ((part, Way.PART_OF) for part in self.made_from[number] if self._is_meant(number, part))

        valid = self._own(QualityState.VALID)
        unchecked = self._spread(self._own(QualityState.UNCHECKED), above)
        backfilled = self._spread(self._own(QualityState.BACKFILLED), above)
        return valid | unchecked | backfilled | self._spread(self._own(QualityState.INVALID), everywhere)

    def _own(self, state: QualityState) -> dict[int, FoundState]:
        return {one: FoundState(state, Way.OWN, one) for one, known in self.facts.items() if known.own is state}

    def _is_meant(self, rollup: int, part: int) -> bool:
        """Where another version of the roll-up has the same part, that part was not what was wrong."""
        return self.facts[rollup].is_present or not self.facts[part].is_present

    def _spread(
        self, origins: Mapping[int, FoundState], following: Callable[[int, Way], Iterable[tuple[int, Way]]]
    ) -> dict[int, FoundState]:
        """Of several ways the shortest counts."""
        found: dict[int, FoundState] = {}
        seen: set[tuple[int, bool]] = set()
        step = sorted(origins.items())
        while step:
            reached: list[tuple[int, FoundState]] = []
            for number, one in step:
                key = (number, one.way in _GOES_DOWN)
                if key in seen or self.facts[number].is_accepted:
                    continue
                seen.add(key)
                found.setdefault(number, one)
                reached += (
                    (other, FoundState(one.state, way, one.origin)) for other, way in following(number, one.way)
                )
            step = sorted(reached)
        return found
