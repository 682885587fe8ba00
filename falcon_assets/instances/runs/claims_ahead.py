"""Claims of a run on the instances that it computes next: several statements for many, and not for each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from falcon_assets.instances.runs.commanded_stops import Turns
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.outcomes import LeftAlone

_AHEAD_SECONDS = 0.25
_MOST = 250
_STALE_SECONDS = 1.0


@dataclass(frozen=True)
class _ClaimedAhead:
    """``at`` is on the monotonic clock; ``left`` None: the instance is this run's."""

    at: float
    left: LeftAlone | None


class ClaimsAhead:
    """Claims instances as :class:`.InstanceClaims`, in their order; safe from several threads.

    With one it claims those that follow within a quarter of a second, as fast as the last ones were. What takes longer
    is checked again before it begins. No instance is kept from another run while this one waits for that run.
    """

    def __init__(self, claims: InstanceClaims, turns: Turns, nominals: Sequence[datetime], at_once: int) -> None:
        self._claims, self._turns = claims, turns
        self._coming = dict.fromkeys(nominals)
        self._claimed: dict[datetime, _ClaimedAhead] = {}
        self._number, self._at = at_once, time.monotonic()
        self._begins = True
        self._waiting = 0
        self._mutex = threading.Lock()

    def take(self, nominal: datetime, waiting: Callable[[], AbstractContextManager[None]]) -> LeftAlone | None:
        """Waits, within ``waiting``, while another run has it; None: it is this run's.

        Raises as :meth:`.InstanceClaims.take`.
        """
        with self._mutex:
            if nominal not in self._claimed:
                self._claim(nominal)
            claim = self._claimed.pop(nominal, None)
        if claim is not None and time.monotonic() - claim.at <= _STALE_SECONDS:
            return claim.left
        if turned := self._turns.why_not([nominal]):
            self._claims.release([nominal])
            return LeftAlone(turned[nominal], waits=True)

        @contextmanager
        def waits() -> Iterator[None]:
            with self._nothing_ahead(), waiting():
                yield

        why = self._claims.take(nominal, waits)
        return None if why is None else LeftAlone(why)

    def _claim(self, nominal: datetime) -> None:
        """Leaves out those that another run has: they are waited for in their turn."""
        self._coming.pop(nominal, None)
        asked = [nominal, *islice(self._coming, self._size() - 1)]
        self._number, self._at, self._begins = len(asked), time.monotonic(), False
        turned = {one: LeftAlone(why, waits=True) for one, why in self._turns.why_not(asked).items()}
        free = self._claims.take_free([one for one in asked if one not in turned])
        at = time.monotonic()
        for one in asked:
            self._coming.pop(one, None)
        self._claimed |= {
            one: _ClaimedAhead(at, LeftAlone(why) if why is not None else None) for one, why in free.items()
        }
        self._claimed |= {one: _ClaimedAhead(at, left) for one, left in turned.items()}

    def _size(self) -> int:
        if self._waiting:
            return 1
        if self._begins:
            return self._number
        each = (time.monotonic() - self._at) / self._number
        return max(1, int(_AHEAD_SECONDS / max(each, _AHEAD_SECONDS / _MOST)))

    @contextmanager
    def _nothing_ahead(self) -> Iterator[None]:
        """Else two runs, each of which waits for what the other has claimed and not begun, would wait for ever."""
        with self._mutex:
            self._waiting += 1
            ahead = [nominal for nominal, claim in self._claimed.items() if claim.left is None]
            for nominal in ahead:
                del self._claimed[nominal]
            self._coming = {**dict.fromkeys(ahead), **self._coming}
            self._claims.release(ahead)
        try:
            yield
        finally:
            with self._mutex:
                self._waiting -= 1
