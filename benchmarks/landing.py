"""From a file landing to its output being published under ``dagster dev``: ours, and a stock sensor and asset."""

from __future__ import annotations

import random
import tempfile
import time
from datetime import datetime
from pathlib import Path

from benchmarks.landing_data import recent_hours
from benchmarks.landing_sides import Ours, Side, Stock
from benchmarks.measure import Line, alternate

BAR = 0.2
"""At least five times faster."""
ROUNDS = 5


def measure() -> list[Line]:
    """Lands hours in turn here and there; the first on each side, which wait for everything to start, do not count."""
    hours = recent_hours(ROUNDS + 1)
    with tempfile.TemporaryDirectory() as folder:
        ours, stock = Ours(Path(folder, "ours"), hours[0]), Stock(Path(folder, "stock"), hours[0])
        with stock.running(), ours.running():
            ours.seconds(hours[0])
            stock.seconds(hours[0])
            left = iter(hours[1:]), iter(hours[1:])
            rounds = list(
                alternate(ROUNDS, lambda: _landing(ours, next(left[0])), lambda: _landing(stock, next(left[1])))
            )
            phases = [ours.phases(hour) for hour in hours[1:]]
    mine, plain = zip(*rounds, strict=True)
    whole = Line("landed to published under dagster dev", mine, plain, BAR)
    return [whole, *(Line(f"  until it was {what}", tuple(one[what] for one in phases)) for what in phases[0])]


def _landing(side: Side, hour: datetime) -> float:
    """Lands the hour anywhere between two ticks of the side's sensors."""
    time.sleep(random.uniform(0, side.period))
    return side.seconds(hour)
