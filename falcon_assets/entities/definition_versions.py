"""Versions of definitions, and the one that an instance runs with (source: Apache Falcon)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, and_, func, insert, select, tuple_

from falcon_assets.catalog.workflow_files import WorkflowFile
from falcon_assets.entities.workflow_contents import keep_workflows
from falcon_assets.errors import printable
from falcon_assets.history.database import lock_in_transaction, parts, upsert
from falcon_assets.history.tables import DEFINITION_TREES, DEFINITION_VERSIONS, ENTITY_STATUS
from falcon_assets.model.entity import Key
from falcon_assets.model.feed import Feed
from falcon_assets.planning.instance_record import InstanceRecord, InstanceState
from falcon_assets.planning.workloads import Workload

if TYPE_CHECKING:
    from falcon_assets.catalog.definition_texts import DefinitionTexts


@dataclass(frozen=True)
class VersionSince:
    """``since`` is on the falcon clock."""

    number: int
    since: datetime


_LOCK = "falcon definition versions"
_LOAD = "load"
_WAITS = (InstanceState.WAITING, InstanceState.READY)


@dataclass(frozen=True)
class DefinitionVersion:
    """A version of a definition.

    ``text`` is stored with stars for secrets, None: the entity was deleted; ``text_hash`` and ``workflow_hash`` are
    SHA-256, the latter of the files of its workflows, None: it has none. ``since`` is on the falcon clock;
    ``operation`` is ``load`` for changes found in the tree.
    """

    kind: str
    name: str
    version: int
    text: str | None
    text_hash: str | None
    workflow_hash: str | None
    since: datetime
    operation: str
    actor: str
    reason: str


@dataclass(frozen=True)
class Recorder:
    """``keys``: only these are recorded, except by a load; ``anew``: also where nothing in them changed."""

    actor: str
    operation: str = _LOAD
    reason: str = ""
    keys: frozenset[Key] = field(default=frozenset())
    anew: bool = False


def record_definitions(engine: Engine, root: Path, now: datetime, recorder: Recorder) -> int:
    """Records the changes of the tree since the last time, and returns the number of versions.

    One statement and no parsing where nothing changed; under a lock, so that each process has read the latest tree.
    Raises InvalidDefinitionsError (nothing is recorded), and DefinitionStoreError where an interrupted change of the
    tree cannot be finished.
    """
    from falcon_assets.catalog.definition_texts import (  # noqa: PLC0415 - it parses; who reads a list need not
        read_definition_texts,
    )

    with engine.connect() as connection:
        if not recorder.anew and _is_recorded(connection, root):
            return 0
    with engine.begin() as connection:
        lock_in_transaction(connection, _LOCK)
        if not root.is_dir() or (not recorder.anew and _is_recorded(connection, root)):
            return 0
        texts = read_definition_texts(root)
        if not texts.by_key and recorder.operation == _LOAD:  # such a tree is not loaded
            return 0
        new = list(_new_rows(connection, root, texts, recorder))
        mine = [row for row in new if recorder.operation == _LOAD or (row["kind"], row["name"]) in recorder.keys]
        said = {"operation": recorder.operation, "actor": recorder.actor, "reason": recorder.reason}
        by = {name: printable(text) for name, text in said.items()}  # PostgreSQL takes no byte that is not UTF-8
        if mine:
            connection.execute(insert(DEFINITION_VERSIONS), [{**row, **by, "since": now} for row in mine])
        keep_workflows(connection, root, _files_of(connection, texts))
        if len(mine) == len(new):  # else somebody else writes down what is left: another command, or the next load
            tree = {"root": printable(str(root)), "fingerprint": texts.fingerprint, "workflows": list(texts.workflows)}
            upsert(connection, DEFINITION_TREES, [{**tree, "entities": [list(key) for key in texts.by_key]}])
    return len(mine)


def unrecorded_versions(connection: Connection, root: Path) -> dict[Key, int]:
    """The versions that the next load would record; writes nothing, raises as :func:`record_definitions`."""
    if not root.is_dir() or _is_recorded(connection, root):
        return {}
    from falcon_assets.catalog.definition_texts import (  # noqa: PLC0415 - it parses; who reads a list need not
        read_definition_texts,
    )

    rows = _new_rows(connection, root, read_definition_texts(root), Recorder(""))
    return {(row["kind"], row["name"]): row["version"] for row in rows if row["text_hash"] is not None}


def _files_of(connection: Connection, texts: DefinitionTexts) -> dict[tuple[str, int], tuple[WorkflowFile, ...]]:
    latest = _latest(connection)
    return {
        (key[1], latest[key].version): one.files
        for key, one in texts.by_key.items()
        if one.files and key in latest and _hashes(latest[key]) == _hashes(one)
    }


def _hashes(one: Any) -> tuple[str | None, str | None]:
    return one.text_hash, one.workflow_hash


def definition_history(connection: Connection, kind: str, name: str) -> list[DefinitionVersion]:
    table = DEFINITION_VERSIONS
    found = connection.execute(
        select(table).where(table.c.kind == kind, table.c.name == name).order_by(table.c.version)
    )
    return [DefinitionVersion(**row._mapping) for row in found]


def definition_version(connection: Connection, kind: str, name: str, version: int) -> DefinitionVersion:
    table = DEFINITION_VERSIONS
    wanted = select(table).where(table.c.kind == kind, table.c.name == name, table.c.version == version)
    return DefinitionVersion(**connection.execute(wanted).one()._mapping)


def recorded_kinds(connection: Connection, name: str) -> list[str]:
    table = DEFINITION_VERSIONS
    found = connection.execute(select(table.c.kind).where(table.c.name == name).distinct().order_by(table.c.kind))
    return list(found.scalars())


def _is_recorded(connection: Connection, root: Path) -> bool:
    table = DEFINITION_TREES
    known = select(table.c.fingerprint, table.c.workflows).where(table.c.root == printable(str(root)))
    row = connection.execute(known).one_or_none()
    if row is None or not root.is_dir():
        return False
    from falcon_assets.catalog.definition_texts import (  # noqa: PLC0415 - it parses; who reads a list need not
        tree_fingerprint,
    )

    return tree_fingerprint(root, row.workflows) == str(row.fingerprint)


def _new_rows(
    connection: Connection, root: Path, texts: DefinitionTexts, recorder: Recorder
) -> Iterator[dict[str, Any]]:
    latest = _latest(connection)

    def row(key: Key, text: str | None, hashes: tuple[str | None, str | None]) -> dict[str, Any]:
        number = latest[key].version + 1 if key in latest else 1
        numbered = {"kind": key[0], "name": key[1], "version": number, "text": text}
        return {**numbered, "text_hash": hashes[0], "workflow_hash": hashes[1]}

    for key, one in texts.by_key.items():
        anew = recorder.anew and key in recorder.keys
        if anew or key not in latest or _hashes(latest[key]) != _hashes(one):
            yield row(key, one.text, _hashes(one))
    for key in sorted((_gone(connection, root) | recorder.keys) - texts.by_key.keys()):
        if key in latest and latest[key].text_hash is not None:
            yield row(key, None, (None, None))


def _latest(connection: Connection) -> dict[Key, Any]:
    table = DEFINITION_VERSIONS.c
    newest = select(table.kind, table.name, func.max(table.version)).group_by(table.kind, table.name)
    columns = (table.kind, table.name, table.version, table.text_hash, table.workflow_hash)
    found = select(*columns).where(tuple_(table.kind, table.name, table.version).in_(newest))
    return {(row.kind, row.name): row for row in connection.execute(found)}


def _gone(connection: Connection, root: Path) -> set[Key]:
    """Entities that were in this tree, and are in no other of this database."""
    before: set[Key] = set()
    elsewhere: set[Key] = set()
    for row in connection.execute(select(DEFINITION_TREES.c.root, DEFINITION_TREES.c.entities)):
        (before if row.root == printable(str(root)) else elsewhere).update((kind, name) for kind, name in row.entities)
    return before - elsewhere


@dataclass(frozen=True)
class EntityVersions:
    """Versions since the entity was last submitted, oldest first, none a deletion; ``scheduled_since`` None: never."""

    versions: tuple[VersionSince, ...] = ()
    scheduled_since: datetime | None = None

    @property
    def present(self) -> int | None:
        return self.versions[-1].number if self.versions else None

    def of(self, nominal: datetime) -> int | None:
        """Returns the version at the nominal time or the first schedule, if later; without one, the present version."""
        if self.scheduled_since is None or not self.versions:
            return self.present
        at = max(nominal, self.scheduled_since)
        return next((one.number for one in reversed(self.versions) if one.since <= at), self.versions[0].number)

    def at(self, moment: datetime) -> int | None:
        return next((one.number for one in reversed(self.versions) if one.since <= moment), None)


def versions_of(connection: Connection, entities: Collection[Key]) -> Mapping[Key, EntityVersions]:
    """By kind and name; entities without recorded versions are left out."""
    table, status = DEFINITION_VERSIONS.c, ENTITY_STATUS.c
    joined = DEFINITION_VERSIONS.outerjoin(ENTITY_STATUS, and_(table.kind == status.kind, table.name == status.name))
    deleted = table.text_hash.is_(None).label("deleted")
    columns = (table.kind, table.name, table.version, table.since, deleted, status.scheduled_since)
    found: dict[Key, EntityVersions] = {}
    for some in parts(entities):
        wanted = select(*columns).select_from(joined).where(tuple_(table.kind, table.name).in_(some))
        for row in connection.execute(wanted.order_by(table.version)):
            key = (row.kind, row.name)
            before = () if row.deleted or key not in found else found[key].versions
            own = () if row.deleted else (VersionSince(row.version, row.since),)
            found[key] = EntityVersions((*before, *own), row.scheduled_since)
    return found


def versions_for(connection: Connection, workloads: Iterable[Workload]) -> Mapping[Key, EntityVersions]:
    """By kind and name; one statement."""
    return versions_of(connection, sorted({(one.entity.kind, one.entity.name) for one in workloads}))


def definition_of(
    workload: Workload,
    nominal: datetime,
    record: InstanceRecord | None,
    versions: Mapping[Key, EntityVersions],
    *,
    waits: bool = False,
    use_latest: bool = False,
) -> int | None:
    """The version that an instance ran with last, or will run with where it waits; None: not recorded.

    ``waits``: for a rerun, regardless of the record; ``use_latest``: that rerun takes the latest version.
    """
    if record is not None and not waits and record.state not in _WAITS:
        return record.definition
    known = versions.get((workload.entity.kind, workload.entity.name), EntityVersions())
    return known.present if use_latest or isinstance(workload.entity, Feed) else known.of(nominal)
