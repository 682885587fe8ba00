"""Which executor of a cluster gets a run: pure decisions, from what is known of each at a moment."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from falcon_assets.errors import count_of
from falcon_assets.model.executor import Capability, ClusterExecutor
from falcon_assets.planning.executor_health import Load
from falcon_assets.planning.reasons import Reason

_MOST = 1_000_000


class ObstacleKind(str, Enum):
    """Why an executor gets no run now."""

    UNABLE = "unable"
    OF_QUEUE = "of_queue"
    OFFLINE = "offline"
    STARTING = "starting"
    BUSY = "busy"


@dataclass(frozen=True)
class ExecutorObstacle:
    """One executor, and why it gets no run; ``text`` follows its name."""

    executor: str
    obstacle: ObstacleKind
    text: str

    def __str__(self) -> str:
        return f"{self.executor} {self.text}"


class NoExecutor(Reason):
    """No executor gets the run now."""

    executors: tuple[ExecutorObstacle, ...]

    def __str__(self) -> str:
        if len(self.executors) == 1:
            return f"waits for the executor {self.executors[0].executor}, which {self.executors[0].text}"
        return f"waits for an executor: {'; '.join(map(str, self.executors))}"


class ExecutorsBusy(NoExecutor):
    """One at least is online, and has no room."""


class ExecutorsStarting(NoExecutor):
    """One is started for it."""


class ExecutorsOffline(NoExecutor):
    """None that could do it is online."""


class ExecutorsUnable(NoExecutor):
    """None could do it, whenever it is."""

    def __str__(self) -> str:
        return f"no executor can do it: {'; '.join(map(str, self.executors))}"


@dataclass(frozen=True)
class ExecutorState:
    """An executor as one workload sees it.

    Attributes:
        executor: Its declaration.
        lacks: What the workload needs, and it cannot do.
        is_stopped: It is provisioned, and does not run yet, or does not answer yet.
        offline: Why it is not used, in words; "": it answers.
        jobs: How many instances run on it.
        cores: How many cores runs on it have.
        needs: How many cores a run of the workload has there; where it takes all that there are, that is said by
            Spark.
        load: None: nobody knows, so own counts have to do.
    """

    executor: ClusterExecutor
    lacks: Capability | None = None
    is_for_others: bool = False
    is_stopped: bool = False
    offline: str = ""
    jobs: int = 0
    cores: int = 0
    needs: int = 1
    load: Load | None = None

    @property
    def name(self) -> str:
        return self.executor.name

    @property
    def free_jobs(self) -> int:
        jobs = self.executor.quota.jobs
        return _MOST if jobs is None else max(jobs - self.jobs, 0)

    @property
    def free_cores(self) -> int | None:
        """Of those that Spark has, with runs that started and ended since; None: not known."""
        if self.load is None:
            return None
        came_back = max(self.load.own - self.cores, 0)
        return max(min(self.load.free + came_back, self.load.cores - self.cores), 0)

    @property
    def share(self) -> float:
        """How busy it is, from 0 to 1; without known limits, one run is half, two are two thirds."""
        free, quota = self.free_cores, self.executor.quota
        if self.load is not None and free is not None and self.load.cores > 0:
            return 1 - free / self.load.cores
        if quota.cores is not None:
            return min(self.cores / quota.cores, 1)
        if quota.jobs is not None:
            return min(self.jobs / quota.jobs, 1)
        return self.jobs / (self.jobs + 1)

    @property
    def obstacle(self) -> ExecutorObstacle | None:
        """Why it gets no run; None: it can have one."""
        if self.lacks is not None:
            source, target = self.lacks
            return self._obstacle(ObstacleKind.UNABLE, f"cannot move data from {source} to {target}")
        if self.is_for_others:
            return self._obstacle(ObstacleKind.OF_QUEUE, f"is for the queue {self.executor.queue}")
        if self.offline:
            return self._obstacle(ObstacleKind.OFFLINE, f"is offline: {self.offline}")
        if self.is_stopped:
            return self._obstacle(ObstacleKind.STARTING, "is being started")
        busy = self._busy
        return self._obstacle(ObstacleKind.BUSY, busy) if busy else None

    @property
    def _busy(self) -> str:
        quota = self.executor.quota
        if not self.free_jobs:
            return f"is busy: {self.jobs} of {quota.jobs} jobs are in use"
        # A run that needs more than all cores is alone: it would wait for ever else.
        if quota.cores is not None and self.cores and self.cores + self.needs > quota.cores:
            more = f", and it needs {count_of(self.needs, 'core')}"
            return f"is busy: {self.cores} of {quota.cores} cores are in use{more}"
        if self.load is None or not self.executor.takes_cores:
            return ""
        if self.load.waiting:
            return f"is busy: {count_of(self.load.waiting, 'application waits', 'applications wait')} there for cores"
        return "" if self.free_cores else f"is busy: none of its {count_of(self.load.cores, 'core')} is free"

    def _obstacle(self, obstacle: ObstacleKind, text: str) -> ExecutorObstacle:
        return ExecutorObstacle(self.name, obstacle, text)

    def with_run(self, slots: int) -> ExecutorState:
        """With one run more, of so many instances at once."""
        return replace(self, jobs=self.jobs + slots, cores=self.cores + self.needs)


@dataclass(frozen=True)
class ExecutorChoice:
    """The executors of a cluster for one workload, in the order of the definition."""

    states: Sequence[ExecutorState]

    def best(self, avoid: Collection[str] = ()) -> ExecutorState | None:
        """The least busy one with room; of those to ``avoid`` only where there is no other. None: none has room."""
        open_ = [(index, one) for index, one in enumerate(self.states) if one.obstacle is None]

        def order(indexed: tuple[int, ExecutorState]) -> tuple[bool, int, float, int, int]:
            index, one = indexed
            return one.name in avoid, one.load.waiting if one.load else 0, one.share, one.jobs, index

        return min(open_, key=order)[1] if open_ else None

    def at_once(self) -> str:
        """The name of the one for who does not wait for room: the least busy that answers, else the first that can."""
        able = [one for one in self.states if one.lacks is None]
        online = [one for one in able if not (one.offline or one.is_stopped)]
        return min(online, key=lambda one: one.share, default=(able or self.states)[0]).name

    def with_run(self, name: str, slots: int) -> ExecutorChoice:
        return ExecutorChoice([one.with_run(slots) if one.name == name else one for one in self.states])

    @property
    def to_start(self) -> list[str]:
        """The provisioned executors to start where none has room: the first that is stopped, and those that ended."""
        if self.refusal is None:
            return []
        mine = [one for one in self.states if one.executor.provision and one.obstacle]
        stopped = [one.name for one in mine if one.obstacle and one.obstacle.obstacle is ObstacleKind.STARTING]
        ended = [one.name for one in mine if one.obstacle and one.obstacle.obstacle is ObstacleKind.OFFLINE]
        return [*stopped[:1], *ended]

    @property
    def refusal(self) -> Reason | None:
        """Why none gets a run; None: one can."""
        found = [one.obstacle for one in self.states]
        obstacles = tuple(one for one in found if one is not None)
        if len(obstacles) < len(found):
            return None
        kinds = {one.obstacle for one in obstacles}
        able = tuple(one for one in obstacles if one.obstacle not in (ObstacleKind.UNABLE, ObstacleKind.OF_QUEUE))
        if ObstacleKind.STARTING in kinds:
            return ExecutorsStarting(able)
        if ObstacleKind.BUSY in kinds:
            return ExecutorsBusy(able)
        return ExecutorsOffline(able) if able else ExecutorsUnable(obstacles)
