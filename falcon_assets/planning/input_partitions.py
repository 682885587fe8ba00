"""Windows of inputs as a relation between partitions, in plain data that another process can read back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from falcon_assets.model.process import Input, Output
from falcon_assets.planning.input_windows import consumers, input_instances, nominal_of_output, output_instance
from falcon_assets.planning.rollups import Membership
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
    feed: Timeline
    rewriter: Rewriter | None = None

    @property
    def partitions(self) -> Timeline:
        return self.rewriter.nominal if self.rewriter else self.feed

    def partitions_of(self, instance: datetime) -> Iterable[datetime]:
        if self.rewriter is None:
            return (instance,)
        return nominal_of_output(
            self.rewriter.output, self.rewriter.nominal, self.feed, self.rewriter.timezone, instance
        )

    def instance_of(self, partition: datetime) -> datetime | None:
        """None where the partition writes outside the feed's validity."""
        if self.rewriter is None:
            return partition
        return output_instance(self.rewriter.output, self.feed, partition, self.rewriter.timezone)


@dataclass(frozen=True)
class MemberAsset:
    """A member of a roll-up with its asset."""

    membership: Membership
    asset: FeedAsset

    def made_of(self, instance: datetime) -> Iterable[datetime]:
        members = self.membership.members(instance)
        return (partition for member in members for partition in self.asset.partitions_of(member))

    def rollups(self, partition: datetime) -> Iterable[datetime]:
        instance = self.asset.instance_of(partition)
        return () if instance is None else self.membership.rollups(instance)


@dataclass(frozen=True)
class InputWindow:
    declared: Input
    timezone: str
    downstream: WorkloadPartitions
    upstream: FeedAsset

    def read_by(self, partition: datetime) -> Iterable[datetime]:
        nominal = self.downstream.nominal_of(partition)
        if not self.downstream.nominal.contains(nominal):
            return ()
        instances = input_instances(self.declared, self.upstream.feed, nominal, self.timezone)
        return (partition for instance in instances for partition in self.upstream.partitions_of(instance))

    def readers_of(self, partition: datetime) -> Iterable[datetime]:
        instance = self.upstream.instance_of(partition)
        if instance is None:
            return ()
        nominals = consumers(self.declared, self.downstream.nominal, self.upstream.feed, self.timezone, instance)
        return map(self.downstream.partition_of, nominals)
