"""Dagster's daemon, which looks for sensors that are due every half second: its own five are hours of the weeks."""

from __future__ import annotations

import sys
from pathlib import Path

from dagster._daemon import sensor
from dagster._daemon.cli import main

from falcon_assets.surface.front import daemon

if __name__ == "__main__":
    sensor.MIN_INTERVAL_LOOP_TIME = 0.5
    if sys.argv[1] == "run":
        main()
    else:  # as ``falcon serve`` starts it
        daemon.main(Path(sys.argv[1]))
