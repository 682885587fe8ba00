"""The roots of stores: which are known and there, and that what is at one now is to be it from now on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from falcon_assets.errors import FalconError, StorageError
from falcon_assets.ledger.data_roots import known_roots
from falcon_assets.model.store_url import canonical_url
from falcon_assets.operations.acting import require_change
from falcon_assets.operations.auditing import PlainRequest, audited
from falcon_assets.operations.doctor.stores import open_store, used_stores
from falcon_assets.operations.installation import Installation
from falcon_assets.orchestration.platform.data_roots import roots_of
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.roots import why_away


@dataclass(frozen=True)
class RootState:
    """A root of a store that is used, or was.

    Attributes:
        cluster: Whose store.
        root: Where it is.
        mark: What it is known to carry; None: it is not known, or may not be marked.
        since: Since when it is known, in real time; None: it was never used.
        problem: Why nothing can be done there now; None: it is there, or is made when it is written to first.
    """

    cluster: str
    root: str
    mark: str | None
    since: str | None
    problem: str | None

    def as_data(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {**self.__dict__}


def list_roots(installation: Installation) -> list[RootState]:
    """The roots of all stores that are used or were, by cluster; nothing is marked or remembered.

    Raises:
        InvalidDefinitionsError: the definitions have problems.
        SettingsError: the database cannot be reached.
    """
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


def adopt_root(installation: Installation, cluster: str, root: str | None = None) -> bool:
    """Takes what is at a root of a cluster for it from now on, and marks it; whether anything has changed.

    What is recorded of instances is left alone: those that are not there any more have to be made or brought again.

    Args:
        installation: Where.
        cluster: The cluster.
        root: As :func:`list_roots` and errors name it; None: that of the cluster's ``write`` endpoint.

    Raises:
        UnknownEntityError: there is no such cluster.
        StorageError: it has no such root, the root is not there, or the store refuses.
        DeniedError: the user may not change the cluster.
    """
    with audited(installation, "admin root adopt", PlainRequest()) as audit:
        declared = installation.entities.cluster(cluster)
        audit.about([(declared.kind, declared.name)])
        require_change(audit.principal, "adopt a root of", [declared])
        changed = roots_of(installation.settings).adopt(_store(installation, cluster, root).identity)
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
    """One for each root."""
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
