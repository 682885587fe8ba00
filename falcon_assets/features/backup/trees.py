"""Files of a backup: the trees of folders that an installation has on this machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from falcon_assets.base.deferred_signals import deferred_signals
from falcon_assets.base.durable import make_folders, sync
from falcon_assets.catalog.yaml_files.journal import locked_tree
from falcon_assets.errors import SettingsError
from falcon_assets.features.backup.backup_file import PART_BYTES, BackupError, BackupReader, BackupWriter, KeptFile
from falcon_assets.history.platform.open_instance import local_folders
from falcon_assets.settings import Settings

DEFINITIONS, PACKS = "definitions", "packs"
_STAGING = ".falcon-restoring"
_COMPILED = "__pycache__"
_MODES = 0o777


def trees_of(settings: Settings) -> dict[str, Path]:
    """Returns the folders of an installation whose files a backup has; the first two are what people declare.

    Data of clusters is in none of them, and neither is what is made anew when it is missing.
    """
    return {DEFINITIONS: settings.entity_defs, PACKS: settings.packs, **local_folders(settings)}


def between_changes(settings: Settings) -> AbstractContextManager[None]:
    """Excludes changes of the definitions by commands; where they cannot be written, commands change nothing."""
    root = settings.entity_defs
    is_changed_here = root.is_dir() and os.access(root, os.W_OK) and not settings.read_only
    return locked_tree(root) if is_changed_here else nullcontext()


@dataclass
class TreeCopy:
    """Copies trees into a backup.

    Attributes:
        left_out: Sentences about what was not copied.
    """

    writer: BackupWriter
    files: list[KeptFile] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, name: str, root: Path) -> None:
        """Raises SettingsError where something cannot be read; what runs left may vanish meanwhile."""
        for path in _files_below(root):
            if (why := _unfit(path, root)) is not None:
                self.left_out.append(f"{path}: {why}")
                continue
            try:
                file = path.open("rb")
            except FileNotFoundError:
                if name in (DEFINITIONS, PACKS):
                    self.left_out.append(f"{path}: it is a link to nothing")
                continue
            except OSError as error:
                raise _unreadable(error) from error
            with file:
                self._add(name, path.relative_to(root).as_posix(), file)

    def _add(self, tree: str, path: str, file: IO[bytes]) -> None:
        member = f"{tree}/{len(self.files)}"
        with self.writer.member(member) as written:
            while part := file.read(PART_BYTES):
                written.write(part)
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & _MODES
        self.files.append(KeptFile(tree=tree, path=path, member=member, mode=mode))


def _files_below(root: Path) -> Iterator[Path]:
    """Yields all files except hidden and compiled ones."""

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise _unreadable(error) from error

    for folder, folders, names in os.walk(root, onerror=refuse):
        folders[:] = sorted(one for one in folders if not one.startswith(".") and one != _COMPILED)
        yield from (Path(folder, name) for name in sorted(names) if not name.startswith("."))


def _unreadable(error: OSError) -> SettingsError:
    return SettingsError(f"{error.filename} cannot be read: {error.strerror}")


def _unfit(path: Path, root: Path) -> str | None:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
        return "it is a link that leads out of the folder"
    if path.exists() and not path.is_file():
        return "it is not a plain file"
    return None


@dataclass
class Placing:
    """Puts the files of a backup into their folders: first beside their places, then all at once.

    Attributes:
        left: Sentences about trees that have no place here.
    """

    reader: BackupReader
    targets: Mapping[str, Path]
    left: list[str] = field(default_factory=list)
    _placed: list[Path] = field(default_factory=list)

    def require_free(self) -> None:
        """Raises BackupError where a folder has a file that is not that of the backup."""
        for name, files in self._trees():
            root = self.targets[name]
            ours = {one.path: one for one in files}
            for path in _files_below(root):
                kept = ours.get(path.relative_to(root).as_posix())
                if kept is None or not self._is_same(path, kept):
                    raise BackupError(
                        f"the folder {root} has other files than the backup, such as {path.relative_to(root)}: "
                        f"{_ELSEWHERE.get(name, 'restore into an empty one')}"
                    )

    def stage(self) -> None:
        """Raises OSError."""
        for name, files in self._trees():
            staging = self.targets[name] / _STAGING
            shutil.rmtree(staging, ignore_errors=True)
            make_folders(staging)
            for number, one in enumerate(files):
                with self.reader.open(one.member) as source, (staging / str(number)).open("xb") as target:
                    shutil.copyfileobj(source, target, PART_BYTES)
                    os.fchmod(target.fileno(), one.mode)
                    target.flush()
                    os.fsync(target.fileno())

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Has all files in their places; they are removed if the body fails. Raises OSError."""
        with deferred_signals():
            try:
                self._place()
                yield
            except BaseException:
                for path in self._placed:
                    with suppress(OSError):
                        path.unlink()
                raise

    def _place(self) -> None:
        for name, files in self._trees():
            root = self.targets[name]
            for number, one in enumerate(files):
                path = root / one.path
                make_folders(path.parent)
                if not path.exists():
                    self._placed.append(path)
                (root / _STAGING / str(number)).replace(path)
            for folder in {(root / one.path).parent for one in files}:
                sync(folder)

    def clean(self) -> None:
        for name, _ in self._trees():
            shutil.rmtree(self.targets[name] / _STAGING, ignore_errors=True)

    def _trees(self) -> Iterable[tuple[str, tuple[KeptFile, ...]]]:
        return [(name, files) for name, files in self.reader.trees().items() if name in self.targets]

    def _is_same(self, path: Path, kept: KeptFile) -> bool:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.reader.contents.members[kept.member].sha256


_ELSEWHERE = {
    DEFINITIONS: "restore into an empty one, with another FALCON_ENTITY_DEFS",
    PACKS: "restore into an empty one, with another FALCON_PACKS",
}
