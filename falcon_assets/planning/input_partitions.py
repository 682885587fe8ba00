"""The window of an input as a relation between partitions: which partitions of the input's asset a partition reads.

Everything here is plain data, so that it can be written down and read back by another process.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.model.process import Input, Output
from falcon_assets.planning.input_windows import consumers, input_instances, nominal_of_output, output_instance
from falcon_assets.planning.timeline import Timeline
from falcon_assets.planning.workload_partitions import WorkloadPartitions


@dataclass(frozen=True)
class Rewriter:
    """A producer whose instances do not match the feed's one to one: the asset is partitioned by its nominal times."""

    output: Output
    nominal: Timeline
    timezone: str


@dataclass(frozen=True)
class FeedAsset:
    """The asset of a feed on a cluster.

    Attributes:
        feed: The timeline of the feed.
        rewriter: Who partitions the asset by its own timeline; None where the partitions are the feed's instances.
    """

    feed: Timeline
    rewriter: Rewriter | None = None

    @property
    def partitions(self) -> Timeline:
        """The timeline of the asset's partitions."""
        return self.rewriter.nominal if self.rewriter else self.feed

    def partitions_of(self, instance: datetime) -> Iterable[datetime]:
        """The partitions that have a feed instance: itself, or every nominal time that writes it."""
        if self.rewriter is None:
            return (instance,)
        return nominal_of_output(
            self.rewriter.output, self.rewriter.nominal, self.feed, self.rewriter.timezone, instance
        )

    def instance_of(self, partition: datetime) -> datetime | None:
        """The feed instance of a partition; None where it writes outside the feed's validity."""
        if self.rewriter is None:
            return partition
        return output_instance(self.rewriter.output, self.feed, partition, self.rewriter.timezone)


@dataclass(frozen=True)
class InputWindow:
    """An input of a process on a cluster, between two times (not ``latest`` or ``future``).

    Attributes:
        declared: The input.
        timezone: Zone of the process, in which the expressions are evaluated.
        downstream: The partitions of the process's assets.
        upstream: The asset of the input's feed.
    """

    declared: Input
    timezone: str
    downstream: WorkloadPartitions
    upstream: FeedAsset

    def read_by(self, partition: datetime) -> Iterable[datetime]:
        """The partitions of the input's asset that a partition of the process's assets reads."""
        nominal = self.downstream.nominal_of(partition)
        if not self.downstream.nominal.contains(nominal):
            return ()
        instances = input_instances(self.declared, self.upstream.feed, nominal, self.timezone)
        return (partition for instance in instances for partition in self.upstream.partitions_of(instance))

    def readers_of(self, partition: datetime) -> Iterable[datetime]:
        """The partitions of the process's assets that read a partition of the input's asset."""
        instance = self.upstream.instance_of(partition)
        if instance is None:
            return ()
        nominals = consumers(self.declared, self.downstream.nominal, self.upstream.feed, self.timezone, instance)
        return map(self.downstream.partition_of, nominals)
