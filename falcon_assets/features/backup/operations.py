"""Operations that back up and restore an installation."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

from falcon_assets.features.backup.backup_file import (
    BackupError,
    BackupReader,
    Contents,
    new_backup,
    verified_backup,
)
from falcon_assets.features.backup.database import require_empty, restore_database, snapshot_of
from falcon_assets.features.backup.trees import DEFINITIONS, PACKS, Placing, TreeCopy, between_changes, trees_of
from falcon_assets.history.dagster_internals.instance_config import dagster_revisions
from falcon_assets.history.database import newest_revision, revisions, wrong_revision
from falcon_assets.model.access import Role
from falcon_assets.operations.audit import PlainRequest, audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation, Result
from falcon_assets.planning.clock import Clock
from falcon_assets.settings import Settings, database_name
from falcon_assets.shared_clock import adopt_clock


@dataclass(frozen=True)
class MadeBackup(Result):
    """A backup.

    Attributes:
        made: When its snapshot of the database was taken, in real time.
        revision: Of the ledger.
        files: Tree of files -> their number.
        left_out: Sentences about files that are not in it.
    """

    file: str
    size: int
    made: datetime
    revision: str | None
    tables: int
    files: dict[str, int]
    left_out: tuple[str, ...]
    seconds: float


class BackUpInstallation(Operation):
    """Write a backup of the installation to FILE, or into FOLDER under a name with the time.

    It has the database as it was at one moment (the ledger, and Dagster's runs, events, schedules and sensors), the
    definitions, the packs of templates, and the output and values of runs that are files on this machine. It does not
    have the data of clusters, nor the configuration: the environment, dagster.yaml, workspace.yaml, keys and
    certificates. Everything may go on running meanwhile.

    The file can be read by its owner only. What stands in definitions as text is in it as it is, secrets included. An
    existing FILE is replaced when the new one is complete.
    """

    command = "admin backup"
    role = Role.ADMIN
    remote = False
    place: Annotated[Path, Given("FILE|FOLDER")]

    def run(self, installation: Installation) -> MadeBackup:
        """Raises SettingsError, DefinitionStoreError, LockedError."""
        settings, started = installation.settings, time.monotonic()
        file = self.place / f"falcon-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.backup" if self.place.is_dir() else self.place
        with new_backup(file) as writer:
            copy, trees = TreeCopy(writer), trees_of(settings)
            with ExitStack() as opened:
                with between_changes(settings):
                    snapshot = opened.enter_context(snapshot_of(settings))
                    made = datetime.now(UTC)
                    for name in (DEFINITIONS, PACKS):
                        copy.add(name, trees.pop(name))
                contents = Contents(
                    made=made,
                    falcon_assets=version("falcon-assets"),
                    dagster=version("dagster"),
                    revision=snapshot.revision,
                    dagster_revision=snapshot.dagster_revision,
                    clock=snapshot.clock,
                    tables=tuple(snapshot.copy_to(writer)),
                    finishing=tuple(snapshot.finishing()),
                )
            for name, root in trees.items():
                copy.add(name, root)
            writer.finish(contents.model_copy(update={"files": tuple(copy.files), "members": writer.members}))
        return MadeBackup(
            file=str(file),
            size=file.stat().st_size,
            made=made,
            revision=contents.revision,
            tables=len(contents.tables),
            files=dict(Counter(one.tree for one in copy.files)),
            left_out=tuple(copy.left_out),
            seconds=time.monotonic() - started,
        )


@dataclass(frozen=True)
class RestoredBackup(Result):
    """A backup that was restored.

    Attributes:
        made: When its snapshot of the database was taken, in real time.
        found: The revision of its ledger.
        revision: The revision now.
        files: Tree of files -> their number.
        left: Sentences about what was not restored, or is still to be done.
    """

    made: datetime
    found: str | None
    revision: str
    tables: int
    files: dict[str, int]
    left: tuple[str, ...]
    seconds: float


class RestoreInstallation(Operation):
    """Restore an installation from FILE, into an empty database and empty folders.

    All of FILE is read and checked first. Either everything is restored, or nothing: what is there already with another
    content is never changed, and the command says what it is. After it was killed, repeat it. A ledger of an older
    version is migrated afterwards. Restore only files that you trust: the database does what they say.

    Set FALCON_DATABASE_URL (or FALCON_HOME, where the embedded database is) and FALCON_ENTITY_DEFS to the new places.
    With FALCON_ENTITY_DEFS_READONLY the definitions are left as they were deployed. Never start the restored
    installation while the old one runs: both would write to the same stores.
    """

    command = "admin restore"
    role = Role.ADMIN
    remote = False
    file: Annotated[Path, Given("FILE")]

    def run(self, installation: Installation) -> RestoredBackup:
        """Raises BackupError where the file or the place is unfit, SettingsError where the database is."""
        settings, started = installation.settings, time.monotonic()
        with verified_backup(self.file) as reader:
            contents = reader.contents
            left = _require_known(contents)
            targets = trees_of(settings)
            if settings.read_only:
                left.append("the definitions are left as they were deployed (FALCON_ENTITY_DEFS_READONLY)")
                targets = {name: root for name, root in targets.items() if name not in (DEFINITIONS, PACKS)}
            left += [
                f"the files of {name} have no place on this machine"
                for name in reader.trees().keys() - targets.keys() - {DEFINITIONS, PACKS}
            ]
            placing = Placing(reader, targets)
            placing.require_free()
            require_empty(settings)
            _restore(settings, reader, placing)
            if contents.clock:
                adopt_clock(settings.home, Clock.from_tag(contents.clock), database_name(settings.database_url))
            placed = {name: len(files) for name, files in reader.trees().items() if name in targets}
        with audited(installation, self.command, PlainRequest()) as audit:  # which migrates the ledger
            audit.result(True)
        return RestoredBackup(
            made=contents.made,
            found=contents.revision,
            revision=newest_revision(),
            tables=len(contents.tables),
            files=placed,
            left=tuple(left),
            seconds=time.monotonic() - started,
        )


def _restore(settings: Settings, reader: BackupReader, placing: Placing) -> None:
    try:
        settings.home.mkdir(parents=True, exist_ok=True)
        placing.stage()
        restore_database(settings, reader, placing.in_place())
    except OSError as error:
        what = error.filename or "the files of the backup"
        raise BackupError(f"{what} cannot be written: {error.strerror or error}") from error
    finally:
        placing.clean()


def _require_known(contents: Contents) -> list[str]:
    """Returns what is to be done after restoring; raises BackupError where this version is too old, or too new."""
    if contents.revision is not None and contents.revision not in revisions():
        why, fix = wrong_revision(contents.revision)
        raise BackupError(f"{why}: {fix}")
    needed, *older = dagster_revisions()
    if contents.dagster_revision not in (None, needed, *older):
        raise BackupError(
            f"the backup was made with Dagster {contents.dagster}, and the installed Dagster {version('dagster')} does "
            "not know its tables: install that version, or a newer one"
        )
    if contents.dagster_revision in older:
        return ["the tables are of an older Dagster: run dagster instance migrate before you start it"]
    return []
