"""Operations on the installation: its versions, its status, its ledger, the roots of its stores."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Annotated, Any

from sqlalchemy.exc import OperationalError

from falcon_assets.doctor.all_checks import CheckResult, examine
from falcon_assets.doctor.diagnosis import Severity
from falcon_assets.doctor.stores import open_store, used_stores
from falcon_assets.errors import FalconError, SettingsError, StorageError
from falcon_assets.features.entities.status import entity_states
from falcon_assets.history.dagster_internals.tables import FOLDED, count_events
from falcon_assets.history.database import revision
from falcon_assets.history.overview import Overview, folded_up_to, overview
from falcon_assets.model.access import Role
from falcon_assets.model.store_url import canonical_url
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.audit import PlainRequest, audited
from falcon_assets.operations.data_roots import known_roots, roots_of
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation, Result
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.roots import why_away


@dataclass(frozen=True)
class RootState(Result):
    """A root of a store, in use or formerly.

    Attributes:
        mark: Its known mark; None: unknown, or it may not be marked.
        since: When it was used first, in real time; None: never.
        problem: Why it cannot be used now; None: it exists, or is created by the first write.
    """

    cluster: str
    root: str
    mark: str | None
    since: str | None
    problem: str | None


class ListRoots(Operation):
    """List the storage roots of all clusters, and show which are unavailable."""

    command = "admin root list"

    def run(self, installation: Installation) -> list[RootState]:
        found = list[RootState]()
        with installation.database.connect() as connection:
            remembered = known_roots(connection)
        for store in _stores(installation, remembered):
            root = store.identity
            known, since = remembered.get((root.cluster, root.place), (None, None))
            try:
                with driver_explained(root.cluster, f"look for the root {root.shown}"):
                    why = why_away(root, known)
            except StorageError as error:
                why = str(error)
            moment = since.isoformat(timespec="seconds") if since else None
            found.append(RootState(root.cluster, root.shown, known.mark if known else None, moment, why))
        return sorted(found, key=lambda one: (one.cluster, one.root))


class AdoptRoot(Operation):
    """Accept the present content of a storage root of CLUSTER, and mark the root.

    Use it after a disk was replaced or a bucket was recreated on purpose. ROOT is the location as errors and `falcon
    admin root list` show it; the default is the root of the cluster's write endpoint. The recorded history does not
    change: instances whose files are lost have to be computed or delivered again.
    """

    command = "admin root adopt"
    role = Role.ADMIN
    cluster: Annotated[str, Given("CLUSTER")]
    root: Annotated[str | None, Given("[ROOT]")] = None

    def run(self, installation: Installation) -> bool:
        with audited(installation, "admin root adopt", PlainRequest()) as audit:
            declared = installation.entities.cluster(self.cluster)
            audit.about([(declared.kind, declared.name)])
            require_change(audit.principal, "adopt a root of", [declared])
            changed = roots_of(installation.settings).adopt(_store(installation, self.cluster, self.root).identity)
            audit.result(changed)
        return changed


def _store(installation: Installation, cluster: str, root: str | None) -> ClusterStore:
    settings = installation.settings
    if root is None:
        return ClusterStore(installation.entities.cluster(cluster), settings.home, settings.environ)
    with installation.database.connect() as connection:
        remembered = known_roots(connection)
    ours = [one for one in _stores(installation, remembered) if one.cluster.name == cluster]
    place = canonical_url(root if "://" in root else f"file://{root}")
    for one in ours:
        if place in (one.identity.place, canonical_url(f"file://{one.identity.shown}")):
            return one
    known = ", ".join(sorted({one.identity.shown for one in ours}))
    raise StorageError(f"cluster {cluster!r} has no root {root}: its roots are {known}")


def _stores(installation: Installation, remembered: Iterable[tuple[str, str]]) -> Iterator[ClusterStore]:
    settings, entities = installation.settings, installation.entities
    seen = set[tuple[str, str]]()
    for one in used_stores(entities):
        try:
            store = open_store(one, entities, settings.home, settings.environ)
        except FalconError:  # of no place that anybody could use; falcon doctor says why
            continue
        key = store.identity.cluster, store.identity.place
        if key not in seen:
            seen.add(key)
            yield store
    left = [one for one in remembered if one not in seen and one[0] in entities.clusters]
    for cluster, place in left:  # archives, and where something lay before
        try:
            yield ClusterStore(entities.clusters[cluster], settings.home, settings.environ, root=place)
        except FalconError:
            continue


CHECKS = ("definitions", "database", "daemon", "webserver")
"""Checks of ``falcon doctor`` that show whether everything runs."""
_ASKED = {"definitions", "database"}


@dataclass(frozen=True)
class InstallationStatus(Result):
    """The status of an installation.

    Attributes:
        now: The time on the falcon clock, with the clock.
        colo: None: all.
        entities: Status -> number of feeds and processes; None: unknown.
        behind: Number of Dagster's events that are not folded; None: unknown.
    """

    findings: tuple[CheckResult, ...]
    now: str
    colo: str | None
    entities: Mapping[str, int] | None
    behind: int | None
    keys = ("ok", "checks=findings", "clock=now", "colo", "entities", "behind")

    @property
    def ok(self) -> bool:
        """Whether all of it works; a part that does not run counts as not working, required or not."""
        return all(one.diagnosis.status is Severity.OK for one in self.findings)

    @property
    def failed(self) -> bool:
        return not self.ok


class ShowStatus(Operation):
    """Check definitions, database, code location, and Dagster's processes.

    Dagster's processes are its daemon and its webserver. The exit code is 1 where something does not work or does not
    run. `falcon doctor` checks everything else.
    """

    command = "admin status"

    def run(self, installation: Installation) -> InstallationStatus:
        return installation_status(installation)


class ShowVersions(Operation):
    """Show the versions of Falcon, Dagster, PySpark, Python and the ledger schema."""

    command = "admin version"

    def run(self, installation: Installation) -> Versions:
        return installed_versions(installation)


def installation_status(installation: Installation) -> InstallationStatus:
    """Makes the :data:`CHECKS` of ``falcon doctor``."""
    settings = installation.settings
    findings = examine(datetime.now(UTC), CHECKS)
    works = {one.check for one in findings if one.diagnosis.status is Severity.OK}
    entities = dict(Counter(one.status for one in entity_states(installation))) if works >= _ASKED else None
    clock = f"{settings.now().isoformat(timespec='seconds')} ({settings.clock})"
    behind = _behind(installation) if "database" in works else None
    return InstallationStatus(findings, clock, settings.colo, entities, behind)


def _behind(installation: Installation) -> int:
    with installation.tables.connect() as connection:
        return count_events(connection, folded_up_to(connection), FOLDED)


@dataclass(frozen=True)
class Versions(Result):
    falcon_assets: str
    dagster: str
    pyspark: str
    python: str
    ledger: str | None


def installed_versions(installation: Installation) -> Versions:
    try:
        with installation.database.connect() as connection:
            ledger = revision(connection)
    except (SettingsError, OperationalError):
        ledger = None
    packages = version("falcon-assets"), version("dagster"), version("pyspark")
    return Versions(*packages, platform.python_version(), ledger)


@dataclass(frozen=True)
class LedgerStatus(Overview):
    behind: int

    def as_data(self) -> dict[str, Any]:
        instances = [
            {"process": process, "cluster": cluster, "states": {state.value: count for state, count in states.items()}}
            for (process, cluster), states in self.instances.items()
        ]
        return {"event_id": self.event_id, "behind": self.behind, "rows": dict(self.rows), "instances": instances}


@dataclass(frozen=True)
class Rebuilt:
    facts: int
    seconds: float


class ShowLedger(Operation):
    """Show the ledger's lag, its row counts, and process instances by state."""

    command = "ledger status"

    def run(self, installation: Installation) -> LedgerStatus:
        """Does not bring the ledger up to date."""
        with installation.ledger.engine.connect() as connection:
            found = overview(connection)
        return LedgerStatus(**vars(found), behind=installation.ledger.behind(found.event_id))


class RebuildLedger(Operation):
    """Rebuild the ledger from Dagster's whole event history.

    The status of entities that commands have set (scheduled, suspended) is kept.
    """

    command = "ledger rebuild"
    role = Role.ADMIN

    def run(self, installation: Installation) -> Rebuilt:
        ledger, started = installation.ledger, time.monotonic()
        return Rebuilt(ledger.rebuild(), time.monotonic() - started)
