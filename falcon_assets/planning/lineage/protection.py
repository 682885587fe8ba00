"""What must stay so that critical versions can be made again."""

from __future__ import annotations

from collections.abc import Iterable


def protected(critical: Iterable[int], edges: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The versions that are critical or that a critical one was made from, however far, and for which one each stays.

    A critical version stays for itself, another for the nearest critical one, of several for the first.

    Args:
        critical: Numbers of versions.
        edges: What was made, and what it was made from, by their numbers.
    """
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
