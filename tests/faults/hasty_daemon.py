"""Dagster's daemon, which looks for sensors that are due every half second: its own five are hours of the weeks."""

from __future__ import annotations

from dagster._daemon import sensor
from dagster._daemon.cli import main

if __name__ == "__main__":
    sensor.MIN_INTERVAL_LOOP_TIME = 0.5
    main()
