"""Where an expression lies relative to the nominal time, where that is the same for every instance of a process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from falcon_assets.model.expression import Call
from falcon_assets.model.expression_functions import FUNCTIONS, TimeFunction
from falcon_assets.planning.time.timeline import Timeline

_DAY = timedelta(days=1)
_ZERO = timedelta()
_SHORTEST_MONTH = 28 * _DAY


@dataclass(frozen=True)
class Shift:
    """Calendar months, then time on the wall clock, from the nominal time.

    Attributes:
        months: Calendar months.
        time: Added after them.
        is_on_the_wall: False where ``time`` is absolute time, as ``now`` adds it.
    """

    months: int
    time: timedelta
    is_on_the_wall: bool = True

    @property
    def length(self) -> timedelta:
        """An upper bound of its length."""
        return abs(self.time) + 31 * abs(self.months) * _DAY

    @property
    def floored_months(self) -> int:
        """Months to the latest whole month at or before it; of a short shift only."""
        return self.months - (self.time < _ZERO)

    @property
    def is_short(self) -> bool:
        """Whether it stays within a month of a whole number of months."""
        return abs(self.time) < _SHORTEST_MONTH

    def is_before_or_at(self, other: Shift) -> bool:
        """Whether it never lies after ``other``, by the shortest months there are."""
        return self.time <= other.time + (other.months - self.months) * _SHORTEST_MONTH and self.months <= other.months


def absolute_shift(call: Call) -> timedelta | None:
    """Absolute time from the nominal time to ``call``; None where it depends on a calendar, or the call is no time."""
    function = FUNCTIONS[call.name]
    return function.absolute(call.args) if isinstance(function, TimeFunction) else None


def wall_shift(call: Call, process: Timeline) -> Shift | None:
    """The shift of ``call``, None where it is not the same for every instance of ``process``.

    Speaks of the wall clock: whether the zone lets the nominal times keep theirs is for the caller to check.
    """
    absolute = absolute_shift(call)
    if absolute is not None:
        return Shift(0, absolute, is_on_the_wall=absolute == _ZERO)
    function = FUNCTIONS[call.name]
    found = (
        function.shift(call.args, process.local_start, process.frequency)
        if isinstance(function, TimeFunction)
        else None
    )
    return None if found is None else Shift(*found)
