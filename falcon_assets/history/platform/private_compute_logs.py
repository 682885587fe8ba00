"""What runs print, for nobody's eyes but its owner's: programs may say anything."""

from __future__ import annotations

import os
from pathlib import Path

from falcon_assets.history.dagster_internals.compute_logs import LocalLogs


class PrivateComputeLogManager(LocalLogs):
    """Keeps it in files that only their owner can read."""

    def prepare(self, file: Path) -> None:
        """Makes the file, if it is not there, before Dagster would for everybody."""
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600))
