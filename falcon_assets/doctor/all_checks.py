"""All checks, in parallel, each limited to some seconds; those that start a Spark after the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from falcon_assets.doctor import (
    automation,
    database,
    datasources,
    drivers,
    environment,
    executors,
    machine,
    receivers,
    runs,
    space,
    stores,
    timelines,
    webserver,
)
from falcon_assets.doctor import dagster_yaml as instance
from falcon_assets.doctor import receivers as lineage
from falcon_assets.doctor import stores as connectors
from falcon_assets.doctor import stores as registries
from falcon_assets.doctor.diagnosis import CheckContext, Diagnosis, Severity, problem
from falcon_assets.doctor.side_by_side import side_by_side
from falcon_assets.errors import FalconError, QueryError, SettingsError
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation, Result
from falcon_assets.operations.paging import Page
from falcon_assets.settings import load_settings

Check: TypeAlias = Callable[[CheckContext], Iterable[Diagnosis]]
ANSWER_SECONDS = 10.0
SESSION_SECONDS = 90.0
"""For checks that start a Spark."""
CHECKS: Mapping[str, Check] = {
    "python": machine.check_python,
    "java": machine.check_java,
    "spark": machine.check_spark,
    "executors": executors.check_executors,
    "memory": drivers.check_memory,
    "workers": drivers.check_workers,
    "capture": machine.check_capture,
    "encoding": machine.check_encoding,
    "limits": machine.check_limits,
    "variables": environment.check_variables,
    "definitions": environment.check_definitions,
    "secrets": environment.check_secrets,
    "queues": environment.check_queues,
    "receivers": receivers.check_receivers,
    "home": space.check_home,
    "space": space.check_space,
    "database": database.check_database,
    "migrations": database.check_migrations,
    "clock": database.check_clock,
    "timelines": timelines.check_timelines,
    "stores": stores.check_stores,
    "registries": registries.check_registries,
    "connectors": connectors.check_connectors,
    "instance": instance.check_instance,
    "daemon": automation.check_daemon,
    "sensors": automation.check_sensors,
    "queue": runs.check_queue,
    "runs": runs.check_runs,
    "webserver": webserver.check_webserver,
    "jobs": webserver.check_jobs,
    "openlineage": lineage.check_openlineage,
    "messaging": receivers.check_messaging,
    "datasources": datasources.check_datasources,
}
"""Name -> check, in the order of the report: those that others depend on are first."""
_NEEDED = (
    *((name, "doctor.database_probe") for name in ("database", "migrations", "clock", "timelines", "space", "daemon")),
    *((name, "doctor.dagster_probe") for name in ("migrations", "instance", "sensors", "queue", "runs")),
    ("receivers", "features.notification.delivery"),
    ("datasources", "features.datasources.access"),
    ("spark", "compute.spark.endpoints.reachable"),
    ("executors", "compute.spark.endpoints.probing"),
)
"""Modules that take seconds to load, of Dagster and Spark's client, loaded before so that no check is late."""


@dataclass(frozen=True)
class CheckResult(Result):
    check: str
    diagnosis: Diagnosis
    keys = ("check", *(f"{name}=diagnosis.{name}" for name in ("status", "text", "fix")))


def examine(now: datetime, names: Collection[str] = ()) -> tuple[CheckResult, ...]:
    """Makes checks (by default all) without changing anything or raising errors; ``now`` is the real time."""
    try:
        settings = load_settings()
    except SettingsError as error:
        return (CheckResult("settings", problem(str(error), "fix that variable first: nothing else was checked")),)
    return tuple(_examine(CheckContext(settings, now), names or CHECKS))


def _examine(context: CheckContext, names: Collection[str]) -> Iterator[CheckResult]:
    wanted = {name: check for name, check in CHECKS.items() if name in names}
    needed = {module for name, module in _NEEDED if name in wanted}
    for module in (one for one in needed if find_spec(f"falcon_assets.{one}".rpartition(".")[0])):
        import_module(f"falcon_assets.{module}")
    if "stores" in wanted:
        stores.load_drivers(context)
    asked = {name: partial(_diagnoses, check, context) for name, check in wanted.items()}
    slow = {name: asked.pop(name) for name in list(asked) if wanted[name] is connectors.check_connectors}
    answers = side_by_side(asked, ANSWER_SECONDS) | side_by_side(slow, SESSION_SECONDS)
    for name in wanted:
        seconds = SESSION_SECONDS if name in slow else ANSWER_SECONDS
        late = problem(f"no answer within {seconds:.0f} s", "check the disk or server that it waits for")
        yield from (CheckResult(name, one) for one in answers.get(name, (late,)))


def _diagnoses(check: Check, context: CheckContext) -> tuple[Diagnosis, ...]:
    try:
        return tuple(check(context))
    except FalconError as error:
        return (problem(str(error), "fix that"),)
    except Exception as error:  # drivers raise anything, and may quote secrets
        return (problem(f"it could not be checked ({type(error).__name__})", "report this as a bug of falcon doctor"),)


class Findings(Page[CheckResult]):
    @property
    def failed(self) -> bool:
        return any(one.diagnosis.status is Severity.PROBLEM for one in self.items)


def _known(check: str) -> str:
    if check not in CHECKS:
        raise QueryError(f"{check!r} is not one of {', '.join(map(repr, CHECKS))}")
    return check


class ExamineInstallation(Operation):
    """Check this installation, and show what is wrong and how to fix it.

    Prints one line for each check: machine, settings, definitions, secrets, disks, database, clocks, stores, Dagster's
    daemon, sensors and runs. It takes a few seconds, even where nothing answers. It changes nothing, except that it
    writes a small file to each writable store and removes it again.

    The exit code is 1 where there is a problem; warnings do not count.
    """

    command = "doctor"
    only: Annotated[tuple[Annotated[str, AfterValidator(_known)], ...], Given(metavar="CHECK", values=CHECKS)] = Field(
        (), description=f"Only that check; may be repeated. Checks: {', '.join(CHECKS)}."
    )

    def run(self, installation: Installation) -> Findings:
        found = examine(datetime.now(UTC), self.only)
        return Findings(found, len(found), None)
