"""A program: delivers what a pickle on stdin says, and stops at a step, its argument, until a line comes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WritePart, WriteRequest, datasource_types

BATCH, BATCHES, PARTS = 500, 6, 2
STEPS = ("opened", "loading", "loaded", "moved", "committed")
"""Where a driver may die; a worker only while it is loading."""


@dataclass(frozen=True)
class Delivery:
    """What the program does; with a ``part`` it is a worker, which loads that."""

    access: Access
    request: WriteRequest
    first: int
    part: WritePart | None = None


def batches(first: int, number: int, reached: str = "") -> Iterator[pa.RecordBatch]:
    """The rows of a part: numbers from ``first`` on, with texts of them; stops in the middle at a step."""
    for batch in range(BATCHES):
        if batch == BATCHES // 2:
            stop("loading", reached)
        ids = range(first + (number * BATCHES + batch) * BATCH, first + (number * BATCHES + batch + 1) * BATCH)
        names = [f"order {one}" for one in ids]
        yield pa.RecordBatch.from_arrays([pa.array(ids, pa.int64()), pa.array(names)], ["id", "name"])


def stop(step: str, reached: str) -> None:
    """Says that it is there, and waits for a line, if that is the step."""
    if step == reached:
        sys.stdout.write(f"{step}\n")
        sys.stdout.flush()
        sys.stdin.readline()


def main(step: str) -> None:
    given: Delivery = pickle.load(sys.stdin.buffer)
    if given.part is not None:
        given.part.load(0, 0, batches(given.first, 0, step))
        return
    with datasource_types()[given.access.type].open_writing(given.access, given.request) as writing:
        stop("opened", step)
        if writing.delivered is None:
            parts = 1 if given.access.type == "sqlite" else PARTS
            loaded = []
            for number in range(parts):
                reached = step if number == parts - 1 else ""
                rows = writing.part.load(number, 0, batches(given.first, number, reached))
                loaded.append(LoadedPart(number, 0, rows))
            stop("loaded", step)
            writing.commit(loaded, lambda: stop("moved", step))
        stop("committed", step)


if __name__ == "__main__":
    main(sys.argv[1])
