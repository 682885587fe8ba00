"""A workflow's task and result; a workflow may end its instance, but not the process, which computes others."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from falcon_assets.base.texts import keep_secret
from falcon_assets.compute.executor import Executor
from falcon_assets.compute.spark.data.dataset import InputData, OutputData
from falcon_assets.history.events.record import Record
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.secret_values import secret_properties, secrets_of, secrets_of_feed
from falcon_assets.model.workflow import Workflow
from falcon_assets.planning.captured import Captured

_OWN = "falcon_assets."
_lock = threading.Lock()
_computing: list[int] = []
_exit = os._exit


@contextmanager
def exits_refused() -> Iterator[None]:
    """Lets ``os._exit`` raise SystemExit, as ``sys.exit`` does: it would end the process without any record.

    This package itself can still exit, and so can the children that a workflow forks.
    """
    with _lock:
        os._exit = _refuse
        _computing.append(os.getpid())
    try:
        yield
    finally:
        with _lock:
            _computing.pop()
            if not _computing:
                os._exit = _exit


def _refuse(status: int) -> NoReturn:
    caller = str(sys._getframe(1).f_globals.get("__name__", ""))
    if os.getpid() in _computing and not caller.startswith(_OWN):
        raise SystemExit(f"os._exit({status}) would end the run as well: return, or raise an error")
    _exit(status)


@dataclass(frozen=True)
class Instance:
    """The third argument of ``run(spark, inputs, instance)``.

    Attributes:
        process: Name of the process.
        cluster: Name of the cluster it runs on.
        nominal_time: The instance's time, aware, in UTC.
        properties: Properties of the cluster and of the process, the latter winning.
        inputs: Input name -> folders of its instances, oldest first.
        outputs: Output name -> folder in staging; what ``run`` returns is written there, so most workflows ignore it.
    """

    process: str
    cluster: str
    nominal_time: datetime
    properties: Mapping[str, str]
    inputs: Mapping[str, tuple[str, ...]]
    outputs: Mapping[str, str]


@dataclass(frozen=True)
class WorkflowTask:
    """A process instance to compute, with all names, paths and variables resolved.

    Attributes:
        nominal: The instance's nominal time, aware.
        entity_root: Folder that the workflow's path is relative to.
        properties: Properties of the cluster and of the process, interpolated, the latter winning.
        working: The cluster's working folder, path or URL; logs of programs are below it if it is on this machine.
        timezone: The process's zone, in which expressions in arguments are evaluated.
        user: The value of ``user()`` in them.
        settings: Spark properties of the process, which override those of the cluster.
        unchanged: Raises StorageError where an input was refreshed since it was read; for effects without output.
    """

    process: str
    executor: Executor
    nominal: datetime
    workflow: Workflow
    entity_root: Path
    inputs: tuple[InputData, ...]
    outputs: tuple[OutputData, ...]
    properties: Mapping[str, str]
    working: str
    run_id: str
    timezone: str = "UTC"
    user: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    unchanged: Callable[[], None] = field(default=lambda: None)
    instance: Instance = field(init=False)

    @property
    def cluster(self) -> Cluster:
        return self.executor.cluster

    def __post_init__(self) -> None:
        own = Instance(
            process=self.process,
            cluster=self.cluster.name,
            nominal_time=self.nominal,
            properties=dict(self.properties),
            inputs={name: one.urls for data in self.inputs for name, one in data.by_name.items()},
            outputs={data.name: data.url for data in self.outputs},
        )
        object.__setattr__(self, "instance", own)

        # What its stores have from the environment reaches workflows by settings only, which are named so.
        keep_secret(secret_properties({**self.cluster.properties, **self.properties, **self.settings}))
        keep_secret(secrets_of(self.cluster))
        for feed in [*(one.feed for one in self.inputs), *(one.feed for one in self.outputs)]:
            keep_secret(secrets_of_feed(feed))


@dataclass(frozen=True)
class WorkflowResult:
    """The result of a workflow.

    Attributes:
        application_id: "": it started no Spark, or ``spark.eventLog.dir`` is elsewhere.
        facts: Recorded with the success of the instance.
    """

    records: Mapping[str, int]
    application_id: str
    captured: Captured = field(default_factory=lambda: Captured(problem="its engine does not capture it"))
    facts: tuple[Record, ...] = ()
