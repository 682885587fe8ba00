"""A delivery in a process of its own, which can be killed at each step of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import pyarrow as pa

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import LoadedPart, WritePart, WriteRequest, datasource_types

BATCH, BATCHES, PARTS = 500, 6, 2
STEPS = ("opened", "loading", "loaded", "moved", "committed")
"""Where a driver may die; a worker only while it is loading."""
_PROCESSES = get_context("forkserver")
_TYPES = [f"falcon_assets.features.datasources.types.{name}" for name in ("postgresql", "mysql", "sqlite")]
_PROCESSES.set_forkserver_preload(["pytest", __name__, *_TYPES])  # each of them starts in no time


@dataclass(frozen=True)
class Delivery:
    """What a process does; with a ``part`` it is a worker, which loads that."""

    access: Access
    request: WriteRequest
    first: int
    part: WritePart | None = None

    def start(self, step: str = "") -> Running:
        """Starts it, and waits until it is at the step, where it stays."""
        ours, theirs = _PROCESSES.Pipe()
        process = _PROCESSES.Process(target=_run, args=(self, step, theirs))
        process.start()
        theirs.close()
        if step:
            assert (said := ours.recv()) == step, said
        return Running(process, ours)


@dataclass(frozen=True)
class Running:
    process: BaseProcess
    line: Connection

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.line.close()

    def go_on(self) -> str:
        """Lets it go on to its end; returns what went wrong, empty: nothing."""
        self.line.send("go on")
        said = str(self.line.recv())
        self.process.join()
        self.line.close()
        return said


def batches(first: int, number: int, at: Callable[[str], None] = lambda _: None) -> Iterator[pa.RecordBatch]:
    """The rows of a part: numbers from ``first`` on, with texts of them."""
    for batch in range(BATCHES):
        if batch == BATCHES // 2:
            at("loading")
        ids = range(first + (number * BATCHES + batch) * BATCH, first + (number * BATCHES + batch + 1) * BATCH)
        names = [f"order {one}" for one in ids]
        yield pa.RecordBatch.from_arrays([pa.array(ids, pa.int64()), pa.array(names)], ["id", "name"])


def _run(what: Delivery, step: str, line: Connection) -> None:
    def at(reached: str) -> None:
        if reached == step:
            line.send(step)
            line.recv()

    try:
        _deliver(what, at)
    except DatasourceError as error:
        line.send(str(error))
    else:
        line.send("")


def _deliver(what: Delivery, at: Callable[[str], None]) -> None:
    if what.part is not None:
        what.part.load(0, 0, batches(what.first, 0, at))
        return
    with datasource_types()[what.access.type].open_writing(what.access, what.request) as writing:
        at("opened")
        if writing.delivered is None:
            loaded = []
            last = (1 if what.access.type == "sqlite" else PARTS) - 1
            for number in range(last + 1):
                made = batches(what.first, number, at) if number == last else batches(what.first, number)
                loaded.append(LoadedPart(number, 0, writing.part.load(number, 0, made)))
            at("loaded")
            writing.commit(loaded, lambda: at("moved"))
        at("committed")
