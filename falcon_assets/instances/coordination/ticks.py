"""Ticks of sensors: their messages in the UI, and their rhythm."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from falcon_assets.errors import count_of
from falcon_assets.history.queries import Name
from falcon_assets.instances.coordination.coordinator import Outlook
from falcon_assets.instances.rules.situation import Decision
from falcon_assets.instances.rules.standing import Waits
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import Clock
from falcon_assets.planning.instance_record import Launch

_SHOWN = 5
_LOGGED = 20


def nothing_started(standing: Mapping[Name, Waits], problems: Mapping[Name, str]) -> str:
    """One line per workload: how many instances wait, and for what the first does."""
    waiting = {key: (*one.first, one.waiting) for key, one in standing.items() if one.first}
    total = sum(one.waiting for one in standing.values())
    in_runs = count_of(sum(one.in_runs for one in standing.values()), "instance is in a run", "instances are in runs")
    lines = [f"nothing is ready; {in_runs}, {count_of(total, 'waits', 'wait')}"]
    lines += [f"{name} on {cluster}: {why}" for (name, cluster), why in list(problems.items())[:_SHOWN]]
    for (name, cluster), (nominal, reason, number) in list(waiting.items())[:_SHOWN]:
        more = f", and {count_of(number - 1, 'more waits', 'more wait')}" if number > 1 else ""
        lines.append(f"{name} on {cluster} {format_instant(nominal)} {reason}{more}")
    if len(waiting) > _SHOWN:
        more = count_of(len(waiting) - _SHOWN, "more process", "more processes")
        lines.append(f"... and instances of {more}: see the log of earlier ticks")
    return "\n".join(lines)


def done(outlook: Outlook) -> Iterator[str]:
    for run in outlook.runs:
        late = "late rerun of " if run.launch.late else ""
        yield f"starts {late}{run.workload.name} on {run.workload.cluster} {_times(run.launch)}"
    for (name, cluster), decision in outlook.decisions.items():
        for word, instances in (("timed out", decision.timed_out), ("is skipped", decision.skipped)):
            for nominal, reason in instances[:_LOGGED]:
                yield f"{name} on {cluster} {format_instant(nominal)} {word}: {reason}"
            if len(instances) > _LOGGED:
                yield f"... and {count_of(len(instances) - _LOGGED, 'more instance')} of {name} on {cluster}"


def further_wait(others: int, name: str, cluster: str) -> str:
    where = f"{name} on {cluster}"
    return f"... and {count_of(others, f'more instance of {where} waits', f'more instances of {where} wait')}"


@dataclass
class WaitingNews:
    """Logs waiting instances only when something changed: a tick every five seconds would repeat them all day."""

    _before: dict[Name, set[str]] = field(default_factory=dict)

    def news(self, decisions: Mapping[Name, Decision]) -> list[str]:
        """The lines that the last decision on the same workload did not have."""
        new = []
        for key, decision in decisions.items():
            lines = list(_waiting(*key, decision))
            new += [line for line in lines if line not in self._before.get(key, ())]
            self._before[key] = set(lines)
        return new


def _waiting(name: str, cluster: str, decision: Decision) -> Iterator[str]:
    for nominal, reason in islice(decision.waiting.items(), _LOGGED):
        yield f"{name} on {cluster} {format_instant(nominal)} {reason}"
    others = max(len(decision.waiting) - _LOGGED, 0) + decision.further
    if others:
        yield further_wait(others, name, cluster)


def _times(launch: Launch) -> str:
    times: Sequence[str] = list(dict.fromkeys(map(format_instant, (launch.nominals[0], launch.nominals[-1]))))
    return " to ".join(times)


INTERVAL_SECONDS = 4
"""Least time between the beginnings of two ticks; Dagster's loop over all sensors makes five of it."""
AGAIN_SECONDS = 1
"""The same of coordinators: a tick that launches ends at once, and what lands in between waits."""
_TICK_SECONDS = 4.5
"""How long a tick begins new rounds: until just before the next tick."""
_WATCHING_SECONDS = 29.5
"""How long a tick does that is told when something happens; Dagster gives a tick 60 seconds, and a round takes 25."""
_PAUSE_SECONDS = 0.5
_SHARE = 20
"""Rounds take at most one part in 20 of the time, so that long ones are not repeated."""
_SHARE_OF_NEWS = 4
"""Those that are told that something happened may take more."""
_SHORTEST_SECONDS = 0.05
_ticks_that_wait = Counter[str]()
_counting = threading.Lock()


def rounds(clock: Clock, at_once: int = 2, wait: Callable[[float], None] | None = None) -> Iterator[None]:
    """Yields at once, and then every half second until the tick has to end.

    Yields once only where the clock stands still, where rounds take long, or where ``at_once`` ticks wait already.
    ``wait(seconds)`` returns as soon as something happens: the next round is then, and the tick ends later.
    """
    end = time.monotonic() + (_WATCHING_SECONDS if wait else _TICK_SECONDS)
    began = time.monotonic()
    yield
    stands_still = clock.origin is not None and not clock.runs
    if stands_still or not _may_wait(at_once):
        return
    try:
        while True:
            took = time.monotonic() - began
            pause = max(_SHORTEST_SECONDS, _SHARE_OF_NEWS * took) if wait else max(_PAUSE_SECONDS, (_SHARE - 1) * took)
            if time.monotonic() + pause > end:
                return
            time.sleep(pause)
            if wait:
                wait(end - time.monotonic())
            began = time.monotonic()
            yield
    finally:
        with _counting:
            _ticks_that_wait["all"] -= 1


def _may_wait(at_once: int) -> bool:
    """Each waiting tick needs a thread of the code server, which the UI needs, too."""
    with _counting:
        is_free = _ticks_that_wait["all"] < at_once
        _ticks_that_wait["all"] += is_free
    return is_free
