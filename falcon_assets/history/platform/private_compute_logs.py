"""Captured output of runs, readable by its owner only: programs may print secrets."""

from __future__ import annotations

import os
from pathlib import Path

from falcon_assets.history.dagster_internals.compute_logs import LocalLogs


class PrivateComputeLogManager(LocalLogs):
    def prepare(self, file: Path) -> None:
        """Creates the file, if missing, before Dagster would with the default mode."""
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
