"""What the definitions of a workload keep to themselves, so that no log of it shows it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeAlias, TypeVar

from falcon_assets.model.secret_values import secret_properties, secrets_of, secrets_of_feed
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.workloads import Workload


def known_secrets(installation: Installation, workload: Workload) -> Iterator[str]:
    """Secret properties, options of feeds and stores, and the token of a Spark Connect server."""
    environ, entities = installation.settings.environ, installation.entities
    clusters = [entities.cluster(one) for one in sorted({workload.cluster, workload.reads_on})]
    yield from secret_properties(workload.entity.properties)
    for cluster in clusters:
        yield from secrets_of(cluster, environ)
    used = {*(one.feed for one in workload.inputs), *(one.feed for one in workload.outputs)}
    for name in sorted(used & entities.feeds.keys()):
        yield from secrets_of_feed(entities.feeds[name], environ)


T = TypeVar("T")
Read: TypeAlias = Callable[[int, int], bytes]
"""So many bytes from an offset; none at the end."""

TAIL = 100
"""How many lines or events of a log are shown where not all are asked for."""
_BLOCK = 1 << 16
_TAIL_BYTES = 1 << 20


def last_of(items: Iterable[T], number: int = TAIL) -> tuple[list[T], bool]:
    """The last of the items, and whether there were more."""
    found = deque(items, number + 1)
    return list(found)[-number:], len(found) > number


def lines_of(read: Read, offset: int = 0) -> Iterator[str]:
    """The lines from an offset; one that never ends comes in parts, so that it fits in memory."""
    rest = b""
    while block := read(offset, _BLOCK):
        offset += len(block)
        *whole, rest = (rest + block).split(b"\n")
        yield from (line.decode(errors="replace").rstrip("\r") for line in whole)
        if len(rest) >= _BLOCK:
            yield rest.decode(errors="replace")
            rest = b""
    if rest:
        yield rest.decode(errors="replace")


def tail_of(read: Read, size: int | None) -> tuple[list[str], bool]:
    """The last lines of a log, and whether there are more; with its size, what lies long before them is not read."""
    start = max(0, (size or 0) - _TAIL_BYTES)
    lines = lines_of(read, start)
    if start:
        next(lines, None)  # a part of a line
    found, cut = last_of(lines)
    return found, cut or start > 0


def reading(file: Path) -> Read:
    """Reads a file, of which nothing is left where it has gone meanwhile."""

    def read(offset: int, size: int) -> bytes:
        try:
            with file.open("rb") as opened:
                opened.seek(offset, os.SEEK_SET)
                return opened.read(size)
        except FileNotFoundError:
            return b""

    return read
