"""Which instances go, which stay, and why: the rules of retention, without a look at any store or clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from heapq import nlargest
from operator import itemgetter
from typing import Literal, NamedTuple, TypeAlias

from falcon_assets.model.feed import Retention
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.instances.instance_paths import InstancePaths
from falcon_assets.planning.retention.limits import before

LocationKind: TypeAlias = Literal["data", "stats", "meta"]
Hold: TypeAlias = Callable[[datetime], str | None]
"""Says why the instance of a nominal time must stay, None where it need not (``{...}.get`` is one)."""


class StoredLocation(NamedTuple):
    """One place where an instance lies; paths are below the root of its store."""

    kind: LocationKind
    """The location of the feed that it belongs to."""
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
    outlived: bool = False
    """With ``keep``: whether its date alone would let it go."""
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
    holds: Sequence[Hold] = (),
    landed: Callable[[datetime], datetime | None] = _not_known,
) -> list[Verdict]:
    """The verdict on each instance that was found, oldest first; costs some microseconds each.

    An instance is to go when its nominal time is before ``now - limit``, or after ``now`` with ``future: delete``;
    unless ``keep_last`` or ``minimum_age`` covers it or something holds it, in this order. ``keep_last`` counts
    instances that have data and are not dated after ``now``. What is dated after ``now`` and was not when it came
    stays: the clock was set back.

    Args:
        paths: The feed and the cluster. Where the feed declares no retention there, everything is kept.
        found: The instances, in any order.
        now: The time of the decision.
        holds: Who may still need an instance: processes, late reruns, targets of replication.
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
    rules = _Rules(retention, paths.feed.timezone, now, instances)
    verdicts = []
    for instance in instances:
        nominal = instance.nominal
        goes, reason = rules.judge(nominal)
        stays = (rules.covers(nominal, landed(nominal)) or _held(nominal, holds)) if goes else None
        if not goes or stays:
            verdicts.append(Verdict(instance, "keep", stays or reason, outlived=goes))
        else:
            archive_to = archive.template.render(paths.wall(nominal), {}) if archive else None
            root = archive.root if archive else None
            verdicts.append(Verdict(instance, retention.action, reason, archive_to, archive_root=root))
    return verdicts


class _Rules:
    """What ``retention`` says at one moment, computed once for all instances."""

    def __init__(
        self, retention: Retention, timezone_name: str, now: datetime, instances: Sequence[StoredInstance]
    ) -> None:
        self._retention, self._now = retention, now
        self._oldest = before(now, retention.limit, timezone_name)
        age = retention.minimum_age
        self._settled = before(now, age, timezone_name) if age else None
        present = (instance.nominal for instance in instances if instance.has_data and instance.nominal <= now)
        self._last = frozenset(nlargest(retention.keep_last or 0, present))

    def judge(self, nominal: datetime) -> tuple[bool, str]:
        """Whether the date alone lets the instance go, and the reason for either."""
        if nominal > self._now:
            future = self._retention.future
            return future == "delete", f"dated after now (future: {future})"
        if nominal < self._oldest:
            return True, f"older than {self._retention.limit}"
        return False, f"not older than {self._retention.limit}"

    def covers(self, nominal: datetime, landed: datetime | None) -> str | None:
        """Why the instance stays although its date lets it go."""
        if nominal > self._now and landed is not None and landed >= nominal:
            return f"landed at {format_instant(landed)}, before the clock was set back"
        if nominal in self._last:
            return f"one of the newest {self._retention.keep_last} (keep_last)"
        if self._settled is not None and (landed or nominal) > self._settled:
            came = f"landed at {format_instant(landed)}" if landed else f"dated {format_instant(nominal)}"
            return f"{came}, less than {self._retention.minimum_age} ago (minimum_age)"
        return None


def _held(nominal: datetime, holds: Sequence[Hold]) -> str | None:
    return next((reason for hold in holds if (reason := hold(nominal))), None)
