"""Claims on the instances that a run computes next, with the locks of a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from falcon_assets.history.database import locked
from falcon_assets.instances.runs import claims_ahead, run_locks
from falcon_assets.instances.runs.claims_ahead import ClaimsAhead
from falcon_assets.instances.runs.instance_claims import InstanceClaims
from falcon_assets.instances.runs.outcomes import LeftAlone
from falcon_assets.instances.runs.run_locks import RunLocks, instance_lock
from falcon_assets.model.instant import parse_instant

NOMINALS = [parse_instant("2013-01-01T00:00Z") + timedelta(hours=hour) for hour in range(24)]
GIVE_UP_SECONDS = 120


@pytest.fixture(scope="module")
def engine(postgres: str) -> Iterator[Engine]:
    """Waiting runs ask soon: what is tested is not how often."""
    with pytest.MonkeyPatch.context() as soon:
        soon.setattr(run_locks, "_RETRY_SECONDS", 0.01)
        yield sqlalchemy.create_engine(postgres, poolclass=sqlalchemy.NullPool)


@dataclass
class RunByHand:
    """A run by hand of some instances; ``turned``: why none may start."""

    locks: RunLocks
    nominals: Sequence[datetime]
    at_once: int = 1
    turned: str | None = None
    taken: list[list[str]] = field(default_factory=list)

    def claims(self) -> InstanceClaims:
        return InstanceClaims("p", "primary", "run", {}, None, self.locks, lambda said: None)  # type: ignore[arg-type]

    def ahead(self) -> ClaimsAhead:
        turns: Any = SimpleNamespace(why_not=self._why_not)
        return ClaimsAhead(self.claims(), turns, self.nominals, self.at_once)

    def _why_not(self, asked: Collection[datetime]) -> dict[datetime, str]:
        self.taken.append([f"{one:%H}" for one in asked])
        return {} if self.turned is None else dict.fromkeys(asked, self.turned)

    def compute(self, work: Callable[[datetime], None]) -> None:
        """Each instance in a thread, and gives it back at its end, as runs do."""
        ahead, claims = self.ahead(), self.claims()

        def one(nominal: datetime) -> None:
            assert ahead.take(nominal, nullcontext) is None
            work(nominal)
            claims.release([nominal])

        with ThreadPoolExecutor(self.at_once) as pool:
            list(pool.map(one, self.nominals))


@dataclass
class OwnClock:
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


def held(engine: Engine) -> list[datetime]:
    names = {instance_lock("p", "primary", one): one for one in NOMINALS}
    with engine.connect() as connection:
        return sorted(names[name] for name in locked(connection, names))


def locks(engine: Engine, name: str = "a run") -> RunLocks:
    return RunLocks(engine.url.render_as_string(hide_password=False), name, name)


def test_as_many_are_claimed_as_are_computed_in_a_moment(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = OwnClock()
    monkeypatch.setattr(claims_ahead, "time", clock)
    with locks(engine) as ours:
        run = RunByHand(ours, NOMINALS)
        ahead, claims = run.ahead(), run.claims()
        for nominal, seconds in zip(NOMINALS, [0.05] * 6 + [5.0] * 2 + [0.05] * 20, strict=False):
            assert ahead.take(nominal, nullcontext) is None
            clock.now += seconds
            claims.release([nominal])
        assert held(engine) == []
    hours = [" ".join(asked) for asked in run.taken]
    # The first alone, then five; a slow one makes what follows be claimed, or looked at, by itself.
    assert hours[:5] == ["00", "01 02 03 04 05", "06 07 08 09 10", "07", "08"]
    assert max(map(len, hours)) < len(NOMINALS)


def test_what_was_claimed_long_ago_is_looked_at_again(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = OwnClock()
    monkeypatch.setattr(claims_ahead, "time", clock)
    with locks(engine) as ours:
        run = RunByHand(ours, NOMINALS[:4], at_once=4)
        ahead = run.ahead()
        assert ahead.take(NOMINALS[0], nullcontext) is None
        assert held(engine) == NOMINALS[:4]
        run.turned = "it is suspended"
        assert ahead.take(NOMINALS[1], nullcontext) is None
        clock.now = 2.0
        assert ahead.take(NOMINALS[2], nullcontext) == LeftAlone("it is suspended", waits=True)
        assert held(engine) == [NOMINALS[0], NOMINALS[1], NOMINALS[3]]


@settings(max_examples=10, deadline=None)
@given(at_once=st.tuples(st.integers(1, 3), st.integers(1, 3)), orders=st.tuples(*[st.permutations(NOMINALS[:8])] * 2))
def test_two_runs_in_any_order_compute_no_instance_at_once_and_both_end(
    engine: Engine, at_once: tuple[int, int], orders: tuple[list[datetime], list[datetime]]
) -> None:
    """Each is claimed ahead by one while the other waits for it, and the other way round."""
    guard, at_work, done = Lock(), set[datetime](), list[datetime]()

    def work(nominal: datetime) -> None:
        with guard:
            assert nominal not in at_work
            at_work.add(nominal)
        with guard:
            at_work.remove(nominal)
            done.append(nominal)

    with locks(engine, "one") as one, locks(engine, "other") as other, ThreadPoolExecutor(2) as pool:
        runs = [RunByHand(own, order, many) for own, order, many in zip((one, other), orders, at_once, strict=True)]
        for ended in [pool.submit(run.compute, work) for run in runs]:
            ended.result(GIVE_UP_SECONDS)
    assert sorted(done) == sorted([*NOMINALS[:8]] * 2)
    assert held(engine) == []
