"""Reasons why an instance waits or gives up: one class each, in lists by precedence."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime, timedelta
from itertools import islice

from falcon_assets.errors import count_of
from falcon_assets.instances.rules.producers import being_made, settled_since, skipped
from falcon_assets.instances.rules.readiness import MissingInput
from falcon_assets.instances.rules.situation import Situation
from falcon_assets.model.instant import format_instant
from falcon_assets.planning.clock import is_set_back, later
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.reasons import Reason, SeenSource
from falcon_assets.planning.retries import gives_up_at, opens_at, timeout_text

_NAMED = 3
"""Missing inputs in a reason."""
_SOURCE_AWAY = timedelta(minutes=1)
"""Between attempts while the source of another colo answers: it may be another store that is away."""


class Waiting(Reason):
    @classmethod
    @abstractmethod
    def find(cls, at: Situation, nominal: datetime, record: InstanceRecord | None) -> Waiting | None:
        """Returns the reason, or None where it does not apply; raises as :meth:`.Readiness.missing`."""


class InRun(Waiting, says="is in run {run}"):
    run: str | None

    @classmethod
    def find(cls, at: Situation, nominal: datetime, record: InstanceRecord | None) -> InRun | None:
        return cls(record.run) if record and record.in_flight else None


class InstanceSuspended(Waiting, says="is suspended"):
    @classmethod
    def find(cls, at: Situation, nominal: datetime, record: InstanceRecord | None) -> InstanceSuspended | None:
        return cls() if record and record.state is InstanceState.SUSPENDED else None


class ProcessSuspended(Waiting, says="does not run by itself: it is not scheduled, or suspended"):
    """``falcon instance triage`` distinguishes the two."""

    @classmethod
    def find(cls, at: Situation, nominal: datetime, record: InstanceRecord | None) -> ProcessSuspended | None:
        return cls() if at.since is None else None


class RetryDelayed(Waiting, says="is tried again at {until} (attempt {attempt} {outcome})"):
    until: datetime
    attempt: int
    outcome: str

    @classmethod
    def find(cls, at: Situation, nominal: datetime, record: InstanceRecord | None) -> RetryDelayed | None:
        opens = _opens(at, record)
        if record is None or opens is None or opens <= at.now:
            return None
        outcomes = {InstanceState.TIMED_OUT: "timed out", InstanceState.WAITING: "found a store away"}
        return cls(opens, record.attempt, outcomes.get(record.state, "failed"))


class InputsMissing(Waiting):
    """``until`` is when it gives up unless the inputs are being made then; None: they are, or may be."""

    inputs: tuple[MissingInput, ...]
    more: int
    until: datetime | None

    @classmethod
    def find(cls, at: Situation, nominal: datetime, record: InstanceRecord | None) -> InputsMissing | None:
        missing = at.missing(nominal)
        first = next(missing, None)
        if first is None:
            return None
        inputs = (first, *islice(missing, _NAMED - 1))
        # Its turn has not come: however long those before it take, nothing is wrong with it.
        has_turn = at.chain is None or not at.chain.waits_for_own(nominal, at.available)
        until = gives_up(at, nominal, record) if has_turn else None
        if until is not None and until <= at.now:  # makers are asked when it matters: there are thousands of instances
            until = _given_up_in_earnest(at, nominal, until)
        found = (inputs, sum(1 for _ in missing), until)
        seen = at.seen_source(first.feed, first.instance)
        return cls(*found) if seen is None else SourceMissing(*found, seen)

    @property
    def what(self) -> str:
        return ", ".join([*map(str, self.inputs), *([f"... and {self.more} more"] if self.more else [])])

    def __str__(self) -> str:
        return f"waits for {self.what}"


class SourceMissing(InputsMissing):
    """The inputs are on a cluster of another colo, whose installation has a database of its own."""

    source: SeenSource

    @property
    def what(self) -> str:
        return f"{super().what} ({self.source})"


class RerunPending(Waiting, says="waits for the rerun of {process} {instance}"):
    """A rerun of another workload is about to replace an input."""

    process: str
    instance: datetime

    @classmethod
    def find(cls, at: Situation, nominal: datetime, record: InstanceRecord | None) -> RerunPending | None:
        if not at.pending_reruns.by_feed:
            return None
        found = at.pending_reruns.awaited(at.workload, nominal, at.available)
        return cls(*found) if found else None


class OptionalInputPending(Waiting, says="waits for {input}, which is optional and about to be made"):
    """A missing optional input is being made or about to be; the result is better with it."""

    input: MissingInput

    @classmethod
    def find(cls, at: Situation, nominal: datetime, record: InstanceRecord | None) -> OptionalInputPending | None:
        lacking = None if nominal in at.requests else being_made(at, nominal)
        if lacking is None or cls.until(at, nominal, record) <= at.now:
            return None
        return cls(lacking)

    @staticmethod
    def until(at: Situation, nominal: datetime, record: InstanceRecord | None) -> datetime:
        """As long as for what it requires, from when somebody looked again: no longer."""
        return max(gives_up(at, nominal, record), gives_up_at(at.looks.woke or nominal, at.workload))


class InputInvalid(Waiting):
    """An input that requires valid data would read an invalid instance.

    Attributes:
        relation: To the ``invalid`` instance, in words; empty: it is that itself.
        rule: The check that failed first, and ``found`` what it found.
        replaced: Whether the invalid instance was replaced since: what was made from it has to be made again.
        commands: What shows the verdict, and what overrules it.
    """

    feed: str
    cluster: str
    instance: datetime
    relation: str
    invalid: str
    rule: str
    found: str
    replaced: bool
    commands: tuple[str, ...]

    @classmethod
    def find(cls, at: Situation, nominal: datetime, record: InstanceRecord | None) -> InputInvalid | None:
        return next((one for one in at.closed_gates(nominal) if isinstance(one, cls)), None)

    def __str__(self) -> str:
        failed = f"rule {self.rule} failed"
        since = ", which was replaced since" if self.replaced else ""
        what = (
            f"{self.relation} invalid {self.invalid}{since}, {failed}" if self.relation else f"{failed}: {self.found}"
        )
        return f"waits until {self.feed} {format_instant(self.instance)} is valid: {what}"


class InputUnchecked(Waiting):
    """An input that requires valid data would read an instance whose checks have not run yet.

    ``unchecked`` is the instance, where it is a part of a roll-up, and ``problem`` why it could not be checked.
    """

    feed: str
    cluster: str
    instance: datetime
    backfilled: bool
    unchecked: str
    problem: str
    commands: tuple[str, ...]

    @classmethod
    def find(cls, at: Situation, nominal: datetime, record: InstanceRecord | None) -> InputUnchecked | None:
        return next((one for one in at.closed_gates(nominal) if isinstance(one, cls)), None)

    def __str__(self) -> str:
        name = f"{self.feed} {format_instant(self.instance)}"
        where = f"{self.unchecked} in {name}" if self.unchecked else name
        why = f": {self.problem}" if self.problem else ""
        return f"waits for the checks of {'the backfilled ' if self.backfilled else ''}{where}{why}"


TAKEN: tuple[type[Waiting], ...] = (InRun, InstanceSuspended)
NOT_READY: tuple[type[Waiting], ...] = (
    ProcessSuspended,
    RetryDelayed,
    InputsMissing,
    RerunPending,
    OptionalInputPending,
    InputInvalid,
    InputUnchecked,
)
"""The first that applies counts."""


class NoFreeSlot(Reason):
    parallel: int
    one_at_a_time: bool

    def __str__(self) -> str:
        why = "one at a time: several instances write one output instance" if self.one_at_a_time else None
        return f"waits for a free slot ({why or f'parallel: {self.parallel}'})"


class TurnPending(Reason):
    at_most: int

    def __str__(self) -> str:
        return f"waits for its turn (at most {count_of(self.at_most, 'instance is', 'instances are')} launched at once)"


class NewerIsReady(Reason, says="LAST_ONLY: {newest} is newer"):
    newest: datetime


class InputSkipped(Reason, says="LAST_ONLY: {input} was skipped"):
    """An input is not made, as a newer instance of it was."""

    input: MissingInput

    @classmethod
    def find(cls, at: Situation, nominal: datetime) -> InputSkipped | None:
        """None also where somebody asked for the instance."""
        if at.workload.order != "LAST_ONLY" or nominal in at.requests:
            return None
        lacking = skipped(at, nominal)
        return cls(lacking) if lacking else None


class GivenUp(Reason):
    @classmethod
    @abstractmethod
    def find(cls, at: Situation, nominal: datetime, missing: InputsMissing) -> GivenUp | None: ...


class InputEvicted(GivenUp, says="does not wait: {input} was evicted on {evicted}"):
    """Retention evicted an input, which does not arrive again."""

    input: MissingInput
    evicted: datetime

    @classmethod
    def find(cls, at: Situation, nominal: datetime, missing: InputsMissing) -> InputEvicted | None:
        if not at.evicted:
            return None
        for lacking in at.readiness.missing(nominal, at.available):
            gone = at.evicted.get(lacking.feed, {})
            if isinstance(lacking.instance, datetime) and lacking.instance in gone:
                return cls(lacking, gone[lacking.instance])
        return None


class InputsTimedOut(GivenUp):
    timeout: str
    missing: InputsMissing

    @classmethod
    def find(cls, at: Situation, nominal: datetime, missing: InputsMissing) -> InputsTimedOut | None:
        is_over = missing.until is not None and at.now >= missing.until
        return cls(timeout_text(at.workload), missing) if is_over else None

    def __str__(self) -> str:
        return f"missing after {self.timeout}: {self.missing.what}"


GIVEN_UP: tuple[type[GivenUp], ...] = (InputEvicted, InputsTimedOut)
"""The first that applies counts."""


def gives_up(at: Situation, nominal: datetime, record: InstanceRecord | None) -> datetime:
    """When the timeout for inputs is over, not counting pauses in which no process looked."""
    asked = at.requests[nominal].requested_at if nominal in at.requests else nominal
    due = at.workload.due(nominal)
    again = _opens(at, record) or _waits_again(at, record) or nominal
    return gives_up_at(at.looks.first_since(max(due, at.since or nominal, again, asked)), at.workload)


def _given_up_in_earnest(at: Situation, nominal: datetime, until: datetime) -> datetime | None:
    """Extends ``until`` to a full timeout after the last producer ended; None: it has not, or a collection is due."""
    for lacking in at.missing(nominal):
        if lacking.instance in at.pending_reruns.by_feed.get(lacking.feed, {}):
            return None
        seen = at.seen_source(lacking.feed, lacking.instance)
        if seen is not None and seen.failed_at is not None:
            return None  # nobody could see whether it is there
        since = settled_since(at, nominal, lacking)
        if since is None:
            return None
        collected = at.collected(lacking.feed)
        if at.looks.woke and collected and collected < at.looks.woke:
            return None
        if not is_set_back(since, at.now):
            until = max(until, gives_up_at(at.looks.first_since(since), at.workload))
    return until


def _opens(at: Situation, record: InstanceRecord | None) -> datetime | None:
    """None where there is no retry, or the clock was set back since the failure."""
    if record is None or (record.ended and is_set_back(record.ended, at.now)):
        return None
    opens = opens_at(record, at.workload.retry)
    if opens is None or record.ended is None or not record.waits_for_store or not at.workload.source_colo:
        return opens
    # Nobody has to wait longer for a source that was away and answers again, as its collector has seen.
    soon = later(record.ended, _SOURCE_AWAY)
    looks = (at.seen_source(one.feed, "") for one in at.workload.inputs)
    return soon if soon < opens and all(one and one.answers_since(record.ended) for one in looks) else opens


def _waits_again(at: Situation, record: InstanceRecord | None) -> datetime | None:
    """Since when the instance waits once more: it was resumed, or its run was interrupted."""
    if record is None or record.state is not InstanceState.WAITING or record.ended is None:
        return None
    return None if is_set_back(record.ended, at.now) else record.ended
