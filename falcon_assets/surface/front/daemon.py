"""The daemon of ``falcon serve``, in a process of its own: it has all imports done before it is its turn."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from falcon_assets.errors import FalconError
from falcon_assets.history.dagster_internals.launching import dagster_daemon, to_be_started
from falcon_assets.history.platform import instance_storage  # noqa: F401 - what dagster.yaml names
from falcon_assets.history.platform.active_daemon import ActiveDaemon
from falcon_assets.history.platform.interrupted_runs import cut_off_if_unstarted
from falcon_assets.history.platform.open_instance import open_instance
from falcon_assets.history.platform.postgres import database_url
from falcon_assets.settings import Settings, load_settings

_START_SECONDS = 60.0
"""For what the former daemon has begun to start, as its machine may live."""


def main(workspace: Path) -> None:
    """Runs Dagster's daemon for the code locations of a ``workspace.yaml`` once it is the active one."""
    run, settings = dagster_daemon(workspace), load_settings()
    ActiveDaemon(database_url(settings), print).begin()
    with open_instance(settings) as instance:
        left = [one.run_id for one in to_be_started(instance)]
    if left:
        threading.Thread(target=_free, args=(settings, left), name="what nobody starts", daemon=True).start()
    run()


def _free(settings: Settings, run_ids: Iterable[str]) -> None:
    time.sleep(_START_SECONDS)
    with open_instance(settings) as instance:
        cut_off_if_unstarted(instance, run_ids)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except FalconError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(0)
