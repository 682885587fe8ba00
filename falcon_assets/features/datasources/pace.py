"""How many rows or bytes a second a worker may move."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Pace:
    """Keeps a worker from moving more than its share; ``per_second`` None: it may move as much as it can.

    It never makes up for more than a second in which it was slower.
    """

    per_second: float | None
    _due: float = field(default_factory=time.monotonic, init=False)

    def moved(self, amount: int) -> None:
        """Sleeps until ``amount`` more, which were just moved, are within the share."""
        if self.per_second is None:
            return
        now = time.monotonic()
        self._due = max(self._due, now - 1.0) + amount / self.per_second
        if self._due > now:
            time.sleep(self._due - now)


def paced(batches: Iterator[pa.RecordBatch], rows_per_second: float | None) -> Iterator[pa.RecordBatch]:
    """Yields the rows, not faster than that: at most those of a second at once."""
    pace = Pace(rows_per_second)
    for batch in batches:
        step = max(1, int(rows_per_second or batch.num_rows))
        for at in range(0, batch.num_rows, step):
            yield (piece := batch.slice(at, step))
            pace.moved(piece.num_rows)
