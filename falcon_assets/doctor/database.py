"""Checks of the database: whether it answers and keeps sessions, its tables, and the clocks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from falcon_assets.doctor.database_facts import DatabaseFacts
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, lasting, not_checked, ok, problem, warning
from falcon_assets.errors import SettingsError
from falcon_assets.history.database import revisions, wrong_revision
from falcon_assets.planning.clock import APART, Clock, is_set_back

OLDEST_POSTGRESQL = 14
_SLIGHTLY_APART = timedelta(seconds=30)
_POOLER = (
    "name PostgreSQL itself in FALCON_DATABASE_URL, or let the pooler keep sessions (pgbouncer: pool_mode = session)"
)
_CONNECTING = {
    "pooling mode": _POOLER,
    "password authentication failed": "fix user and password in FALCON_DATABASE_URL",
    "no password supplied": "add the password to FALCON_DATABASE_URL",
    "no pg_hba.conf entry": "allow this machine and user in pg_hba.conf of the server",
    "role": "create that user, or fix FALCON_DATABASE_URL",
    "database": "create the database (createdb), or fix FALCON_DATABASE_URL",
    "could not translate host name": "fix the host in FALCON_DATABASE_URL, or the name service of this machine",
    "too many": "close other connections, or raise max_connections of the server",
    "starting up": "wait until it has started, and check again",
    "is full": "free some space on the disk of the server",
    "no disk space": "free some, or point FALCON_HOME to another disk",
}


def check_database(context: CheckContext) -> Iterator[Diagnosis]:
    try:
        facts = context.database()
    except SettingsError as error:
        yield problem(str(error), connection_fix(str(error), embedded=context.settings.database_url is None))
        return
    if facts is None:
        yield ok("the embedded PostgreSQL does not exist yet: the first command that needs it creates it")
        return
    yield judge_database(facts, embedded=context.settings.database_url is None)


def check_migrations(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the tables of the ledger and of Dagster have the revisions that the installed versions need."""
    facts = _facts(context)
    if isinstance(facts, Diagnosis):
        yield facts
        return
    yield judge_ledger(facts.ledger, facts.ledger_head)
    if facts.has_dagster:
        yield judge_dagster_schema(*context.dagster_schema())


def check_clock(context: CheckContext) -> Iterator[Diagnosis]:
    """Whether the clocks agree, and none was set back."""
    yield judge_setting(context.settings.clock)
    facts = _facts(context)
    if isinstance(facts, Diagnosis):
        yield facts
        return
    yield judge_apart(facts.ahead)
    if facts.newest_event is not None and is_set_back(facts.newest_event, context.now):
        yield judge_set_back(facts.newest_event, context.now)
    if facts.other_clock:
        what, _, fix = facts.other_clock.partition("by the other: ")
        yield problem(f"{what}by the other", fix)


def _facts(context: CheckContext) -> DatabaseFacts | Diagnosis:
    try:
        facts = context.database()
    except SettingsError:
        return not_checked("the database does not answer")
    return ok("there is no database yet") if facts is None else facts


def connection_fix(reason: str, *, embedded: bool) -> str:
    said = reason.partition("cannot be reached: ")[2] or reason
    fix = next((fix for sign, fix in _CONNECTING.items() if sign in said), None)
    if fix is None or (embedded and "does not exist" in said):
        return (
            "read its log in FALCON_HOME/postgres/log, or name another server in FALCON_DATABASE_URL"
            if embedded
            else "start PostgreSQL there, or fix host and port in FALCON_DATABASE_URL"
        )
    return fix


def judge_database(facts: DatabaseFacts, *, embedded: bool) -> Diagnosis:
    version = facts.version // 10_000
    what = f"{'embedded ' if embedded else ''}PostgreSQL {version}"
    if facts.loses_sessions:
        return problem(
            f"{what} is behind a pooler that gives each statement or transaction another session: "
            "the locks of runs and coordinators are lost",
            _POOLER,
        )
    if facts.refuses_options:
        return problem(
            f"{what} is behind a pooler that refuses connections of the ledger: {facts.refuses_options}",
            "name PostgreSQL itself in FALCON_DATABASE_URL, or let the pooler take the parameter options",
        )
    if facts.is_read_only:
        return problem(f"{what} is read-only, as a standby is", "name the primary server in FALCON_DATABASE_URL")
    if version < OLDEST_POSTGRESQL:
        return problem(f"{what} is too old", f"use PostgreSQL {OLDEST_POSTGRESQL} or newer")
    return ok(f"{what} answers{', through a pooler that keeps sessions' if facts.is_pooled else ''}")


def judge_ledger(found: str | None, head: str) -> Diagnosis:
    if found is None:
        return ok("the ledger has no tables yet: the first command that needs them creates them")
    if found not in revisions():
        return problem(*wrong_revision(found))
    if found < head:
        return warning(
            f"the tables of the ledger are those of revision {found}, this version needs {head}",
            "run falcon ledger status, which migrates them, as does every command that needs them",
        )
    return ok(f"the ledger is at revision {head}")


def judge_dagster_schema(found: str | None, head: str) -> Diagnosis:
    if found == head:
        return ok(f"Dagster's tables are at revision {head}")
    return problem(
        f"Dagster's tables are at revision {found or 'none'}, the installed Dagster needs {head}",
        "stop Dagster, then: dagster instance migrate",
    )


def judge_setting(clock: Clock) -> Diagnosis:
    if clock.origin is not None and not clock.runs:
        return warning(
            f"the falcon clock stands still at {clock.text}: nothing new becomes due", "leave FALCON_CLOCK out"
        )
    return ok(f"the falcon clock shows {clock}")


def judge_apart(ahead: timedelta) -> Diagnosis:
    apart = abs(ahead)
    if apart < _SLIGHTLY_APART:
        return ok("this machine and the database agree on the time")
    side = "behind" if ahead > timedelta() else "ahead of"
    said = f"the clock of this machine is {lasting(apart)} {side} the database's"
    fix = "set both by NTP"
    return problem(said, fix) if apart > APART else warning(said, fix)


def judge_set_back(newest: datetime, now: datetime) -> Diagnosis:
    return problem(
        f"the clock of this machine was set back: the newest event was written {lasting(newest - now)} from now "
        f"({newest:%Y-%m-%dT%H:%M:%SZ})",
        "set the clock by NTP, then restart Dagster's daemon",
    )
