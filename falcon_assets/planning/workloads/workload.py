"""Workloads: whatever has instances on a cluster that wait, run, are tried again and are late."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import ClassVar, Literal

from falcon_assets.model.feed import Feed
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.process import Input, LateProcess, Output, Process, Retry
from falcon_assets.planning.instances.dagster_names import job_name
from falcon_assets.planning.instances.dependencies import own_feeds
from falcon_assets.planning.instances.workload_partitions import WorkloadPartitions
from falcon_assets.planning.time.timeline import Timeline


@dataclass(frozen=True, eq=False, kw_only=True)
class Workload(ABC):
    """Work that is done for one instance after the other on one cluster.

    Attributes:
        name: Names it and its instances, together with the cluster.
        cluster: Where its instances are, and where they are written.
        reads_on: The cluster where its inputs are read.
        entity: Declares it; its status says whether the workload runs.
        feeds: By name, those of its inputs and outputs at least.
        pipelines: The coordinator of the first launches it.
        op_name: Of its op in Dagster; several workloads that fill one asset share it.
        description: What people wrote about it, and what it does.
        inputs: What an instance reads.
        outputs: What an instance writes; none: it is run for its effect.
        frequency: From one instance to the next.
        timezone: The calendar of its steps and expressions.
        delay: How long after its nominal time an instance is due.
        timeout: How long an instance may wait for its inputs; None: as long as the frequency suggests.
        parallel: How many instances may run at once.
        order: Which ready instance runs first.
        retry: How failed instances are tried again.
        late: What happens when an input changed after it was read; None: nothing.
    """

    name: str
    cluster: str
    reads_on: str
    entity: Feed | Process
    feeds: Mapping[str, Feed]
    pipelines: tuple[str, ...]
    op_name: str
    description: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    frequency: Frequency
    timezone: str
    delay: timedelta = timedelta()
    timeout: Frequency | None
    parallel: int
    order: Literal["FIFO", "LIFO", "LAST_ONLY"]
    retry: Retry
    late: LateProcess | None

    shares_assets: ClassVar[bool] = False
    """Whether some partitions of its assets are filled by other workloads, and have no instance of this."""

    @property
    @abstractmethod
    def timeline(self) -> Timeline:
        """Its instances.

        Raises:
            UnknownEntityError: it or the feed of an output is not on the cluster.
        """

    @property
    @abstractmethod
    def partitions(self) -> WorkloadPartitions:
        """How its assets are partitioned.

        Raises:
            UnknownEntityError: as for :attr:`timeline`.
        """

    @property
    def assets(self) -> list[str]:
        """What it makes: its output feeds; without any, an asset of its own name stands for its effect."""
        return [output.feed for output in self.outputs] or [self.name]

    @property
    def job_name(self) -> str:
        """Of its job in Dagster."""
        return job_name(self.op_name)

    @cached_property
    def snapshots(self) -> tuple[Output, ...]:
        """The outputs that all of its instances write to one place, each what the one before wrote."""
        return tuple(one for one in self.outputs if self.feeds[one.feed].snapshot)

    @cached_property
    def own_feeds(self) -> frozenset[str]:
        """The feeds that it both reads and writes in one place: its instances need those before them."""
        return own_feeds(self.inputs, self.outputs) if self.reads_on == self.cluster else frozenset()
