"""Colos that fail while they are changed at random: what happens to them, and what must hold afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.features.colos.installations import Installation, Network
from tests.features.colos.random_changes import Asked, Model
from tests.waiting import wait_until

IN_TIME = 60
"""Seconds after its return in which a colo gets what was asked of it, on a machine that has a processor for each who
wants one."""
AHEAD = 3 * 3600


@contextmanager
def cut_off(network: Network, one: Installation) -> Iterator[None]:
    one.machine.unplug()
    yield
    one.machine.plug_in()


@contextmanager
def slow(network: Network, one: Installation) -> Iterator[None]:
    """So that requests take longer than they may, or nearly."""
    one.machine.slow("2kbit")
    yield
    one.machine.fast()


@contextmanager
def restarted(network: Network, one: Installation) -> Iterator[None]:
    one.kill()
    yield
    one.start()
    wait_until(lambda: network.answers(one), 600, network.logs)


@contextmanager
def full(network: Network, one: Installation) -> Iterator[None]:
    one.fill()
    yield
    one.free()


@contextmanager
def other_time(network: Network, one: Installation) -> Iterator[None]:
    one.set_clock(AHEAD)
    wait_until(lambda: abs(_ahead(network, one) - AHEAD) < IN_TIME, 600, "the other time")
    yield
    one.set_clock(0)


def _ahead(network: Network, one: Installation) -> float:
    """By how much its clock is ahead, as the front shows it."""
    shown = network.ask("GET", "/admin:colos").json()["colos"]
    (found,) = (each["clock_difference"] for each in shown if each["url"] == one.url)
    return float(found or 0)


Fault = Callable[[Network, Installation], Any]
FAULTS: Mapping[str, Fault] = {
    "cut off": cut_off,
    "slow": slow,
    "restarted": restarted,
    "its disk full": full,
    "its clock off": other_time,
}


@dataclass
class Soak:
    """Changes of a network with a model.

    Attributes:
        said: Colo and number of a request -> what the front answered about it.
    """

    network: Network
    model: Model
    said: dict[tuple[str, int], str] = field(default_factory=dict)

    def ask(self, asked: Asked) -> None:
        how = {"params": asked.body} if asked.method == "DELETE" else {"json": asked.body}
        began = time.monotonic()
        answer = self.network.ask(asked.method, asked.path, **how)
        colos = answer.json().get("colos", ())
        self.said |= {(one["colo"], asked.number): one["outcome"] for one in colos}
        outcomes = {one["colo"]: one["outcome"] for one in colos}
        print(f"  {asked.number} {asked.word} {answer.status_code} {outcomes} {time.monotonic() - began:.1f} s")  # noqa: T201 - a measurement
        assert answer.status_code in asked.expected, f"{asked}: {answer.text}"
        assert "refused" not in outcomes.values(), f"{asked}: {answer.text}"

    def round(self, faults: Mapping[str, str], changes: int) -> None:
        """Makes changes while colos have faults; they have all that was asked for in time after their return."""
        print(f"{faults}")  # noqa: T201 - as above
        with ExitStack() as failing:
            for colo, fault in faults.items():
                failing.enter_context(FAULTS[fault](self.network, self.network.colos[colo]))
            for _ in range(changes):
                self.ask(self.model.change())
        back, left = time.monotonic(), {*self.network.colos}
        busy = _busy()

        def is_over() -> bool:
            nonlocal busy
            busy = max(busy, _busy())
            for done in left - {one.partition(":")[0] for one in self.differences()}:
                took = time.monotonic() - back
                print(f"  {done} is as it is to be {took:.1f} s after the return")  # noqa: T201 - as above
                assert took < IN_TIME * busy, f"{done}: {took:.1f} s, with {busy:.1f} for each processor"
                left.remove(done)
            return not left

        wait_until(is_over, 10 * IN_TIME, lambda: f"{self.differences()}\n{self.network.logs()}")

    def settle(self) -> None:
        """Until nothing is in doubt any more, and nothing comes after it."""
        wait_until(lambda: not self._pending(), 600, lambda: f"{self._pending()}\n{self.network.logs()}")
        assert self.differences() == []

    def _pending(self) -> list[Any]:
        shown = self.network.ask("GET", "/admin:colos").json()["colos"]
        return [each for each in shown if each["pending"] or each["problem"]]

    def differences(self) -> list[str]:
        """What colos have otherwise than they are to, as their files and databases say."""
        found = []
        for colo, wanted in self.model.there.items():
            there, statuses = self.network.colos[colo].entities(), self.network.colos[colo].statuses()
            for key in sorted({*wanted, *there} - _BESIDE):
                if key not in wanted or wanted[key].definition != there.get(key):
                    found.append(f"{colo}: {key}: {there.get(key)} instead of {wanted.get(key)}")
                elif wanted[key].status not in (None, statuses.get(key, "SUBMITTED")):
                    found.append(f"{colo}: {key} is {statuses.get(key)} instead of {wanted[key].status}")
        return found

    def check_history(self) -> None:
        """Nothing was done twice, or again after something later."""
        for colo, one in self.network.colos.items():
            for key, numbers in _numbers(one).items():
                asked = self.model.written.get((colo, key), [])
                done = [number for number in asked if self.said.get((colo, number)) == "done"]
                assert numbers == sorted({*numbers}), f"{colo}: {key}: {numbers}: each once, in order"
                assert {*done} <= {*numbers} <= {*asked}, f"{colo}: {key}: {numbers}, asked {asked}, done {done}"
            twice = one.rows(_TWICE)
            assert twice == [], f"{colo}: {twice}"


def _busy() -> float:
    """How many want a processor, for each that there is; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


_BESIDE: Collection[tuple[str, str]] = {("cluster", "lake"), ("feed", "copied")}
"""What is copied is no part of the random changes."""
_TWICE = """
SELECT operation, reason, entities::text, count(*) FROM falcon.audit
WHERE result = 'done' AND operation IN ('schedule', 'suspend', 'resume', 'submit', 'delete')
GROUP BY operation, reason, entities::text HAVING count(*) > 1
"""


def _numbers(one: Installation) -> dict[tuple[str, str], list[int]]:
    """The numbers of the requests that its history of definitions has, for each entity, in their order."""
    found: dict[tuple[str, str], list[int]] = {}
    query = "SELECT kind, name, text FROM falcon.definition_versions WHERE text IS NOT NULL ORDER BY version"
    for kind, name, text in one.rows(query):
        if (kind, name) not in _BESIDE:
            found.setdefault((kind, name), []).append(int(text.partition("request ")[2].split()[0].strip("'\"")))
    return found
