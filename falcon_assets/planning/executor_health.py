"""What is known of an executor: whether it answers, how busy Spark says it is, and when it is asked again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated

from falcon_assets.planning.clock import is_set_back

_PAUSE = timedelta(seconds=15)
"""Between two probes of an executor that answers."""
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=5), timedelta(minutes=5)
_DOUBLINGS = 10
_STARTS_WITHIN = timedelta(minutes=5)
_WANTED_FOR = timedelta(minutes=2)
"""Coordinators say again and again that work waits."""
STALE_AFTER = timedelta(minutes=2)
"""Nobody probed for so long, as where the sensors are off: the figures of Spark are not used."""


class Health(str, Enum):
    """Whether an executor answers."""

    UNKNOWN = "UNKNOWN"
    """It was not asked yet; it is used."""
    STOPPED = "STOPPED"
    """It is provisioned, and nothing waits for it."""
    STARTING = "STARTING"
    """It was started, and does not answer yet."""
    ONLINE = "ONLINE"
    SUSPECT = "SUSPECT"
    """It did not answer once: it is not used, and asked again in some seconds."""
    OFFLINE = "OFFLINE"


@dataclass(frozen=True)
class Load:
    """What Spark says of its cores.

    Attributes:
        cores: How many there are.
        free: How many no application has.
        waiting: How many applications wait for cores.
        own: How many of those in use runs of this installation had then.
    """

    cores: int
    free: int
    waiting: int
    own: int = 0


@dataclass(frozen=True)
class Answer:
    """What a probe found; ``problem`` is empty where the executor answers, ``load`` None where nobody knows it."""

    problem: str = ""
    load: Load | None = None


@dataclass(frozen=True)
class ExecutorRecord:
    """An executor in ``falcon.executors``; all times are real, as executors do not follow the falcon clock."""

    cluster: str
    name: str
    endpoint: Annotated[str, "what the rest is about; of another one nothing is known"]
    failures: Annotated[int, "probes in a row without an answer"] = 0
    problem: Annotated[str, "why the last probe had no answer; empty: it had"] = ""
    since: Annotated[datetime | None, "when it began to answer, or not to, in real time; null: not asked yet"] = None
    probed_at: Annotated[datetime | None, "the last probe, in real time; null: none yet"] = None
    probe_at: Annotated[datetime | None, "the next probe, in real time; null: at once"] = None
    cores: Annotated[int | None, "by Spark; null: not known, as the following"] = None
    free_cores: int | None = None
    waiting: Annotated[int | None, "applications that wait for cores"] = None
    own_cores: Annotated[int | None, "cores of our runs at that time"] = None
    told: Annotated[str, "the health that receivers know; empty: none"] = ""
    provisioned: Annotated[bool, "whether it is started when work waits for it"] = False
    wanted_at: Annotated[datetime | None, "provisioned: when work waited for it last, in real time"] = None
    launched_at: Annotated[datetime | None, "provisioned: when it was started, in real time; null: it is stopped"] = (
        None
    )
    idle_since: Annotated[datetime | None, "provisioned: since when nothing runs on it; null: something does"] = None

    @property
    def health(self) -> Health:
        if self.provisioned and self.probed_at is None:
            return Health.STOPPED if self.launched_at is None else Health.STARTING
        if self.probed_at is None:
            return Health.UNKNOWN
        if not self.failures:
            return Health.ONLINE
        return Health.SUSPECT if self.failures == 1 else Health.OFFLINE

    @property
    def settled_health(self) -> str:
        """The health that receivers are told of; empty: it may be another one in a moment."""
        return self.health.value if self.health in (Health.ONLINE, Health.OFFLINE) else ""

    def load(self, now: datetime) -> Load | None:
        """None: not known, or too old."""
        if self.cores is None or self.probed_at is None or now - self.probed_at > STALE_AFTER:
            return None
        return Load(self.cores, self.free_cores or 0, self.waiting or 0, self.own_cores or 0)

    def is_wanted(self, now: datetime) -> bool:
        """Whether work waits for it, and it may be started now: it did not fail just before."""
        at = self.wanted_at
        return self.launched_at is None and at is not None and now - at < _WANTED_FOR and self.is_due(now)

    def launched(self, now: datetime) -> ExecutorRecord:
        """Returns the record when it has been started; failures of former starts count until it answers."""
        return replace(self, launched_at=now, idle_since=None, probed_at=None, probe_at=None, wanted_at=None)

    def failed(self, problem: str, now: datetime) -> ExecutorRecord:
        """Returns the record when it ended, or could not be started: it is started again after a while."""
        return replace(self, launched_at=None).after(Answer(problem), now)

    def stopped(self) -> ExecutorRecord:
        """Returns the record when it was stopped, as it was idle."""
        return ExecutorRecord(self.cluster, self.name, self.endpoint, told=self.told, provisioned=True)

    def is_due(self, now: datetime) -> bool:
        """Whether it is to be probed; also where the clock was set back since."""
        at = self.probe_at
        return at is None or at <= now or (self.probed_at is not None and is_set_back(self.probed_at, now))

    def after(self, answer: Answer, now: datetime) -> ExecutorRecord:
        """Returns the record after a probe; one that does not answer is asked again, each time after twice the wait.

        One that was just started has time until it answers first.
        """
        if answer.problem and self.health is Health.STARTING and self._has_time(now):
            return replace(self, probe_at=now + _FIRST_WAIT)
        failures = self.failures + 1 if answer.problem else 0
        changed = self.since is None or bool(self.failures) != bool(failures)
        wait = min(_FIRST_WAIT * (1 << min(failures - 1, _DOUBLINGS)), _LONGEST_WAIT) if failures else _PAUSE
        load = answer.load
        return replace(
            self,
            failures=failures,
            problem=answer.problem,
            since=now if changed else self.since,
            probed_at=now,
            probe_at=now + wait,
            cores=load.cores if load else None,
            free_cores=load.free if load else None,
            waiting=load.waiting if load else None,
            own_cores=load.own if load else None,
        )

    def _has_time(self, now: datetime) -> bool:
        return self.launched_at is not None and now - self.launched_at < _STARTS_WITHIN
