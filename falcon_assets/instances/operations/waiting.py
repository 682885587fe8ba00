"""Waits until an instance has a state: for scripts, and for pipelines of continuous integration."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic, sleep
from typing import Annotated, Any, Literal, TypeAlias, get_args

from pydantic import Field
from sqlalchemy import Connection

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import QueryError
from falcon_assets.history.dagster_internals.storage import DATABASE_ERRORS
from falcon_assets.history.platform.postgres import database_url, unreachable
from falcon_assets.history.platform.reconnecting import in_the_foreground
from falcon_assets.instances.store.instance_pages import FEED_ROWS
from falcon_assets.instances.store.known_instances import known_instances
from falcon_assets.instances.views.details import Subject, find_subject
from falcon_assets.instances.views.listing import instance_status
from falcon_assets.instances.views.query import InstanceInfo, InstanceQuery
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import Instant, format_instant
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation
from falcon_assets.planning.instance_record import LATE, FeedState, InstanceRecord, InstanceState
from falcon_assets.planning.writers import makers

POLL_SECONDS = 2.0
Lasting: TypeAlias = Literal[
    "SUCCEEDED", "FAILED", "TIMED_OUT", "KILLED", "SKIPPED", "SUSPENDED", "AVAILABLE", "EVICTED"
]
LASTING, LASTING_OF_FEEDS = get_args(Lasting)[:6], get_args(Lasting)[6:]


@dataclass(frozen=True)
class WaitResult:
    """``info`` is as in lists, None while waiting; ``reached``: whether ``state`` is ``wanted``."""

    subject: Subject
    state: str
    wanted: str
    reached: bool
    text: str = ""
    info: InstanceInfo | None = None

    @property
    def failed(self) -> bool:
        return not self.reached

    def as_data(self) -> dict[str, Any]:
        instance = self.info.as_data() if self.info else {}
        return {**instance, "state": self.state, "wanted": self.wanted, "reached": self.reached, "text": self.text}


class WaitForInstance(Operation):
    """Wait until an instance of the process or feed NAME reaches a state.

    INSTANCE is a time, YYYY-MM-DDTHH:MMZ. Checks every two seconds. The exit code is 0 when the instance is in the
    state; 1 when it ended in another state or the timeout is over; 130 when the command was interrupted.
    """

    command = "instance wait"
    name: Annotated[str, Given("NAME")]
    instance: Annotated[Instant, Given("INSTANCE")]
    wanted: Annotated[Lasting | None, Given(flags=("--for",))] = Field(
        None, description="State to wait for (default: SUCCEEDED, for a feed AVAILABLE)."
    )
    timeout: Annotated[Frequency | None, Given(metavar="DURATION")] = Field(
        None,
        description="Maximum wait in real time, such as 'minutes(30)' (default: no limit).",
    )
    cluster: str | None = Field(None, description="Cluster: needed if the entity is on several.")
    kind: Annotated[Literal["feed", "process"] | None, Given(flags=("--type",))] = Field(
        None, description="Kind of NAME: needed if a feed and a process share it."
    )

    def run(self, installation: Installation) -> WaitResult:
        timeout = self.timeout.length if self.timeout else None
        return wait_for_instance(
            installation,
            self.name,
            self.instance,
            wanted=self.wanted,
            timeout=timeout,
            cluster=self.cluster,
            kind=self.kind,
        )


def wait_for_instance(
    installation: Installation,
    name: str,
    instance: datetime,
    *,
    wanted: str | None = None,
    timeout: timedelta | None = None,
    cluster: str | None = None,
    kind: str | None = None,
) -> WaitResult:
    """Waits until the instance has the state, cannot reach it without intervention, or the time is over.

    ``wanted`` None is SUCCEEDED, for feeds AVAILABLE, which SUCCEEDED means there too; ``timeout`` is in real time,
    None: no end; ``cluster`` None: the only one; ``kind`` is needed where a feed and a process have the name.

    Raises:
        UnknownEntityError, UnknownInstanceError: as :func:`find_subject`.
        DeniedError: its ``acl`` lets only others read it.
        QueryError: the instance never has that state.
        SettingsError: the database is away for more than half a minute.
    """
    subject = find_subject(installation.entities, name, instance, cluster, kind)
    require_readable(installation, "wait", [subject.entity])
    state = _wanted(subject, wanted)
    ledger, failed = installation.ledger, False
    end = monotonic() + (timeout.total_seconds() if timeout is not None else math.inf)
    with in_the_foreground():
        while True:
            is_last = monotonic() >= end
            try:
                ledger.catch_up()
                with ledger.engine.connect() as connection:
                    found = _found(connection, installation.entities, subject, state)
                is_over = found.reached or bool(found.text)
                info = _info(installation, subject) if is_over or is_last else None
            except DATABASE_ERRORS as error:
                if failed:
                    raise unreachable(database_url(installation.settings), error) from error
                failed = True  # the question was under way when the database went: once more, which waits for it
                continue
            failed = False
            if is_over:
                return replace(found, info=info, text=found.text or f"{subject} is {found.state}")
            if is_last:
                text = f"{subject} is {found.state} and not {state}: the timeout is over"
                return replace(found, info=info, text=text)
            sleep(max(min(POLL_SECONDS, end - monotonic()), 0))


def _info(installation: Installation, subject: Subject) -> InstanceInfo:
    query = InstanceQuery(
        subject.name,
        "process" if subject.workload else "feed",
        start=subject.instance,
        cluster=subject.cluster,
        filters=(("kind", subject.kind),),
    )
    (found,) = instance_status(installation, query).items
    return found


def _wanted(subject: Subject, state: str | None) -> str:
    known = LASTING if subject.workload else LASTING_OF_FEEDS
    wanted = known[0] if state is None or (subject.workload is None and state == LASTING[0]) else state
    if wanted not in known:
        raise QueryError(f"{subject} is never {wanted}: it is a {subject.kind}; wait for {', '.join(known)}")
    return wanted


def _found(connection: Connection, store: EntityStore, subject: Subject, wanted: str) -> WaitResult:
    """``text`` is set where the state cannot be reached without intervention."""
    if subject.workload is None:
        return _found_feed(connection, store, subject, wanted)
    (known,) = known_instances(connection, [(subject.name, subject.cluster, subject.instance)]).values()
    record, state = known.record, known.record.state.value
    # Who asked for a rerun waits for that; late data asks by itself.
    is_asked = known.request is not None and known.request.kind != LATE and not known.is_over(subject.workload.retry)
    if state == wanted and not record.in_flight and not is_asked:
        return WaitResult(subject, state, wanted, reached=True)
    text = f"{subject} {_over(record)}" if known.is_over(subject.workload.retry) else ""
    return WaitResult(subject, state, wanted, reached=False, text=text)


def _found_feed(connection: Connection, store: EntityStore, subject: Subject, wanted: str) -> WaitResult:
    name, cluster, instance = subject.name, subject.cluster, subject.instance
    known = FEED_ROWS.some(connection, [(name, cluster, instance)]).get((name, cluster, instance))
    state = (known.state if known else FeedState.MISSING).value
    found = WaitResult(subject, state, wanted, reached=state == wanted)
    if found.reached or state == FeedState.AVAILABLE.value:
        return found
    if known:
        return replace(found, text=f"{subject} is {state}: it will not come back by itself")
    bringing = makers([*store.producers(name, cluster), *store.replications_to(name, cluster)], name, cluster, instance)
    instances = known_instances(connection, [(one.name, one.cluster, nominal) for one, nominal in bringing])
    for one, nominal in bringing:
        maker = instances[one.name, one.cluster, nominal]
        if maker.record.state is InstanceState.SUCCEEDED or not maker.is_over(one.retry):
            return found
    if not bringing:
        return found
    one, nominal = bringing[0]
    record = instances[one.name, one.cluster, nominal].record
    return replace(found, text=f"{subject} is {state}: {one.name} {format_instant(nominal)} {_over(record)}")


def _over(record: InstanceRecord) -> str:
    why = record.reason.strip().partition("\n")[0]
    return f"is {record.state.value} and stays so" + (f": {why}" if why else "")
