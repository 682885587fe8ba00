"""The compiled listener of Spark for all tests: compiling takes six seconds of CPU time, so that is done once."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from falcon_assets.compute.spark.capture.listener_jar import ListenerJar

LISTENER_HOME = Path(__file__).parents[1] / ".pytest_cache" / "falcon"
"""A ``FALCON_HOME`` in which it is, or will be; other checkouts have their own."""


def share_listener(home: Path | str) -> None:
    """Puts it into another ``FALCON_HOME``, whose Spark would compile it."""
    made = ListenerJar(LISTENER_HOME).made(os.environ)
    target = ListenerJar(Path(home)).path
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        try:
            os.link(made, target)
        except FileExistsError:
            raise
        except OSError:  # another file system
            shutil.copy(made, target)
