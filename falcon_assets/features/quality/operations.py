"""Operations on the quality of instances: show verdicts, profiles and figures over time; check, and accept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from falcon_assets.errors import QueryError, StorageError, UnknownInstanceError, UsageError
from falcon_assets.features.quality.events import InvalidAccepted
from falcon_assets.features.quality.held_outputs import HeldOutput, held_output
from falcon_assets.features.quality.profile import ColumnProfile
from falcon_assets.features.quality.rules import QualityState
from falcon_assets.features.quality.states import KnownState, known_states
from falcon_assets.features.quality.store import (
    Attempts,
    InstanceKey,
    VerdictRow,
    attempts_of,
    present_version,
    verdict_about,
    verdicts_before,
)
from falcon_assets.features.quality.verdict import InstanceVerdict
from falcon_assets.instances.views.details import find_subject
from falcon_assets.model.access import Role
from falcon_assets.model.expression import nearest
from falcon_assets.model.feed import Feed
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.acting import require_change, require_read
from falcon_assets.operations.audit import PlainRequest, audited, require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.machine import require_machine
from falcon_assets.operations.operation import Change, Given, Operation, Result

_CLUSTER = "Cluster: needed if the feed is on several."
_LISTED = 12


@dataclass(frozen=True)
class InstanceQuality:
    """The present version of an instance, its verdict, and attempts to check it.

    Attributes:
        version: None: none is there.
        known: What follows from verdicts, also about others that it has to do with; None: nothing, or it is valid.
        has_checks: Whether its feed declares any; else nobody awaits a verdict.
    """

    feed: str
    cluster: str
    instance: datetime
    version: str | None
    row: VerdictRow | None
    attempts: Attempts | None = None
    known: KnownState | None = None
    held: HeldOutput | None = None
    has_checks: bool = True

    @property
    def verdict(self) -> InstanceVerdict | None:
        if self.row is None and not self.has_checks:
            return None
        if self.row is None:
            return InstanceVerdict.UNCHECKED
        return InstanceVerdict.VALID if self.row.is_valid else InstanceVerdict.INVALID

    @property
    def is_invalid(self) -> bool:
        """Also by what it has to do with."""
        is_marked = self.known is not None and self.known.state is QualityState.INVALID
        return is_marked or self.verdict is InstanceVerdict.INVALID

    def as_data(self) -> dict[str, Any]:
        row, verdict = self.row, self.verdict and self.verdict.value
        about = {"feed": self.feed, "cluster": self.cluster, "instance": format_instant(self.instance)}
        accepted = row and row.accepted_at and {"by": row.accepted_by, "at": row.accepted_at.isoformat()}
        return {
            **about,
            "version": self.version,
            "verdict": verdict,
            "state": self.known.state.value if self.known else verdict,
            "origin": self.known.origin_data if self.known else None,
            "checked_at": row and row.checked_at.isoformat(),
            "suite": row and row.suite,
            "records": row and row.records,
            "checks": [one.as_data() for one in row.checks] if row else [],
            "accepted": {**accepted, "reason": row.accepted_reason} if row and accepted else None,
            "attempts": None if self.attempts is None else self.attempts.as_data(),
            "held": None if self.held is None else self.held.as_data(),
        }


@dataclass(frozen=True)
class CheckedQuality(InstanceQuality):
    """What ``quality check`` found."""

    @property
    def failed(self) -> bool:
        return self.verdict is InstanceVerdict.INVALID


class ShowQuality(Operation):
    """Show whether an INSTANCE of FEED is valid, and what each of its checks found.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. UNCHECKED: it has no verdict yet; failed attempts to check it
    are shown. If its feed declares no checks, there is none.
    """

    command = "quality show"
    page = "quality/instance"
    feed: Annotated[str, Given("FEED")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(None, description=_CLUSTER)

    def run(self, installation: Installation) -> InstanceQuality:
        feed, key = _place(installation, self.feed, self.instance, self.cluster)
        require_readable(installation, self.command, [feed])
        return _quality(installation, key)


@dataclass(frozen=True)
class InstanceProfile(Result):
    """The columns of a version; ``kept`` False: they were computed for this request."""

    feed: str
    cluster: str
    instance: Instant
    version: str
    kept: bool
    records: int | None
    columns: tuple[ColumnProfile, ...]


class ProfileInstance(Operation):
    """Show figures of each column of an INSTANCE of FEED: nulls, distinct values, mean, quantiles.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. If the feed declares `profile: true`, they are kept for each version; else
    they are computed now, and not kept.
    """

    command = "quality profile"
    role = Role.LAUNCHER
    feed: Annotated[str, Given("FEED")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(None, description=_CLUSTER)

    def run(self, installation: Installation) -> InstanceProfile:
        feed, key = _place(installation, self.feed, self.instance, self.cluster)
        require_readable(installation, self.command, [feed])
        found = _quality(installation, key)
        version = _version(found)
        about = (feed.name, key[0], key[2], version)
        if found.row is not None and found.row.profile is not None:
            return InstanceProfile(*about, True, found.row.records, found.row.profile)
        measured = _checker(installation, key[0]).profile(feed, key, version)
        return InstanceProfile(*about, False, measured.records, measured.profile or ())


@dataclass(frozen=True)
class MetricValue(Result):
    instance: Instant
    version: str
    verdict: InstanceVerdict
    value: float | None


@dataclass(frozen=True)
class MetricHistory(Result):
    """A metric of the last instances, the oldest first; ``value`` None: it was not measured there."""

    feed: str
    cluster: str
    metric: str
    values: tuple[MetricValue, ...]


class HistoryOfMetric(Operation):
    """Show a metric of FEED over its last instances, as a plot.

    A metric is `records`, CHECK.FIGURE (`not_null_item.violations`), or COLUMN.FIGURE of kept profiles (`item.nulls`).
    """

    command = "quality history"
    page = "quality"
    feed: Annotated[str, Given("FEED")]
    metric: Annotated[str, Given(shows_default=True)] = Field("records", description="Name of the metric.")
    last: Annotated[int, Given(shows_default=True)] = Field(30, ge=1, le=10_000, description="Number of instances.")
    cluster: str | None = Field(None, description=_CLUSTER)

    def run(self, installation: Installation) -> MetricHistory:
        feed = installation.entities.feed(self.feed)
        require_readable(installation, self.command, [feed])
        cluster = _cluster(installation, feed, self.cluster)
        with installation.tables_caught_up().connect() as connection:
            rows = verdicts_before(connection, cluster, feed.name, None, self.last)
        metrics = [dict(_metrics(row)) for row in rows]
        known = list(dict.fromkeys(name for one in reversed(metrics) for name in one))
        if self.metric not in known:
            raise QueryError(_unknown_metric(feed, cluster, self.metric, known))
        values = (
            MetricValue(row.instance, row.version, _verdict(row), one.get(self.metric))
            for row, one in zip(rows, metrics, strict=True)
        )
        return MetricHistory(feed.name, cluster, self.metric, tuple(values)[::-1])


class CheckInstance(Operation):
    """Check an INSTANCE of FEED now, unless its present version has a verdict.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. The exit code is 1 if the instance is invalid.
    """

    command = "quality check"
    role = Role.LAUNCHER
    feed: Annotated[str, Given("FEED")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(None, description=_CLUSTER)
    rerun: bool = Field(False, description="Check again, even if there is a verdict.")
    full: bool = Field(False, description="Also measure checks with `suite: full`, even if all others pass.")

    def run(self, installation: Installation) -> CheckedQuality:
        with audited(installation, self.command, PlainRequest()) as audit:
            feed, key = _place(installation, self.feed, self.instance, self.cluster)
            audit.about([(feed.kind, feed.name)], [key[2]])
            require_read(audit.principal, [feed])
            if not (feed.checks or feed.profile):
                raise UsageError(f"feed {feed.name!r} declares neither checks nor profile: there is nothing to check")
            before = _quality(installation, key)
            version = _version(before)
            if before.row is None or self.rerun or (self.full and before.row.suite != "full"):
                checker = _checker(installation, key[0])
                if checker.check(feed, key, version, full=self.full, anew=self.rerun or self.full) is None:
                    raise StorageError(f"{feed.name} {format_instant(key[2])} is being checked by another process")
                audit.result(True)
            else:
                audit.result(False)
        return CheckedQuality(**vars(_quality(installation, key)))


class AcceptInstance(Change):
    """Accept an INSTANCE of FEED although it is invalid, or made from invalid data: a person overrules its checks.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. Only its present version is accepted; the next one is checked like any other.
    If the output of a process is held, that is accepted, and published as it was computed: together with all outputs of
    its instance, as soon as each that failed its checks is accepted.
    """

    command = "quality accept"
    role = Role.LAUNCHER
    needs = "a reason"
    feed: Annotated[str, Given("FEED")]
    instance: Annotated[Instant, Given("INSTANCE")]
    cluster: str | None = Field(None, description=_CLUSTER)
    reason: str = Field(min_length=1, description="Reason for the change, kept in the audit log.")

    def run(self, installation: Installation) -> InstanceQuality:
        with audited(installation, self.command, self) as audit:
            feed, key = _place(installation, self.feed, self.instance, self.cluster)
            audit.about([(feed.kind, feed.name)], [key[2]])
            require_change(audit.principal, "accept instances of", [feed], self.role)
            found = _quality(installation, key)
            if found.held is not None:
                self._accept_held(installation, found.held, audit.principal.name)
                if self.dry_run:
                    by, now = audit.principal.name, installation.settings.now()
                    held = replace(found.held, accepted_by=by, accepted_at=now, accepted_reason=self.reason)
                    return replace(found, held=held)
                audit.result(True)
                return _quality(installation, key)
            version = _version(found)
            if not found.is_invalid:
                if found.row is None:
                    why = "is unchecked" if found.has_checks else "has no checks"
                    raise UsageError(f"{feed.name} {format_instant(key[2])} {why}: there is nothing to overrule")
                audit.result(False)
                return found
            now = installation.settings.now()
            accepted = InvalidAccepted(*key, audit.principal.name, version, now, self.reason)
            if self.dry_run:
                row = found.row or VerdictRow(*key, version, InstanceVerdict.UNCHECKED, now, "", None, (), None)
                row = replace(row, accepted_by=accepted.accepted_by, accepted_at=now, accepted_reason=self.reason)
                return replace(found, row=row, known=None)
            _record_acceptance(installation, feed, found.row, accepted)
            audit.result(True)
        return _quality(installation, key)

    def _accept_held(self, installation: Installation, held: HeldOutput, by: str) -> None:
        from falcon_assets.features.quality.accepting import HeldAcceptance  # noqa: PLC0415 - it needs Dagster

        HeldAcceptance(installation, held).run(by, self.reason, dry_run=self.dry_run)


def _record_acceptance(
    installation: Installation, feed: Feed, row: VerdictRow | None, accepted: InvalidAccepted
) -> None:
    from falcon_assets.features.quality.checks import QualityChecks  # noqa: PLC0415 - it needs Dagster

    checks = QualityChecks(installation.entities, installation.settings)
    for event in checks.accepted(feed, row, accepted):
        installation.ledger.instance.report_runless_asset_event(event)
    installation.ledger.catch_up()


def _cluster(installation: Installation, feed: Feed, cluster: str | None) -> str:
    entry = next((one for one in feed.clusters if cluster in (None, one.name)), feed.clusters[0])
    return find_subject(installation.entities, feed.name, entry.validity.start, cluster, "feed").cluster


def _place(installation: Installation, feed: str, instance: datetime, cluster: str | None) -> tuple[Feed, InstanceKey]:
    where = find_subject(installation.entities, feed, instance, cluster, "feed").cluster
    return installation.entities.feed(feed), (where, feed, instance)


def _quality(installation: Installation, key: InstanceKey) -> InstanceQuality:
    with installation.tables_caught_up().connect() as connection:
        version = present_version(connection, key)
        row = None if version is None else verdict_about(connection, key, version)
        tried = None if version is None or row is not None else attempts_of(connection, key, version)
        known = known_states(connection, installation.entities, [key[:2]], installation.settings.now(), key.__eq__)
        held = held_output(connection, key)
    has_checks = bool(installation.entities.feed(key[1]).checks)
    return InstanceQuality(key[1], key[0], key[2], version, row, tried, known.get(key), held, has_checks)


def _version(found: InstanceQuality) -> str:
    if found.version is None:
        raise UnknownInstanceError(f"{found.feed} {format_instant(found.instance)} is not available on {found.cluster}")
    return found.version


def _checker(installation: Installation, cluster: str) -> Any:
    from falcon_assets.features.quality.checking import InstanceChecker  # noqa: PLC0415 - it needs Spark

    settings, entities = installation.settings, installation.entities
    require_machine(settings.environ, settings.home)
    return InstanceChecker(entities, entities.cluster(cluster), settings, installation.ledger)


def _verdict(row: VerdictRow) -> InstanceVerdict:
    return InstanceVerdict.VALID if row.is_valid else InstanceVerdict.INVALID


def _metrics(row: VerdictRow) -> Iterator[tuple[str, float]]:
    if row.records is not None:
        yield "records", row.records
    for one in row.checks:
        yield from _numbers(one.name, one.figures)
    for column in row.profile or ():
        yield from _numbers(column.name, vars(column))


def _numbers(of: str, figures: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in figures.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{of}.{name}", value


def _unknown_metric(feed: Feed, cluster: str, metric: str, known: Sequence[str]) -> str:
    if not known:
        return f"no instance of {feed.name!r} on {cluster!r} has been checked yet"
    more = ", ..." if len(known) > _LISTED else ""
    listed = nearest(metric, known) or f"; there is: {', '.join(known[:_LISTED])}{more}"
    return f"no instance of {feed.name!r} on {cluster!r} has the metric {metric!r}{listed}"
