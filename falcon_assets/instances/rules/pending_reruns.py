"""Feed instances that reruns are about to replace: their readers wait, and run once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from falcon_assets.errors import ExpressionError
from falcon_assets.model.process import Input
from falcon_assets.planning.input_windows import input_instances, latest_instances, output_instance
from falcon_assets.planning.timeline import feed_timeline
from falcon_assets.planning.workloads import Workload

Rerun: TypeAlias = tuple[str, str, datetime]
FeedInstance: TypeAlias = tuple[str, str, datetime]

_DEEPEST = 100
"""Steps down the graph; only a workload that reads its own output reaches this depth."""


@dataclass(frozen=True)
class PendingReruns:
    """Feed -> its instance -> the workload and nominal time of the rerun that replaces it, on one cluster."""

    by_feed: Mapping[str, Mapping[datetime, tuple[str, datetime]]] = field(default_factory=dict)

    def awaited(
        self,
        workload: Workload,
        nominal: datetime,
        available: Mapping[str, Collection[datetime]],
    ) -> tuple[str, datetime] | None:
        """The workload and nominal time of the rerun that the instance waits for; None: none."""
        for declared in workload.inputs:
            replaced = self.by_feed.get(declared.feed)
            if replaced:
                window = window_of(workload, declared, nominal, available)
                rerun = next((replaced[one] for one in window if one in replaced), None)
                if rerun is not None and rerun != (workload.name, nominal):
                    return rerun
        return None


def pending_reruns(
    reruns: Iterable[Rerun],
    workload_on: Callable[[str, str], Workload | None],
    late_consumers: Callable[[Collection[FeedInstance]], Iterable[Rerun]],
) -> dict[str, PendingReruns]:
    """By cluster, for these reruns and those that follow from them, through replications too.

    ``late_consumers`` returns the instances that read feed instances as late inputs, and so run again. Reruns without a
    workload are ignored.
    """
    found: dict[str, dict[str, dict[datetime, tuple[str, datetime]]]] = {}
    seen: set[Rerun] = set()
    following = sorted(set(reruns))
    for _ in range(_DEEPEST):
        replaced: set[FeedInstance] = set()
        for name, cluster, nominal in following:
            workload = workload_on(name, cluster)
            if workload is None:
                continue
            for made in replaced_by(workload, nominal):
                _, feed, instance = made
                by_instance = found.setdefault(cluster, {}).setdefault(feed, {})
                by_instance.setdefault(instance, (name, nominal))
                replaced.add(made)
        seen.update(following)
        following = sorted(set(late_consumers(replaced)) - seen) if replaced else []
        if not following:
            break
    return {cluster: PendingReruns(by_feed) for cluster, by_feed in found.items()}


def replaced_by(workload: Workload, nominal: datetime) -> Iterator[FeedInstance]:
    for declared in workload.outputs:
        timeline = feed_timeline(workload.feeds[declared.feed], workload.cluster)
        try:
            instance = output_instance(declared, timeline, nominal, workload.timezone)
        except ExpressionError:  # there is no such instance, and what is wrong is said of the instance itself
            continue
        if instance is not None:
            yield workload.cluster, declared.feed, instance


def window_of(
    workload: Workload, declared: Input, nominal: datetime, available: Mapping[str, Collection[datetime]]
) -> list[datetime]:
    """The instances that an input reads; none where a window of ``latest`` or ``future`` lacks some."""
    timeline, zone = feed_timeline(workload.feeds[declared.feed], workload.cluster), workload.timezone
    if declared.is_of_times:
        return input_instances(declared, timeline, nominal, zone)
    return latest_instances(declared, timeline, nominal, available.get(declared.feed, ()), zone) or []
