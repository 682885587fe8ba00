"""The file of a backup: a ZIP archive whose last member says what the others are, with a checksum of each.

It is written beside its place, and takes it as a whole. What is in it is believed only after all of it was read once.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from falcon_assets.base.durable import sync
from falcon_assets.base.file_locks import locked
from falcon_assets.errors import FalconError, SettingsError

_CONTENTS = "contents.json"
_NEW = ".falcon-backup.new"
_LARGEST_CONTENTS = 1 << 30
PART_BYTES = 1 << 20
_PRIVATE = 0o600
_DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, LookupError, NotImplementedError),
    *(RuntimeError, ValueError),
)
"""What reading a ZIP archive with any bit changed raises."""


class BackupError(FalconError):
    """A file is no backup, or is damaged, or cannot be restored here."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _inside(path: str) -> str:
    """A path that stays within any folder that it is appended to."""
    parts = PurePosixPath(path).parts
    if not path or path.startswith("/") or ".." in parts or "\0" in path:
        raise ValueError(f"{path!r} leads out of its folder")
    return path


class KeptTable(_Record):
    """A table; ``creation`` makes it, without what needs its rows; ``sequences``: its column -> value, is used."""

    name: str
    member: str
    creation: str
    columns: tuple[str, ...]
    sequences: dict[str, tuple[int, bool]]


class KeptFile(_Record):
    """A file of a tree, below the folder of that tree; ``mode`` is its permissions."""

    tree: str
    path: Annotated[str, AfterValidator(_inside)]
    member: str
    mode: int


class Member(_Record):
    size: int
    sha256: str


class Contents(_Record):
    """What a backup has.

    Attributes:
        made: When its snapshot was taken, in real time.
        revision: Of the ledger; None: there was none.
        dagster_revision: Of Dagster's tables.
        clock: The tag of the clock of the database.
        finishing: Statements for constraints and indexes, after the rows.
    """

    format: Literal[1] = 1
    made: datetime
    falcon_assets: str
    dagster: str
    revision: str | None
    dagster_revision: str | None
    clock: str
    tables: tuple[KeptTable, ...]
    finishing: tuple[str, ...]
    files: tuple[KeptFile, ...] = ()
    members: dict[str, Member] = {}


@dataclass
class BackupWriter:
    """Members are written one after the other."""

    _archive: zipfile.ZipFile
    members: dict[str, Member] = field(default_factory=dict)

    @contextmanager
    def member(self, name: str) -> Iterator[_Measured]:
        with self._archive.open(name, "w", force_zip64=True) as file:
            measured = _Measured(file)
            yield measured
        self.members[name] = Member(size=measured.size, sha256=measured.digest.hexdigest())

    def finish(self, contents: Contents) -> None:
        """Nothing can be added afterwards."""
        text = contents.model_dump_json().encode()
        self._archive.writestr(_CONTENTS, text)
        self._archive.comment = hashlib.sha256(text).hexdigest().encode()


@dataclass
class _Measured:
    """A file that is written, with the checksum of what was."""

    _file: IO[bytes]
    size: int = 0
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def write(self, data: bytes) -> int:
        self.size += len(data)
        self.digest.update(data)
        return self._file.write(data)


@contextmanager
def new_backup(path: Path) -> Iterator[BackupWriter]:
    """Yields a writer for a file that only its owner can read; ``path`` is replaced at the end, if all went well.

    Raises:
        SettingsError: it cannot be written; the text says why, such as a full disk.
        LockedError: another process writes a backup into that folder.
    """
    new = path.with_name(_NEW)
    try:
        if path.exists() and not path.is_file():
            raise SettingsError(f"{path} is neither a file nor a folder: name one of them")
        with locked(new, 0, "writes a backup"):
            try:
                descriptor = os.open(
                    new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE
                )
                with os.fdopen(descriptor, "wb") as file:
                    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                        yield BackupWriter(archive)
                    file.flush()
                    os.fsync(descriptor)
                new.replace(path)
                sync(path.absolute().parent)
            except BaseException:
                with suppress(OSError):
                    new.unlink()
                raise
    except OSError as error:
        raise SettingsError(f"the backup {path} cannot be written: {error.strerror or error}") from error


@dataclass(frozen=True)
class BackupReader:
    _archive: zipfile.ZipFile
    contents: Contents

    def open(self, member: str) -> IO[bytes]:
        return self._archive.open(member)

    def trees(self) -> Mapping[str, tuple[KeptFile, ...]]:
        names = dict.fromkeys(one.tree for one in self.contents.files)
        return {name: tuple(one for one in self.contents.files if one.tree == name) for name in names}


@contextmanager
def verified_backup(path: Path) -> Iterator[BackupReader]:
    """Yields the backup, all of which was read and is as it was written.

    Raises BackupError where it is no backup, or damaged.
    """
    try:
        archive = zipfile.ZipFile(path)
    except OSError as error:
        raise BackupError(f"the backup {path} cannot be read: {error.strerror or error}") from error
    except _DAMAGES as error:
        raise BackupError(f"{path} is no backup, or is damaged: {error}") from error
    with archive:
        try:
            reader = BackupReader(archive, _contents(path, archive))
            for name, member in reader.contents.members.items():
                if _measured(archive, name) != member:
                    raise BackupError(f"the backup {path} is damaged: {name} is not what was written")
        except (OSError, *_DAMAGES) as error:
            raise BackupError(f"the backup {path} is damaged: {error}") from error
        try:
            yield reader
        except (zipfile.BadZipFile, zlib.error) as error:
            raise BackupError(f"the backup {path} was changed while it was read: {error}") from error


def _contents(path: Path, archive: zipfile.ZipFile) -> Contents:
    if _CONTENTS not in archive.namelist():
        raise BackupError(f"{path} is no backup: it was not made by falcon admin backup")
    with archive.open(_CONTENTS) as file:
        text = file.read(_LARGEST_CONTENTS)
    if hashlib.sha256(text).hexdigest().encode() != archive.comment:
        raise BackupError(f"the backup {path} is damaged: its list of contents is not what was written")
    try:
        contents = Contents.model_validate_json(text)
    except ValidationError as error:
        raise BackupError(f"the backup {path} is of a version of falcon-assets that this one does not know") from error
    named = [*(one.member for one in contents.tables), *(one.member for one in contents.files)]
    if missing := [one for one in named if one not in contents.members]:
        raise BackupError(f"the backup {path} is damaged: {missing[0]} is not in it")
    return contents


def _measured(archive: zipfile.ZipFile, name: str) -> Member:
    digest, size = hashlib.sha256(), 0
    with archive.open(name) as file:
        while part := file.read(PART_BYTES):
            digest.update(part)
            size += len(part)
    return Member(size=size, sha256=digest.hexdigest())
