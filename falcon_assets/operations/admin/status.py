"""Whether everything that this installation needs is there and works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from falcon_assets.ledger.overview import folded_up_to
from falcon_assets.operations.doctor.examination import CheckResult, examine
from falcon_assets.operations.doctor.judgement import Severity
from falcon_assets.operations.entities.status import entity_states
from falcon_assets.operations.installation import Installation
from falcon_assets.orchestration.dagster_internals.tables import FOLDED, count_events

CHECKS = ("definitions", "database", "daemon", "webserver")
"""Those of ``falcon doctor`` that say whether everything runs."""
_ASKED = {"definitions", "database"}
"""Without them nothing can be said about entities."""


@dataclass(frozen=True)
class InstallationStatus:
    """How an installation is.

    Attributes:
        findings: What has to work.
        now: The time on the falcon clock, and which clock that is.
        colo: The colo that it serves; None: all.
        entities: Status -> how many feeds and processes are in it; None: that cannot be said.
        behind: How many events of Dagster's are not in the ledger yet; None: that cannot be said.
    """

    findings: tuple[CheckResult, ...]
    now: str
    colo: str | None
    entities: Mapping[str, int] | None
    behind: int | None

    @property
    def ok(self) -> bool:
        """Whether all of it works; what does not run is not ok here, whether or not it has to."""
        return all(one.judgement.status is Severity.OK for one in self.findings)

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {
            "ok": self.ok,
            "checks": [one.as_data() for one in self.findings],
            "clock": self.now,
            "colo": self.colo,
            "entities": self.entities,
            "behind": self.behind,
        }


def installation_status(installation: Installation) -> InstallationStatus:
    """Asks what ``falcon doctor`` asks of definitions, database, Dagster's daemon, its webserver and code locations."""
    settings = installation.settings
    findings = examine(datetime.now(UTC), CHECKS)
    works = {one.check for one in findings if one.judgement.status is Severity.OK}
    entities = dict(Counter(one.status for one in entity_states(installation))) if works >= _ASKED else None
    clock = f"{settings.now().isoformat(timespec='seconds')} ({settings.clock})"
    behind = _behind(installation) if "database" in works else None
    return InstallationStatus(findings, clock, settings.colo, entities, behind)


def _behind(installation: Installation) -> int:
    with installation.tables.connect() as connection:
        return count_events(connection, folded_up_to(connection), FOLDED)
