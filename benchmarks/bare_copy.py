"""The system calls that copying and verifying small files takes, and nothing else: no task can be faster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.pool import Pool
from pathlib import Path

from xxhash import xxh3_128_hexdigest

PROCESSES = 2
"""As many as the cluster of the benchmark has tasks at once."""


@contextmanager
def processes() -> Iterator[Pool]:
    """The processes, started and waiting."""
    with get_context("spawn").Pool(PROCESSES) as pool:
        pool.map(os.listdir, ["/"] * PROCESSES, chunksize=1)
        yield pool


def copy(pool: Pool, source: Path, target: Path) -> None:
    """Copies and verifies the files of one folder, shared out by their number.

    Raises:
        ValueError: a copy is not what was read.
        OSError: as the operating system says.
    """
    target.mkdir(parents=True)
    names = [path.name for path in source.iterdir()]
    parts = [(names[number::PROCESSES], str(source), str(target)) for number in range(PROCESSES)]
    pool.starmap(_copy, parts, chunksize=1)


def _copy(names: list[str], source: str, target: str) -> None:
    new = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    for name in names:
        read = os.open(f"{source}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        size = os.fstat(read).st_size
        content = os.read(read, size + 1)
        os.close(read)
        written = os.open(f"{target}/{name}", new, 0o666)
        os.write(written, content)
        if xxh3_128_hexdigest(os.pread(written, size + 1, 0)) != xxh3_128_hexdigest(content):
            raise ValueError(f"{name}: the copy differs from what was read")
        os.fstat(written)
        os.close(written)
