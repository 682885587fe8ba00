"""Decides what goes from a disk that is fuller than its ``max_usage``: the oldest of what is not present data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from falcon_assets.entities.status import Status
from falcon_assets.features.retention.archives import ArchiveVerdict
from falcon_assets.features.retention.plan import FeedPlan
from falcon_assets.planning.eviction import VersionVerdict, first_to_go
from falcon_assets.planning.instance_paths import InstancePaths

_Kept = TypeVar("_Kept", VersionVerdict, ArchiveVerdict)


class Candidate(NamedTuple):
    """Something that may go: a version or archive of the plan with that number, or (None) what is kept aside."""

    since: datetime
    plan: int | None
    what: VersionVerdict | ArchiveVerdict | str


class MadeRoom(NamedTuple):
    plans: list[FeedPlan]
    """As they were, with what goes; nothing of a feed that is not RUNNING."""
    aside: list[str]
    """What is kept aside, and goes."""


def make_room(
    plans: Sequence[FeedPlan],
    cluster: str,
    aside: Sequence[tuple[datetime, str]],
    excess: int,
    reason: str,
    measure: Callable[[str], int],
    lies: Callable[[str], bool],
) -> MadeRoom:
    """Decides what goes from the disk of a cluster, the oldest first, until ``excess`` bytes have gone.

    ``lies``: whether a path is on that disk. What the plans let go by age or number counts first. Nothing that is
    protected goes, and no version of which the ledger does not know yet when it was replaced.
    """
    found = [Candidate(at, None, place) for at, place in aside]
    for number, plan in enumerate(plans):
        for one in _of_cluster(plan, cluster):
            if not lies(_path(one)):
                continue
            if one.goes:
                excess -= _size(one)
            elif (since := _since(one)) is not None:
                found.append(Candidate(since, number, one))

    def size(one: Candidate) -> int:
        return measure(one.what) if isinstance(one.what, str) else _size(one.what)

    going = first_to_go(found, excess, lambda one: one.since, size)
    chosen, changed = {id(one.what) for one in going}, list(plans)
    for at in {one.plan for one in going if one.plan is not None}:
        versions = tuple(_gone(one, reason) if id(one) in chosen else one for one in plans[at].versions)
        archives = tuple(_gone(one, reason) if id(one) in chosen else one for one in plans[at].archives)
        changed[at] = replace(plans[at], versions=versions, archives=archives)
    return MadeRoom(changed, [one.what for one in going if isinstance(one.what, str)])


def _gone(one: _Kept, reason: str) -> _Kept:
    return one._replace(goes=True, reason=reason)


def _of_cluster(plan: FeedPlan, cluster: str) -> Iterator[VersionVerdict | ArchiveVerdict]:
    if plan.status.status is not Status.RUNNING or plan.problem:
        return
    here, feed = plan.cluster.name, plan.feed
    if here == cluster and feed.table_on(here) is None and InstancePaths(feed, plan.cluster).root is None:
        yield from plan.versions
    for one in plan.archives:
        if (one.archived.archive_cluster or here) == cluster and one.archived.verdict.archive_root is None:
            yield one


def _path(one: VersionVerdict | ArchiveVerdict) -> str:
    return one.kept.path if isinstance(one, VersionVerdict) else one.archived.verdict.archive_to or ""


def _since(one: VersionVerdict | ArchiveVerdict) -> datetime | None:
    """When it stopped to be the present data; None: it stays."""
    if isinstance(one, VersionVerdict):
        return None if one.protected_by else one.replaced_at
    return None if one.kept_by else one.archived.decided_at


def _size(one: VersionVerdict | ArchiveVerdict) -> int:
    return one.bytes if isinstance(one, VersionVerdict) else one.archived.bytes
