"""The place that one source's part of one instance is copied to, with the notes of the copy in staging.

For all kinds of storage::

    STAGING/copies/KEY/SOURCE/published.jsonl         records of the published instance
    STAGING/copies/KEY/SOURCE/ATTEMPT/plan/N.json     what task N is to do
    STAGING/copies/KEY/SOURCE/ATTEMPT/records/*       what tasks verified
    STAGING/copies/KEY/SOURCE/ATTEMPT/finished.json   the part is complete; files copied, files to delete
    STAGING/copies/unfinished/KEY.SOURCE              the path of the instance: there may be an attempt
"""

from __future__ import annotations

import json
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import ClassVar

from falcon_assets.errors import BeingWrittenError, StorageError, UnreachableError
from falcon_assets.storage.cluster_store import ClusterStore
from falcon_assets.storage.copying.copy_plan import CopyRecord, FileStep, ListedFile
from falcon_assets.storage.copying.copy_records import RecordLog, from_lines, read_records, to_lines, true_records
from falcon_assets.storage.copying.file_copy import FileCopy
from falcon_assets.storage.copying.listed_files import list_files
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.files.file_access import is_side_file
from falcon_assets.storage.instances.data_files import is_hidden
from falcon_assets.storage.instances.data_version import DataVersion, fingerprint
from falcon_assets.storage.instances.publication import InstancePublication
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.staging import copies_folder, place_key, unfinished_note

COPY = "copy"
"""The output of a publication that a copy writes into."""
_LOCK_SECONDS = 3.0


@dataclass(frozen=True)
class CopyRules:
    verb: str
    """For messages, after "cannot"."""
    left_out: Callable[[str], bool]
    replaces: bool
    """Whether data at the target may be replaced and removed; if not, it has to be the same."""


REPLICATING = CopyRules("copy", is_hidden, replaces=True)
ARCHIVING = CopyRules("archive", is_side_file, replaces=False)


@dataclass(frozen=True)
class CopiedPart:
    target: CopyTarget
    delete: frozenset[str]
    copied: Mapping[str, CopyRecord]
    known: Mapping[str, CopyRecord]


class CopyTarget(ABC):
    """One source's part of one instance; all methods raise OSError from the store."""

    in_place: ClassVar[bool]
    """Whether files are written to the instance itself, without its flag meanwhile; else they are staged."""
    file_copy: ClassVar[type[FileCopy]]
    record_log: ClassVar[type[RecordLog]]

    def __init__(self, store: ClusterStore, output: OutputTarget, source: str, rules: CopyRules = REPLICATING) -> None:
        self.store, self.fs, self.output, self.source, self.rules = store, store.fs, output, source, rules
        self.place = store.path(output.path)
        self.folder = f"{copies_folder(store, output.path)}/{source}"
        self.attempt = self.last_attempt()
        self._unfinished = unfinished_note(store, output.path, source)
        # What an archive puts beside other files of its place is noted there; older versions copied there.
        self._note = f"{store.staging}/archived/{place_key(output.path)}"

    @abstractmethod
    def last_attempt(self) -> str: ...

    @abstractmethod
    def held(self, where: str, seconds: float) -> AbstractContextManager[bool]:
        """Keeps other copies of this part away; gives False if one runs for ``seconds``. StorageError: staged links."""

    @abstractmethod
    def recover(self, where: str) -> None:
        """Repairs a publication that crashed; raises StorageError if the instance is being published."""

    @abstractmethod
    def take_over(self) -> None:
        """Keeps the tasks of a killed run from writing among the files that the next attempt verifies."""

    @abstractmethod
    def write(self, path: str, content: bytes) -> None: ...

    @abstractmethod
    def publish(
        self, key: str, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile], flag: bytes
    ) -> DataVersion | None:
        """Makes ``parts`` the instance, with the files that stay; returns its version if it is known.

        After a StorageError an existing instance is unchanged, or without its flag until this succeeds.
        """

    def fresh(self) -> CopyTarget:
        return type(self)(self.store, self.output, self.source, self.rules)

    def begin(self) -> None:
        if self.rules.replaces:
            self.write(self._unfinished, os.fsencode(self.output.path))
        self.take_over()
        if self.fs.exists(self._finished):
            self.fs.rm_file(self._finished)

    @property
    def written(self) -> str:
        return self.place if self.in_place else f"{self.attempt}/data"

    def staged_files(self) -> dict[str, ListedFile]:
        below = self.written[len(self.store.path("")) :]
        return {} if self.in_place else list_files(self.store, below, None, self.rules.left_out)

    def staged_records(self) -> list[CopyRecord]:
        return read_records(self.fs, f"{self.attempt}/records")

    def keep_records(self, records: Iterable[CopyRecord]) -> None:
        """Merges the records that are still true into one log, so that many attempts leave no more than one."""
        folder = f"{self.attempt}/records"
        try:
            logs = [str(log) for log in self.fs.ls(folder, detail=False)]
        except FileNotFoundError:
            logs = []
        if len(logs) > 1:
            self.fs.pipe_file(f"{folder}/{uuid.uuid4().hex}.jsonl", to_lines(records))
            self.store.files.remove(logs)

    def published_files(self) -> dict[str, ListedFile]:
        return list_files(self.store, self.output.path, self.output.flag, self.rules.left_out)

    def published_records(self) -> list[CopyRecord]:
        try:
            return from_lines(self.fs.cat_file(self._published))
        except FileNotFoundError:
            return []

    def hide(self) -> None:
        if self.in_place and self.output.flag:
            self.drop(f"{self.place}/{self.output.flag}")

    def is_whole(self) -> bool:
        if self.in_place:
            return self.output.flag is not None and self.is_published
        return bool(self.fs.lexists(self.place))

    def made(self) -> frozenset[str]:
        """Names of files that an unfinished copy to an archive has made in place, or was about to."""
        if self.rules.replaces or not self.in_place:
            return frozenset()
        self.store.files.refresh()
        try:
            made = frozenset[str](json.loads(self.fs.cat_file(self._note)))
        except (FileNotFoundError, ValueError):
            return frozenset()  # where a crash cut the note off, nothing was copied yet
        has_ended = self.output.flag in made and self.is_published
        return frozenset() if has_ended else made

    def note_made(self, names: Collection[str]) -> None:
        if names and self.in_place:
            flag = [self.output.flag] if self.output.flag else []
            self.write(self._note, json.dumps(sorted({*names, *flag})).encode())

    def has_come(self) -> bool:
        return self.finished() is not None or (self.in_place and self._is_part_published)

    @property
    def is_published(self) -> bool:
        flag = self.output.flag
        return bool(self.fs.exists(f"{self.place}/{flag}" if flag else self.place))

    @property
    def _is_part_published(self) -> bool:
        return bool(self.fs.exists(self._published)) and not self.fs.exists(self.attempt)

    def version(self) -> DataVersion:
        return fingerprint(self.store, self.output.path, self.output.flag)

    def write_plan(self, number: int, steps: Iterable[FileStep]) -> None:
        text = json.dumps([(step.step.value, *step[1:]) for step in steps])
        self.write(f"{self.attempt}/plan/{number}.json", text.encode())

    def finish(self, copied: Sequence[str], delete: Sequence[str]) -> None:
        self.write(self._finished, json.dumps([list(copied), list(delete)]).encode())

    def finished(self) -> tuple[list[str], list[str]] | None:
        """None if the part is not complete."""
        try:
            copied, delete = json.loads(self.fs.cat_file(self._finished))
        except (FileNotFoundError, ValueError):  # or a crash cut it off
            return None
        return copied, delete

    def end(self, records: Iterable[CopyRecord]) -> None:
        if self.rules.replaces:
            self.write(self._published, to_lines(records))
            self.drop(self.attempt)
            self.drop(self._unfinished)
        else:
            self.drop(self._note)
            self.drop(self.folder)

    def discard(self, take_away: Callable[[str], None] | None = None) -> None:
        """Removes what is staged, or made in place for an archive; no copy may be running. The note is deleted last."""
        (take_away or self.drop)(self.folder)
        if made := self.made():
            for name in made:
                self.drop(f"{self.place}/{name}" if name else self.place)
            self.store.files.refresh()
            if not self.fs.find(self.place):
                self.drop(self.place)  # the folders, where the store has such
        self.drop(self._unfinished if self.rules.replaces else self._note)

    def drop(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.store.files.remove_tree(path)

    @property
    def _published(self) -> str:
        return f"{self.folder}/published.jsonl"

    @property
    def _finished(self) -> str:
        return f"{self.attempt}/finished.json"


class StagedCopyTarget(CopyTarget):
    """Stages a copy, which writes it into a publication as workflows write theirs."""

    in_place = False

    @abstractmethod
    def publication(
        self, key: str, records: Mapping[str, CopyRecord | None]
    ) -> AbstractContextManager[InstancePublication]:
        """Publishes what was assembled, with these records, as output ``COPY``."""

    @abstractmethod
    def assemble(
        self, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile]
    ) -> Mapping[str, CopyRecord | None]:
        """Puts the new instance together where this part is written; returns the records (None: never verified)."""

    def publish(
        self, key: str, parts: Sequence[CopiedPart], published: Mapping[str, ListedFile], flag: bytes
    ) -> DataVersion | None:
        records = self.assemble(parts, published)
        if flag and self.output.flag:
            self.write(f"{self.written}/{self.output.flag}", flag)
        with self.publication(key, records) as publication:
            staging = publication.staging(COPY)
            if staging == self.written:
                return publication.commit(COPY)
            self.move(self.written, staging)
            try:
                return publication.commit(COPY)
            except UnreachableError:
                raise  # it may be published
            except StorageError:
                if self.fs.lexists(staging):  # what was copied is not to be copied again
                    self.move(staging, self.written)
                raise

    def move(self, path: str, place: str) -> None:
        self.store.files.move(path, place)


@contextmanager
def part_lock(target: CopyTarget, where: str) -> Iterator[None]:
    with target.held(where, _LOCK_SECONDS) as is_ours:
        if not is_ours:
            raise BeingWrittenError(
                f"{where}: another run is copying it: wait until it has ended, or end it, and run this again"
            )
        yield


def publish_if_complete(key: str, targets: Sequence[CopyTarget]) -> DataVersion | None:
    """Publishes copies since the last publication, or returns the present version; None: a part is missing.

    After a crash the first of ``targets``, all sources, is copied again.
    """
    any_of = targets[0]
    any_of.recover(key)
    ready = [target for target in targets if target.finished() is not None]
    if not any_of.is_published and not all(target.has_come() for target in targets):
        return None
    if ready:
        try:
            return publish_copies(key, ready)
        except StorageError:
            # Two sources that finish in one moment both find the instance complete: one of them is first.
            if any(target.fresh().finished() is not None for target in ready) or not any_of.is_published:
                raise
    return any_of.version()


def publish_copies(key: str, targets: Sequence[CopyTarget]) -> DataVersion:
    """Publishes finished parts of an instance; the files of other sources stay unchanged.

    On StorageError a published instance is unchanged (on object stores: not available until this succeeds).
    """
    first = targets[0]
    with driver_explained(first.store.cluster.name, f"publish {first.output.path}"):
        return publish_parts(key, targets) or first.version()


def publish_parts(key: str, targets: Sequence[CopyTarget], flag: bytes = b"") -> DataVersion | None:
    """As :func:`publish_copies`, with a flag of that content; None if the version is not known without reading."""
    first = targets[0]
    with ExitStack() as held, driver_explained(first.store.cluster.name, f"publish {first.output.path}"):
        for target in sorted(targets, key=lambda target: target.source):  # two at once must not block each other
            held.enter_context(part_lock(target, f"{key}: source {target.source!r}"))
        published = first.published_files()
        parts = [_finished(target, key, published) for target in targets]
        version = first.publish(key, parts, published, flag)
        for part in parts:
            now = {**part.known, **part.copied}
            part.target.end(record for name, record in now.items() if name not in part.delete)
    return version


def _finished(target: CopyTarget, key: str, published: Mapping[str, ListedFile]) -> CopiedPart:
    finished = target.finished()
    if finished is None:
        raise StorageError(f"{key}: the part of source {target.source!r} is not copied yet")
    copied, delete = finished
    staged = target.staged_records()
    records = true_records(staged, {**published, **target.staged_files()})
    if changed := [name for name in copied if name not in records]:
        raise StorageError(f"{key}: {changed[0]} changed since it was copied from {target.source!r}: copy it again")
    known = true_records([*target.published_records(), *staged], published)
    return CopiedPart(target, frozenset(delete), {name: records[name] for name in copied}, known)
