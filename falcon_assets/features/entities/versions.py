"""Recorded versions of definitions: history, diff, and restoring, with the files of workflows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from falcon_assets.catalog.hidden_values import shown_hidden, with_present_values
from falcon_assets.catalog.stored_entity import StoredEntity
from falcon_assets.catalog.stored_tree import Stored, masked, read_tree
from falcon_assets.catalog.workflow_files import files_at, parts_of
from falcon_assets.catalog.yaml_files.definition_files import shown_path
from falcon_assets.catalog.yaml_files.documents import Files, read_file
from falcon_assets.catalog.yaml_files.file_changes import WorkflowChange, content_diff
from falcon_assets.entities.definition_versions import DefinitionVersion, definition_history, recorded_kinds
from falcon_assets.entities.workflow_contents import content_parts, kept_files
from falcon_assets.errors import (
    DefinitionStoreError,
    OldDefinitionError,
    Position,
    Problem,
    UnknownEntityError,
    printable,
)
from falcon_assets.features.entities.changes import Plan, plan_submit, plan_update
from falcon_assets.features.entities.changing import change
from falcon_assets.features.entities.results import OperationResult, Request
from falcon_assets.operations.acting import acting, require_read
from falcon_assets.operations.audit import require_readable
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result
from falcon_assets.operations.paging import Page


def old_workflows(
    engine: Engine, root: Path, process: str, version: int
) -> tuple[list[WorkflowChange], list[Problem], list[str]]:
    """Returns changes that restore a version's files, warnings for files that were not kept, and the kept paths."""
    with engine.connect() as connection:
        files = kept_files(connection, process, version)
    unkept = [
        Problem(
            Position(shown_path(root / one.path), 1),
            "",
            f"it was not kept with version {version} ({one.problem}): it is left unchanged",
            is_warning=True,
        )
        for one in files
        if one.hash is None
    ]
    kept = {one.path: one.hash for one in files if one.hash}
    copies = [_copy(engine, root, path, content) for path, content in kept.items()]
    return [one for one in copies if one.before_hash != one.after_hash], unkept, list(kept)


def _copy(engine: Engine, root: Path, path: str, content: str) -> WorkflowChange:
    target = root / path
    if not target.resolve().is_relative_to(root.resolve()) or (target.exists() and not target.is_file()):
        raise DefinitionStoreError(
            f"{shown_path(target)} is not a file of the tree: move it away, as the workflow was there"
        )
    (now,) = files_at(root, path)
    if now.hash is None and target.exists():
        raise DefinitionStoreError(f"{shown_path(target)} cannot be read: {now.problem}")
    before = partial(parts_of, target) if now.hash else None
    return WorkflowChange(target, now.hash, content, before, partial(_parts, engine, content))


def _parts(engine: Engine, content: str) -> Iterator[bytes]:
    with engine.connect() as connection:
        yield from content_parts(connection, content)


@dataclass(frozen=True)
class History:
    """The recorded definitions of an entity, the oldest first; ``present`` is None where it is deleted."""

    kind: str
    name: str
    versions: Sequence[DefinitionVersion]
    present: str | None

    @property
    def is_recorded(self) -> bool:
        return bool(self.versions) and self.versions[-1].text == self.present

    def as_data(self) -> dict[str, Any]:
        return {**Page(self.versions, len(self.versions), None).as_data(), "recorded": self.is_recorded}


@dataclass(frozen=True)
class VersionDiff(Result):
    """A unified diff from a version to the present definition and workflows; empty where they are equal."""

    kind: str
    name: str
    version: int
    diff: str


def entity_history(installation: Installation, name: str, kind: str | None = None) -> History:
    """Returns the recorded versions of an entity, also of a deleted one.

    Raises:
        UnknownEntityError: nothing of that name was recorded, or there are several and ``kind`` is not given.
        SettingsError: the database cannot be reached.
        DeniedError: the user may not read it.
    """
    history = _history(installation, name, kind)
    require_readable(installation, "history", _entity(installation, history))
    return history


def _history(installation: Installation, name: str, kind: str | None) -> History:
    name = printable(name)  # PostgreSQL takes no byte that is not UTF-8, and no entity has another name
    with installation.database.connect() as connection:
        kinds = [kind] if kind else recorded_kinds(connection, name)
        if sorted(kinds) == ["feed", "flow"]:
            kinds = ["flow"]  # what it is made of is meant with it
        if len(kinds) > 1:
            found = " and ".join(f"a {one}" for one in kinds)
            raise UnknownEntityError(f"there is {found} {name!r}: say which one with --kind")
        versions = definition_history(connection, kinds[0], name) if kinds else []
    if not versions:
        what = f"{kind or 'an entity'} {name!r}"
        raise UnknownEntityError(f"no definition of {what} is recorded: a load of the code location does that")
    stored = read_tree(installation.settings.entity_defs)
    document = stored.document((kinds[0], name))
    present = masked(stored.text(document).strip("\n") + "\n") if document else None
    return History(kinds[0], name, versions, present)


def entity_diff(
    installation: Installation, name: str, version: int | None = None, kind: str | None = None
) -> VersionDiff:
    """Compares the present definition with a version; raises as :func:`entity_history`.

    Without ``version``: the last one with another text or workflow than the present one, else the latest.
    """
    history = entity_history(installation, name, kind)
    workflow = history.versions[-1].workflow_hash
    others = [one for one in history.versions if (one.text, one.workflow_hash) != (history.present, workflow)]
    old = _version(history, (others or history.versions)[-1].version if version is None else version)
    then, now = f"{name} version {old.version}", f"{name} now"
    lines = unified_diff(_lines(old.text), _lines(history.present), then, now, lineterm="")
    text = "".join(f"{line}\n" for line in lines)
    for one in _workflows(installation, history, old.version)[0]:
        path = one.path.relative_to(installation.settings.entity_defs)
        text += content_diff(one.parts, one.before, (f"{then}: {path}", f"{path} now" if one.before else "/dev/null"))
    return VersionDiff(history.kind, name, old.version, text)


def restore_entity(installation: Installation, version: int, request: Request) -> OperationResult:
    """Restores the definition of a version, and its files of workflows; a deleted entity is submitted again.

    Raises:
        UnknownEntityError: that version is not recorded, or the entity was deleted in it.
        InvalidDefinitionsError: the tree would have problems.
        DefinitionStoreError: the version held secrets that the present definition has not, or the tree cannot be
            changed.
        SettingsError: the database cannot be reached.
        DeniedError: the user may not change it.
    """

    def plan(stored: Stored, _: Request) -> Plan:
        history = _history(installation, request.given[0], request.kind)
        require_read(acting(installation.settings, request.actor), _entity(installation, history))
        now = stored.by_key.get((history.kind, history.name))
        given = Stored(stored.root, _definition(history, version, now.data if now else None))
        files, unkept, kept = _workflows(installation, history, version)
        plan_of = plan_update if (history.kind, history.name) in stored.by_key else plan_submit
        planned = plan_of(stored, given, {*kept, *(str(Path(one).parent) for one in kept)})
        (entity,) = planned.entities
        if files and entity.action == "unchanged":
            entity = replace(entity, action="updated")
        changed = (*planned.files, *files)
        return replace(planned, entities=(entity,), files=changed, warnings=(*planned.warnings, *unkept))

    return change(installation, "restore", request, plan)


def _workflows(
    installation: Installation, history: History, version: int
) -> tuple[list[WorkflowChange], list[Problem], list[str]]:
    if history.kind != "process":
        return [], [], []
    return old_workflows(installation.database, installation.settings.entity_defs, history.name, version)


def _definition(history: History, version: int, present: Any) -> Files:
    text = _version(history, version).text
    if text is None:
        raise UnknownEntityError(f"in version {version} {history.kind} {history.name!r} was deleted: use another one")
    try:
        text = with_present_values(text, present, history.kind)
    except OldDefinitionError as error:
        what = f"version {version} of {history.kind} {history.name!r}"
        raise DefinitionStoreError(
            f"{what}: {error}, as {{env: NAME}} where that is legal, or update from a file"
        ) from error
    given = Files()
    read_file(Path(f"{history.name} version {version}"), text.encode(), given)
    return given


def _entity(installation: Installation, history: History) -> list[StoredEntity]:
    stored = read_tree(installation.settings.entity_defs)
    if document := stored.document((history.kind, history.name)):
        return [StoredEntity(document)]
    texts, files = [one.text for one in history.versions if one.text is not None], Files()
    text = shown_hidden(texts[-1]) if texts else ""
    read_file(Path(history.name), text.encode(), files)
    return [StoredEntity(one) for one in files.documents]


def _version(history: History, number: int) -> DefinitionVersion:
    for one in history.versions:
        if one.version == number:
            return one
    raise UnknownEntityError(
        f"{history.kind} {history.name!r} has no version {number}: there are 1 to {history.versions[-1].version}"
    )


def _lines(text: str | None) -> list[str]:
    return (text or "").removesuffix("\n").split("\n") if text else []
