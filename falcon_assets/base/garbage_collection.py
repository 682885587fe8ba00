"""Work without Python's garbage collector, where it finds nothing and takes a large part of the time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Collects no garbage within: loading definitions makes many objects and no garbage, and it took half the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def imports_without_gc() -> Iterator[None]:
    with gc_paused():
        try:
            yield
        finally:
            gc.freeze()
