"""Secrets of a workload's definitions, and reading of logs in lines and tails."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from falcon_assets.catalog.references import known_value
from falcon_assets.model.secret_values import secret_properties, secrets_of, secrets_of_feed
from falcon_assets.operations.installation import Installation
from falcon_assets.planning.workloads import Workload


def known_secrets(installation: Installation, workload: Workload) -> Iterator[str]:
    entities, known = installation.entities, partial(known_value, environ=installation.settings.environ)
    clusters = [entities.cluster(one) for one in sorted({workload.cluster, workload.reads_on})]
    yield from secret_properties(workload.entity.properties)
    for cluster in clusters:
        yield from secrets_of(cluster, known)
    used = {*(one.feed for one in workload.inputs), *(one.feed for one in workload.outputs)}
    for name in sorted(used & entities.feeds.keys()):
        yield from secrets_of_feed(entities.feeds[name], known)


T = TypeVar("T")
Read: TypeAlias = Callable[[int, int], bytes]
"""Reads a number of bytes from an offset; empty at the end."""

TAIL = 100
_BLOCK = 1 << 16
_TAIL_BYTES = 1 << 20


def last_of(items: Iterable[T], number: int = TAIL) -> tuple[list[T], bool]:
    found = deque(items, number + 1)
    return list(found)[-number:], len(found) > number


def lines_of(read: Read, offset: int = 0) -> Iterator[str]:
    """An endless line is split, so that it fits in memory."""
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
    """The last lines, and whether there are more; with the size, most of a long log is not read."""
    start = max(0, (size or 0) - _TAIL_BYTES)
    lines = lines_of(read, start)
    if start:
        next(lines, None)  # a part of a line
    found, cut = last_of(lines)
    return found, cut or start > 0


def reading(file: Path) -> Read:
    """Empty where the file was deleted meanwhile."""

    def read(offset: int, size: int) -> bytes:
        try:
            with file.open("rb") as opened:
                opened.seek(offset, os.SEEK_SET)
                return opened.read(size)
        except FileNotFoundError:
            return b""

    return read
