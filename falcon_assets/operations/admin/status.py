"""Whether everything that this installation needs is there and works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy.exc import OperationalError

from falcon_assets.errors import FalconError, InvalidDefinitionsError, NotRunningError, count_of, printable
from falcon_assets.ledger.overview import folded_up_to
from falcon_assets.operations.entities.status import entity_states
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.reload import WebserverError, loaded_code_locations


@dataclass(frozen=True)
class Check:
    """Something that has to work.

    Attributes:
        name: What.
        ok: Whether it does.
        text: How it is, or what is wrong.
    """

    name: str
    ok: bool
    text: str


@dataclass(frozen=True)
class InstallationStatus:
    """How an installation is.

    Attributes:
        checks: What has to work.
        now: The time on the falcon clock, and which clock that is.
        colo: The colo that it serves; None: all.
        entities: Status -> how many feeds and processes are in it; None: that cannot be said.
        behind: How many events of Dagster's are not in the ledger yet; None: that cannot be said.
    """

    checks: tuple[Check, ...]
    now: str
    colo: str | None
    entities: Mapping[str, int] | None
    behind: int | None

    @property
    def ok(self) -> bool:
        """Whether all of it works."""
        return all(one.ok for one in self.checks)

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "ok": self.ok,
            "checks": [asdict(one) for one in self.checks],
            "clock": self.now,
            "colo": self.colo,
            "entities": self.entities,
            "behind": self.behind,
        }


def installation_status(installation: Installation) -> InstallationStatus:
    """Looks at definitions, database, Dagster's daemon, its webserver and the code locations there."""
    settings = installation.settings
    checks = [
        _check("definitions", lambda: _definitions(installation)),
        _check("database", lambda: _database(installation)),
    ]
    definitions, database = (one.ok for one in checks)
    if database:
        checks.append(_check("daemon", lambda: _daemon(installation)))
    checks += _webserver(settings.webserver)
    entities = dict(Counter(one.status for one in entity_states(installation))) if definitions and database else None
    clock = f"{settings.now().isoformat(timespec='seconds')} ({settings.clock})"
    behind = _behind(installation) if database else None
    return InstallationStatus(tuple(checks), clock, settings.colo, entities, behind)


def _check(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except InvalidDefinitionsError as error:
        return Check(name, False, f"{str(error).splitlines()[-1]}: falcon validate lists them")
    except FalconError as error:
        return Check(name, False, printable(str(error)))
    except OperationalError as error:
        return Check(name, False, printable(f"it does not answer: {error.orig}".strip()))


def _definitions(installation: Installation) -> str:
    found = installation.entities
    counts = ((found.clusters, "cluster", None), (found.feeds, "feed", None), (found.processes, "process", "processes"))
    return ", ".join(count_of(len(those), noun, plural) for those, noun, plural in counts)


def _database(installation: Installation) -> str:
    with installation.ledger.engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
    return "embedded" if installation.settings.database_url is None else "FALCON_DATABASE_URL"


def _daemon(installation: Installation) -> str:
    from falcon_assets.orchestration.dagster_internals.daemons import required_daemons  # noqa: PLC0415 - takes seconds

    found = required_daemons(installation.instance)
    dead = [one for one in found if not one.is_alive]
    if dead:
        seen = max((one.seen for one in dead if one.seen), default=None)
        when = f"last seen {seen.isoformat(timespec='seconds')}" if seen else "never seen"
        names = ", ".join(one.name for one in dead)
        raise NotRunningError(f"not alive, {when}: {names}; start dagster-daemon or dagster dev")
    return f"alive: {', '.join(one.name for one in found)}"


def _webserver(url: str | None) -> list[Check]:
    if url is None:
        return [Check("webserver", True, "not asked: FALCON_WEBSERVER_URL is empty")]
    try:
        found = loaded_code_locations(url)
    except WebserverError as error:
        return [Check("webserver", False, f"{url} does not answer ({error}): start it, or set FALCON_WEBSERVER_URL")]
    there = Check("webserver", True, f"{url} answers")
    if not found:
        return [there, Check("code location", False, f"{url} serves none with entities: add one to workspace.yaml")]
    problems = [f"{name} is not loaded: {why}" for name, why in found.items() if why]
    text = "; ".join(problems) or f"{', '.join(found)} is loaded"
    return [there, Check("code location", not problems, text)]


def _behind(installation: Installation) -> int:
    with installation.ledger.engine.connect() as connection:
        event = folded_up_to(connection)
    return installation.ledger.behind(event)
