"""What queues admit: pure decisions about instances of all workloads of a queue."""

from __future__ import annotations

from dataclasses import dataclass, replace

from falcon_assets.errors import count_of
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.queue import Queue
from falcon_assets.model.shared import Acl
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.workloads import ProcessWorkload, Workload

_MOST = 1_000_000


class QueueFull(Reason):
    """``limit`` of ``what`` (jobs or cores), of which ``used`` are in use; ``needs`` is what a run takes."""

    queue: str
    what: str
    used: int
    limit: int
    needs: int

    def __str__(self) -> str:
        more = f", and it needs {count_of(self.needs, 'core')}" if self.what == "cores" else ""
        return f"waits for the queue {self.queue}: {self.used} of {self.limit} {self.what} are in use{more}"


class QueueUnknown(Reason, says="waits for the queue {queue}, which FALCON_QUEUES does not have"):
    queue: str


class QueueForbidden(Reason, says="may not use the queue {queue}, which is for {users}"):
    queue: str
    users: tuple[str, ...]


@dataclass(frozen=True)
class Admission:
    """What a queue admits of one workload.

    Attributes:
        denied: Why nothing is admitted, whatever is in use.
        jobs_used: How many instances of the queue are at work.
        cores_used: How many cores its runs have.
        cores: How many each run of the workload has.
    """

    name: str
    queue: Queue
    denied: Reason | None
    jobs_used: int
    cores_used: int
    cores: int

    @property
    def jobs(self) -> int:
        """How many instances may start."""
        if self.denied is not None:
            return 0
        return _MOST if self.queue.jobs is None else max(self.queue.jobs - self.jobs_used, 0)

    @property
    def runs(self) -> int:
        """In how many runs; one that needs more than all cores is alone, as it would wait for ever else."""
        if self.denied is not None:
            return 0
        if self.queue.cores is None:
            return _MOST
        return max((self.queue.cores - self.cores_used) // self.cores, 0 if self.cores_used else 1)

    def with_more(self, jobs: int, runs: int) -> Admission:
        """Returns what is admitted when so many more have started."""
        return replace(self, jobs_used=self.jobs_used + jobs, cores_used=self.cores_used + runs * self.cores)

    @property
    def refusal(self) -> Reason | None:
        """Why nothing more is admitted; None: it is."""
        if self.denied is not None:
            return self.denied
        if self.jobs <= 0:
            return QueueFull(self.name, "jobs", self.jobs_used, self.queue.jobs or 0, 1)
        if self.runs <= 0:
            return QueueFull(self.name, "cores", self.cores_used, self.queue.cores or 0, self.cores)
        return None


def admission(name: str, queue: Queue | None, acl: Acl | None, cores: int) -> Admission:
    """Returns what an empty queue admits of a workload whose runs have so many cores; ``acl`` of its entity."""
    denied: Reason | None = None
    if queue is None:
        denied = QueueUnknown(name)
    elif not queue.is_for(acl):
        denied = QueueForbidden(name, queue.users)
    return Admission(name, queue or Queue(), denied, 0, 0, cores)


def cores_of(workload: Workload, cluster: Cluster, machine: int) -> int:
    """How many cores a run of a workload has on its cluster; 1 where nothing says it."""
    if isinstance(workload, ProcessWorkload) and workload.entity.workflow.spark == "none":
        return 1
    said = {**cluster.properties, **workload.entity.properties}
    if here := cluster.interfaces.execute.tasks_at_once(machine):
        return here
    if most := _number(said.get("spark.cores.max")):
        return most
    return max(1, _number(said.get("spark.executor.instances")) * max(1, _number(said.get("spark.executor.cores"))))


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() else 0
