"""What the instances of the fault tests do: they say when they begin and end, and notice when they are two."""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

JOURNAL = Path(os.environ["FALCON_HOME"]) / "journal"
SECONDS = 0.4


def run(spark: Any, inputs: Any, instance: Any) -> Any:
    """Twice the sum of what came in; nobody else may be at the same instance meanwhile."""
    name = f"{instance.process} {instance.nominal_time:%Y-%m-%dT%H:%MZ}"
    with (JOURNAL / f"{name}.lock").open("w") as lock:  # gone with the process, however it ends
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(name, "overlaps")
            raise
        say(name, "begins")
        time.sleep(SECONDS)  # this is the work
        (frame,) = inputs.values()
        return frame.selectExpr("sum(n) * 2 AS n")


def say(name: str, what: str) -> None:
    """One line at the end of the journal, in one write."""
    line = json.dumps({"instance": name, "what": what, "pid": os.getpid()}) + "\n"
    with (JOURNAL / "lines").open("a") as lines:
        lines.write(line)
