"""A disk without room for another folder, as a full ext4 is: what is there can still get other names."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any

from tests.processes import forked


def on_a_full_disk(work: Callable[[], object]) -> None:
    """Does ``work`` in a child for which the system has no room for folders; it must succeed."""

    def without_room() -> None:
        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event == "os.mkdir" and not os.path.lexists(args[0]):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(args[0]))

        sys.addaudithook(hook)
        work()

    assert os.waitpid(forked(without_room), 0)[1] == 0
