"""Decides which instances and versions retention evicts, and how often it passes."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from heapq import nlargest
from operator import itemgetter
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeVar

from falcon_assets.model.feed import Feed, Retention, VersionRetention
from falcon_assets.model.frequency import Frequency, TimeUnit
from falcon_assets.model.wall_clock import add_months, from_wall, to_wall
from falcon_assets.planning.instance_paths import InstancePaths, LocationKind
from falcon_assets.planning.reasons import Reason
from falcon_assets.planning.reasons_to_keep import KEEPS, Keeping, Need
from falcon_assets.planning.timeline import Timeline

OFTEN = Frequency(6, TimeUnit.HOURS)

_DAY = timedelta(hours=24)
_DAILY = Frequency(24, TimeUnit.HOURS)
_EPOCH, _DOOMSDAY = (datetime(year, 1, 1, tzinfo=UTC) for year in (2000, 2200))
_EVER = datetime.min.replace(tzinfo=UTC)


def cadence(feed: Feed, cluster: str) -> Frequency | None:
    """Returns the time between passes of retention over ``feed`` on ``cluster``; None: nothing is evicted.

    ``lifecycle.retention.frequency``, the cluster's before the feed's; else 6 hours where anything may stay for less
    than 24 hours, and 24 hours for the others. Source: Falcon's defaults.
    """
    entry = feed.on(cluster)
    if entry is None or not (entry.retention or feed.versions):
        return None
    lifecycle = entry.lifecycle or feed.lifecycle
    if lifecycle is not None:
        return lifecycle.retention.frequency
    ages = [entry.retention.limit if entry.retention else None, feed.versions.for_ if feed.versions else None]
    return OFTEN if any(age is not None and age.length < _DAY for age in ages) else _DAILY


def pass_times(every: Frequency) -> Timeline:
    return Timeline(_EPOCH, _DOOMSDAY, every, "UTC")


def first_pass_over(feed: Feed, cluster: str, nominal: datetime, now: datetime) -> datetime | None:
    """The first pass that takes the instance, None: none; of one dated after now, with ``future: delete``, the next."""
    every, entry = cadence(feed, cluster), feed.on(cluster)
    if every is None or entry is None or entry.retention is None:
        return None
    passes, limit = pass_times(every), entry.retention.limit
    if nominal > now and entry.retention.future == "delete":
        at = passes.index_at_or_before(now) + 1
    else:
        at = bisect_left(
            range(passes.count), True, key=lambda k: nominal < before(passes.instance(k), limit, feed.timezone)
        )
    return passes.instance(at) if at < passes.count else None


def before(moment: datetime, age: Frequency, timezone_name: str) -> datetime:
    """Days and months are on the calendar of that zone: ``months(1)`` before 31 March is the end of February."""
    try:
        if age.is_absolute:
            return moment - age.length
        wall = to_wall(moment, timezone_name)
        if age.unit is TimeUnit.DAYS:
            return from_wall(wall - age.length, timezone_name)
        return from_wall(add_months(wall, -age.count), timezone_name)
    except OverflowError:
        return _EVER


class StoredLocation(NamedTuple):
    kind: LocationKind | Literal["version"]
    path: str
    prefix: str
    """Folders left empty are deleted up to it, and it stays."""
    root: str | None = None
    """URL; None: the cluster's own store."""

    @property
    def place(self) -> str:
        return f"{self.root or ''}{self.path}"


class StoredInstance(NamedTuple):
    nominal: datetime
    locations: tuple[StoredLocation, ...]

    @property
    def has_data(self) -> bool:
        return any(location.kind == "data" for location in self.locations)


class Verdict(NamedTuple):
    instance: StoredInstance
    action: Literal["keep", "delete", "archive"]
    reason: str
    archive_to: str | None = None
    kept_by: Reason | None = None
    archive_root: str | None = None

    @property
    def archive_place(self) -> str | None:
        return f"{self.archive_root or ''}{self.archive_to}" if self.archive_to is not None else None

    def archive_path(self, location: StoredLocation) -> str | None:
        """Where one of the locations is moved; None where the instance is not archived."""
        if self.archive_to is None or location.kind == "data":
            return self.archive_to
        return f"{self.archive_to}.{location.kind}"


def _not_known(nominal: datetime) -> None:
    return None


def plan_eviction(
    paths: InstancePaths,
    found: Iterable[StoredInstance],
    now: datetime,
    needs: Sequence[Need] = (),
    landed: Callable[[datetime], datetime | None] = _not_known,
) -> list[Verdict]:
    """Returns the verdict on each instance found, oldest first; costs some microseconds each.

    An instance is evicted when its nominal time is before ``now - limit``, or after ``now`` with ``future: delete``,
    unless one of :data:`.KEEPS` applies. ``keep_last`` counts instances that have data and are not dated after ``now``.
    Where ``landed`` returns None, the nominal time counts. Raises ExpressionError where ``archive_to`` names an unknown
    variable.
    """
    instances = sorted(found, key=itemgetter(0))
    entry = paths.feed.on(paths.cluster.name)
    if entry is None or entry.retention is None:
        return [Verdict(instance, "keep", "no retention is declared") for instance in instances]
    retention = entry.retention
    archive = paths.place(retention.archive_to) if retention.archive_to else None
    keeping = _keeping(retention, paths.feed.timezone, now, instances, needs)
    oldest = before(now, retention.limit, paths.feed.timezone)
    verdicts = []
    for instance in instances:
        nominal = instance.nominal
        goes, reason = _by_date(retention, oldest, now, nominal)
        kept_by = _kept_by(keeping, nominal, landed(nominal)) if goes else None
        if not goes or kept_by:
            verdicts.append(Verdict(instance, "keep", str(kept_by) if kept_by else reason, kept_by=kept_by))
        else:
            archive_to = archive.template.render(paths.wall(nominal), {}) if archive else None
            root = archive.root if archive else None
            verdicts.append(Verdict(instance, retention.action, reason, archive_to, archive_root=root))
    return verdicts


def _by_date(retention: Retention, oldest: datetime, now: datetime, nominal: datetime) -> tuple[bool, str]:
    if nominal > now:
        return retention.future == "delete", f"dated after now (future: {retention.future})"
    if nominal < oldest:
        return True, f"older than {retention.limit}"
    return False, f"not older than {retention.limit}"


def _keeping(
    retention: Retention, timezone: str, now: datetime, instances: Iterable[StoredInstance], needs: Sequence[Need]
) -> Keeping:
    age, count = retention.minimum_age, retention.keep_last
    present = (instance.nominal for instance in instances if instance.has_data and instance.nominal <= now)
    settled = before(now, age, timezone) if age else None
    return Keeping(now, frozenset(nlargest(count or 0, present)), count, settled, age, needs)


def _kept_by(at: Keeping, nominal: datetime, landed: datetime | None) -> Reason | None:
    return next((reason for rule in KEEPS if (reason := rule.find(at, nominal, landed))), None)


class Space(NamedTuple):
    """Bytes of a file system; what is reserved for its administrator is in neither."""

    used: int
    free: int

    @property
    def percent(self) -> int:
        """Rounded up, as ``df`` does."""
        total = self.used + self.free
        return -(-100 * self.used // total) if total else 0

    def excess(self, max_percent: int) -> int:
        """Returns how much has to go until it is no fuller than that."""
        return max(-((max_percent * (self.used + self.free) - 100 * self.used) // 100), 0)


One = TypeVar("One")


def first_to_go(
    candidates: Iterable[One], excess: int, since: Callable[[One], datetime], size: Callable[[One], int]
) -> list[One]:
    """Returns the oldest of the candidates, no more than needed, that have ``excess`` bytes together, else all.

    ``size`` measures, and is asked of those only that go; ``since`` when did one stop to be the present data.
    """
    going = list[One]()
    for one in sorted(candidates, key=since):
        if excess <= 0:
            break
        excess -= size(one)
        going.append(one)
    return going


_LAST = datetime.max.replace(tzinfo=UTC)


class StoredVersion(NamedTuple):
    nominal: datetime
    version: str
    path: str
    """Below the root of the instance's store; empty: it does not exist any more."""
    prefix: str


class VersionVerdict(NamedTuple):
    kept: StoredVersion
    replaced_at: datetime | None
    goes: bool
    reason: str
    kept_by: Reason | None = None
    bytes: int = 0
    """As recorded; 0: not recorded."""
    protected_by: Reason | None = None


def plan_versions(
    found: Iterable[StoredVersion],
    rule: VersionRetention | None,
    now: datetime,
    zone: str,
    replaced: Mapping[tuple[datetime, str], datetime],
    evicted: Collection[datetime],
    protected: Mapping[tuple[datetime, str], Reason],
    sizes: Mapping[tuple[datetime, str], int] = MappingProxyType({}),
) -> list[VersionVerdict]:
    """By instance, the last replaced first; those of killed runs, not in ``replaced``, count as replaced just now."""
    oldest = before(now, rule.for_, zone) if rule and rule.for_ else None
    there = {(one.nominal, one.version): one for one in found}
    last_first = sorted(sorted(there), key=lambda key: replaced.get(key) or _LAST, reverse=True)
    newer = Counter[datetime]()
    verdicts = []
    for key in sorted(last_first, key=lambda key: key[0]):
        nominal, at = key[0], replaced.get(key)
        newer[nominal] += 1
        goes, reason = True, "the feed keeps no versions"
        if nominal in evicted:
            reason = "its instance was evicted"
        elif rule and newer[nominal] > rule.keep:
            reason = f"{rule.keep} were replaced later (versions.keep)"
        elif rule and oldest is not None and at is not None and at < oldest:
            reason = f"replaced more than {rule.for_} ago (versions.for)"
        elif rule:
            goes, reason = False, f"one of the last {rule.keep} that were replaced"
        kept_by = protected.get(key) if goes else None
        if kept_by:
            goes, reason = False, str(kept_by)
        known = sizes.get(key, 0), protected.get(key)
        verdicts.append(VersionVerdict(there[key], at, goes, reason, kept_by, *known))
    lost = (StoredVersion(*key, "", "") for key in sorted(replaced.keys() - there.keys()))
    verdicts += (VersionVerdict(one, replaced[one[:2]], True, "it is not there any more") for one in lost)
    return verdicts
