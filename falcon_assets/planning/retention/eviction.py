"""Which instances go, which stay, and why: the rules of retention; they read no store and no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from heapq import nlargest
from operator import itemgetter
from typing import Literal, NamedTuple

from falcon_assets.model.feed import Retention
from falcon_assets.planning.instances.instance_paths import InstancePaths, LocationKind
from falcon_assets.planning.instances.reason import Reason
from falcon_assets.planning.retention.limits import before
from falcon_assets.planning.retention.reasons_to_keep import KEEPS, Keeping, Need


class StoredLocation(NamedTuple):
    """A place where an instance lies; paths are below the root of its store."""

    kind: LocationKind | Literal["version"]
    """The location of the feed that it belongs to; ``version``: of an instance that was replaced."""
    path: str
    """Matches the location's template exactly."""
    prefix: str
    """The template's fixed prefix: folders that the instance leaves empty go, up to this one, which stays."""
    root: str | None = None
    """URL of that root; None: of the cluster's own store."""

    @property
    def place(self) -> str:
        """The path, as a whole URL where that says where it is."""
        return f"{self.root or ''}{self.path}"


class StoredInstance(NamedTuple):
    """An instance that is there, complete or not."""

    nominal: datetime
    locations: tuple[StoredLocation, ...]
    """Those that exist, data first."""

    @property
    def has_data(self) -> bool:
        """Whether more is there than statistics and metadata."""
        return any(location.kind == "data" for location in self.locations)


class Verdict(NamedTuple):
    """What becomes of an instance: all that is needed to act on it, whatever the definitions say by then."""

    instance: StoredInstance
    action: Literal["keep", "delete", "archive"]
    reason: str
    """Why, in plain words."""
    archive_to: str | None = None
    """With ``archive``: the path where its data goes, below the root of the store that it is archived on."""
    kept_by: Reason | None = None
    """With ``keep``: why it stays although its date lets it go; None: its date does not."""
    archive_root: str | None = None
    """URL of the root of that store; None: of the own store of the cluster that it is archived on."""

    @property
    def archive_place(self) -> str | None:
        """``archive_to``, as a whole URL where that says where it is."""
        return f"{self.archive_root or ''}{self.archive_to}" if self.archive_to is not None else None

    def archive_path(self, location: StoredLocation) -> str | None:
        """Where one of the instance's locations goes, as ``archive_to``; None where it is not archived."""
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
    """The verdict on each instance that was found, oldest first; costs some microseconds each.

    An instance is to go when its nominal time is before ``now - limit``, or after ``now`` with ``future: delete``;
    unless a reason of :data:`.KEEPS` stands against it. ``keep_last`` counts
    instances that have data and are not dated after ``now``.

    Args:
        paths: The feed and the cluster. Where the feed declares no retention there, everything is kept.
        found: The instances, in any order.
        now: The time of the decision.
        needs: Who may still need an instance: processes, late reruns, targets of replication.
        landed: When the data of an instance came; None where that is not known: its nominal time counts then.

    Raises:
        ExpressionError: ``archive_to`` names an unknown variable.
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
    """Whether the date alone lets the instance go, and the reason for either."""
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
