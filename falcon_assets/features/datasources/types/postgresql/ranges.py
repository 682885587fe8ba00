"""Ranges of pages, or of the values of a column, which the parts of a table have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

LEAST_PAGES = 128
"""Fewer are not worth a connection of their own."""


def page_ranges(pages: Sequence[int], parts: int) -> list[tuple[int, int | None]]:
    """Returns ranges of page numbers, the last without an end, each with about as many pages as the others.

    Args:
        pages: How many pages each partition of the table has; a range takes those numbers of every partition.
        parts: How many ranges there are at most.
    """
    total = sum(pages)
    count = max(1, min(parts, total // LEAST_PAGES))
    ends = [_page_with(pages, total * k // count) for k in range(1, count)]
    bounds = sorted({0, *ends})
    return [*pairwise(bounds), (bounds[-1], None)]


def _page_with(pages: Sequence[int], wanted: int) -> int:
    """The number below which the partitions have so many pages together."""
    below, above = 0, max(pages, default=0)
    while below < above:
        middle = (below + above) // 2
        if sum(min(one, middle) for one in pages) < wanted:
            below = middle + 1
        else:
            above = middle
    return below
