"""Which volume gets a new instance."""

from __future__ import annotations

from collections.abc import Sequence


def roomiest(free: Sequence[int]) -> int:
    """Returns the number of the volume with the most free bytes; of equal ones the first. There is one at least."""
    return max(range(len(free)), key=lambda number: (free[number], -number))
