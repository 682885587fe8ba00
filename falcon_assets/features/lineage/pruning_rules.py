"""Rules for versions and data that can be deleted while others stay reproducible; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.history.events.data_version import Version
from falcon_assets.planning.version_columns import VersionStatus


def expired(
    versions: Iterable[Version], edges: Iterable[tuple[int, int]], protected: Collection[int], before: datetime
) -> list[Version]:
    """Returns versions whose data was deleted before a time, and those that were only read to make them.

    Existing, archived and protected versions stay. A version that was only read has no time of its own: it is deleted
    with the last version that was made from it. ``versions`` need not contain those that stay; ``edges`` are (output,
    input), all to versions that were only read.
    """
    known = [one for one in versions if not (one.exists or one.archived_to or one.number in protected)]
    gone = {one.number for one in known if one.ended_at and one.ended_at < before}
    still_read = {read for output, read in edges if output not in gone}
    read_only = {one.number for one in known if one.status is VersionStatus.READ} - still_read
    return [one for one in known if one.number in gone or one.number in read_only]


def protected(critical: Iterable[int], edges: Iterable[tuple[int, int]]) -> dict[int, int]:
    """Maps critical versions and all that they were made from to the nearest critical one, of several the first."""
    inputs: dict[int, list[int]] = {}
    for output, read in edges:
        inputs.setdefault(output, []).append(read)
    found = {number: number for number in sorted(critical)}
    outermost = list(found)
    while outermost:
        following: dict[int, int] = {}
        for number in outermost:
            for read in inputs.get(number, ()):
                if read not in found:
                    following[read] = min(found[number], following.get(read, found[number]))
        found |= following
        outermost = list(following)
    return found


@dataclass(frozen=True)
class NeededVersions:
    """Versions whose data must stay, and wanted versions that cannot be made."""

    stays: frozenset[int]
    impossible: frozenset[int]


def needed_to_make(
    wanted: Collection[int],
    edges: Iterable[tuple[int, int]],
    makeable: Collection[int],
    existing: Collection[int],
    staying: Collection[int],
) -> NeededVersions:
    """Finds the versions whose data must stay so that the wanted ones can be made again.

    A version can be made if its definition is recorded (``makeable``) and each of its inputs exists or can be made.
    Versions in between need not stay: they are made again, too. ``edges`` are (output, input), all above the wanted
    versions; ``staying`` exist and stay in any case. Costs some microseconds for each edge.
    """
    inputs: dict[int, set[int]] = {}
    for output, read in edges:
        inputs.setdefault(output, set()).add(read)
    known = {*wanted, *inputs, *(read for of in inputs.values() for read in of)}
    of_made = {number: inputs.get(number, set()) for number in known if number in makeable}
    there = known & set(existing)
    sources = there - _can_be_made(of_made, there)
    found = sources | _can_be_made(of_made, sources)
    while left := there - found:  # made from each other, in a circle: one of them has to stay
        sources.add(min(left))
        found = sources | _can_be_made(of_made, sources)
    stays, impossible = set[int](), set[int]()
    enough, seen = sources | (there & set(staying)), set[int]()
    for number in wanted:
        if number not in of_made or not of_made[number] <= found:
            impossible.add(number)
            continue
        waiting = [number]
        while waiting:
            for read in of_made[waiting.pop()] - seen:
                seen.add(read)
                if read in enough:
                    stays.add(read)
                else:
                    waiting.append(read)
    return NeededVersions(frozenset(stays), frozenset(impossible))


def _can_be_made(inputs: Mapping[int, set[int]], there: Collection[int]) -> set[int]:
    missing = Counter({number: len(read) for number, read in inputs.items()})
    outputs: dict[int, list[int]] = {}
    for number, read in inputs.items():
        for one in read:
            outputs.setdefault(one, []).append(number)
    made = {number for number, count in missing.items() if not count}
    known, waiting = {*there, *made}, [*there, *(made - set(there))]
    while waiting:
        for output in outputs.get(waiting.pop(), ()):
            missing[output] -= 1
            if not missing[output]:
                made.add(output)
                if output not in known:
                    known.add(output)
                    waiting.append(output)
    return made
