"""Which of the versions that were replaced stay, which go, and why: the rules; they read no store and no clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from falcon_assets.model.feed import VersionRetention
from falcon_assets.planning.instances.reason import Reason
from falcon_assets.planning.retention.limits import before

_LAST = datetime.max.replace(tzinfo=UTC)


class StoredVersion(NamedTuple):
    """A version of an instance that was replaced and is kept."""

    nominal: datetime
    """Of the instance."""
    version: str
    """The data version."""
    path: str
    """Where it lies, below the root of the instance's store; empty: it is not there any more."""
    prefix: str
    """The folder of the versions of its feed: folders below it go when they are empty; of tables what names it."""


class VersionVerdict(NamedTuple):
    """What becomes of it."""

    kept: StoredVersion
    replaced_at: datetime | None
    """When it was replaced; None: nobody knows."""
    goes: bool
    reason: str
    """Why, in plain words."""
    kept_by: Reason | None = None
    """Why it stays although the feed lets it go; None: the feed does not."""


def plan_versions(
    found: Iterable[StoredVersion],
    rule: VersionRetention | None,
    now: datetime,
    zone: str,
    replaced: Mapping[tuple[datetime, str], datetime],
    evicted: Collection[datetime],
    protected: Mapping[tuple[datetime, str], Reason],
) -> list[VersionVerdict]:
    """The verdict on each version that was found or is known, by instance, that which was replaced last first.

    Args:
        found: The versions that are there, in any order.
        rule: As the feed declares it; None: it keeps none.
        now: The time of the decision.
        zone: Of the feed: days and months follow its calendar.
        replaced: When each version was replaced that is known to be kept, by instance and version. Another one, of a
            run that was killed, counts as replaced just now.
        evicted: The instances that retention took away: their versions follow them.
        protected: Versions that stay, by instance and version, and why.
    """
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
        verdicts.append(VersionVerdict(there[key], at, goes, reason, kept_by))
    lost = (StoredVersion(*key, "", "") for key in sorted(replaced.keys() - there.keys()))
    verdicts += (VersionVerdict(one, replaced[one[:2]], True, "it is not there any more") for one in lost)
    return verdicts
