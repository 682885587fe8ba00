"""Has the code servers of a machine load definitions that have changed, whoever has changed them.

Each machine has code servers of its own, of which Dagster's UI and commands reach only those of their front.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from falcon_assets.catalog.store import load_entities
from falcon_assets.catalog.watched_definitions import definitions_state
from falcon_assets.errors import FalconError
from falcon_assets.settings import load_settings

_LOOK_SECONDS = 5.0
"""A change that is the same at two looks is complete."""


@dataclass(frozen=True)
class Reloading:
    """What is to be reloaded.

    Attributes:
        root: The folder of the definitions.
        sockets: Those of the code servers.
        environ: Of the program that has them reloaded: Dagster is loaded only there.
        say: Prints a line.
    """

    root: Path
    sockets: Sequence[Path]
    environ: Mapping[str, str]
    say: Callable[[str], object]

    def begin(self) -> None:
        """Looks after them in the background, as long as this process lives."""
        threading.Thread(target=self._watch, name="reloads changed definitions", daemon=True).start()

    def _watch(self) -> None:
        loaded = seen = definitions_state(self.root)
        while True:
            time.sleep(_LOOK_SECONDS)
            before, seen = seen, definitions_state(self.root)
            if seen == before != loaded:
                loaded = seen
                self._reload()

    def _reload(self) -> None:
        command = [sys.executable, "-m", __name__, *map(str, self.sockets)]
        done = subprocess.run(
            command, env=dict(self.environ), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        for line in (done.stdout + done.stderr).splitlines():
            self.say(line)


def reloaded(sockets: Sequence[str]) -> str:
    """Reloads the code servers, unless they could not load what there is now; returns a sentence."""
    settings = load_settings()
    try:
        load_entities(settings.entity_defs, home=settings.home)
    except FalconError:
        return "the definitions were changed and have problems: falcon validate lists them; the former ones stay loaded"
    from falcon_assets.history.dagster_internals.launching import reload_code_server  # noqa: PLC0415 - takes seconds

    for socket in sockets:
        reload_code_server(socket)
    return "the definitions were changed: they are reloaded"


if __name__ == "__main__":
    sys.stdout.write(f"{reloaded(sys.argv[1:])}\n")
