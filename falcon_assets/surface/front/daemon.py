"""The daemon of ``falcon serve``, in a process of its own: it has all imports done before it is its turn."""

from __future__ import annotations

import sys
from pathlib import Path

from falcon_assets.errors import FalconError
from falcon_assets.history.dagster_internals.launching import dagster_daemon
from falcon_assets.history.platform import instance_storage  # noqa: F401 - what dagster.yaml names
from falcon_assets.history.platform.active_daemon import ActiveDaemon
from falcon_assets.history.platform.postgres import database_url
from falcon_assets.settings import load_settings


def main(workspace: Path) -> None:
    """Runs Dagster's daemon for the code locations of a ``workspace.yaml`` once it is the active one."""
    run = dagster_daemon(workspace)
    ActiveDaemon(database_url(load_settings()), print).begin()
    run()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except FalconError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(0)
