"""Publishing into tables: a folder per version, and the calls that make it the partitions of the instance."""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from fsspec.spec import AbstractBufferedFile

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.model.table_uri import ANY, TableUri
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.instances.data_version import DataVersion
from falcon_assets.storage.instances.held_data import HeldData
from falcon_assets.storage.kinds.objects.written import LocalWritten, StoreWritten, Written
from falcon_assets.storage.kinds.storage_kind import NOTHING_HELD
from falcon_assets.storage.kinds.tables.kept_versions import KeptPartitions, remove_old
from falcon_assets.storage.kinds.tables.look import TableLook, version_of
from falcon_assets.storage.kinds.tables.table_folder import FileFolder, HdfsFolder, TableFolder, new_layout
from falcon_assets.storage.kinds.tables.version_folders import GRACE_SECONDS, VersionFolders
from falcon_assets.storage.local_staging import LocalStaging
from falcon_assets.storage.output_target import OutputTarget
from falcon_assets.storage.tables.catalog import NewPartition, Partition, TableLayout, Values
from falcon_assets.storage.tables.key_values import same, why_not_written
from falcon_assets.storage.tables.table_store import TableStore

_BLOCK = 1 << 20


class FolderWritten(Written):
    def __init__(self, folder: FileFolder, place: str) -> None:
        self._folder, self._fs, self._place = folder, folder.fs, place

    def place(self, name: str) -> str:
        return self._place

    def url(self, name: str) -> str:
        return self._folder.url(self._place)

    def files(self, name: str) -> list[str]:
        with suppress(FileNotFoundError):  # nothing was written
            self._folder.files.remove_side_files(self._place, None)
        return [one[len(self._place) + 1 :] for one in sorted(self._fs.find(self._place))]

    def bring(self, name: str, files: Iterable[str], final: str, check: Callable[[], None]) -> None:
        pass  # it is there


class MountedWritten(FolderWritten):
    def open(self, name: str, file: str) -> AbstractContextManager[IO[bytes]]:
        return Path(self._place, file).open("rb")

    def replace(self, name: str, file: str, by: Path) -> None:
        place = Path(self._place, file)
        new = place.with_name(f".{place.name}")  # not over it: a partition that is there may share the file
        shutil.copyfile(by, new)
        new.replace(place)


class HdfsWritten(FolderWritten):
    def open(self, name: str, file: str) -> AbstractContextManager[IO[bytes]]:
        path = f"{self._place}/{file}"
        opened: AbstractContextManager[IO[bytes]] = _Read(self._fs, path, size=self._fs.info(path)["size"])
        return opened

    def replace(self, name: str, file: str, by: Path) -> None:
        with by.open("rb") as content:
            self._fs.pipe_file(f"{self._place}/{file}", iter(partial(content.read, _BLOCK), b""))


class _Read(AbstractBufferedFile):  # type: ignore[misc]  # which has no types
    """A file whose parts are requested when they are read: the ends of large ones describe the rest."""

    def _fetch_range(self, start: int, end: int) -> Any:
        return self.fs.cat_file(self.path, start, end)


def written_version(
    held: ExitStack, name: str, folder: TableFolder, place: str, staging: LocalStaging | None
) -> Written:
    if isinstance(folder, FileFolder):
        return (HdfsWritten if isinstance(folder, HdfsFolder) else MountedWritten)(folder, place)
    assert folder.store is not None
    if staging is None:
        return StoreWritten(folder.store, {name: place})
    return LocalWritten(folder.store, held.enter_context(staging.folder()))


@dataclass(frozen=True)
class _Output:
    target: OutputTarget
    uri: TableUri
    layout: TableLayout
    is_new: bool
    before: Mapping[Values, Partition]
    versions: VersionFolders
    values: Values
    place: str
    written: Written

    @property
    def present(self) -> set[str]:
        """The folders of the versions that are the partitions now."""
        places = (self.versions.folder.path(place) for one in self.before.values() for place in one.places)
        return {self.versions.folder_of(place) for place in places if place}


class TablePublication:
    """Publishes instances of one partition, or of one for each combination of values of keys that are ``*``.

    Of two runs that publish a partition, the catalog refuses the one that did not see the other's change. Spark writes
    to ``staging`` if it cannot reach the table's object store; ``there`` is where the only output was written already;
    ``held`` as in :meth:`.StorageKind.publish`.
    """

    def __init__(
        self,
        store: TableStore,
        key: str,
        outputs: Mapping[str, OutputTarget],
        grace: float = GRACE_SECONDS,
        staging: LocalStaging | None = None,
        there: str | None = None,
        is_copy: bool = False,
        held: Mapping[str, HeldData] = NOTHING_HELD,
    ) -> None:
        self._store, self._key, self._targets, self._grace = store, key, outputs, grace
        self._staging, self._there, self._held = staging, there, ExitStack()
        self._is_copy, self._held_data = is_copy, held
        self._outputs: dict[str, _Output] = {}
        self._published: set[str] = set()

    def __enter__(self) -> TablePublication:
        try:
            for name, target in self._targets.items():
                with driver_explained(self._store.cluster.name, f"prepare {target.path}"):
                    self._outputs[name] = output = self._prepared(name, target)
                    table = (output.uri.database, output.uri.table)
                    remove_old(self._store.catalog, *table, output.versions, self._grace)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._held:
            for name, output in self._outputs.items():
                if name not in self._published and name not in self._held_data:
                    with driver_explained(self._store.cluster.name, f"clean up after {output.target.path}"):
                        output.versions.drop(output.place)

    def staging(self, name: str) -> str:
        return self._outputs[name].written.place(name)

    def staging_url(self, name: str) -> str:
        return self._outputs[name].written.url(name)

    def keys(self, name: str) -> Mapping[str, str]:
        return {key.name: key.type for key in self._outputs[name].layout.keys}

    def hold(self, name: str) -> HeldData:
        """Leaves it where it was written, in the table's folder; no catalog knows it."""
        output = self._outputs[name]
        folder = output.versions.folder
        with driver_explained(self._store.cluster.name, f"keep the output for {output.target.path} aside"):
            found = self._files(name)
            output.written.bring(name, found, output.place, lambda: None)
            output.versions.hold(output.values, output.place, output.present)
            self._published.add(name)
            return HeldData(folder.url(output.place), folder.version(output.place))

    def _files(self, name: str) -> list[str]:
        """What was written, or held; raises StorageError where that is nothing, or not what it was any more."""
        output, held = self._outputs[name], self._held_data.get(name)
        if held and output.versions.held(output.values) != output.place:
            raise self._error(output, held.gone)
        found = output.written.files(name)
        if not found:
            raise self._error(output, held.gone if held else f"nothing was written to {self.staging(name)}")
        if held and output.versions.folder.version(output.place) != held.version:
            raise self._error(output, held.changed)
        return found

    def commit(self, name: str) -> DataVersion:
        """Makes what was written for an output the partitions of its instance: see :meth:`.switch_all`.

        After a StorageError the old partitions are unchanged; after an UnreachableError it is unknown which ones are
        the partitions, and all are whole.
        """
        import pyarrow as pa  # noqa: PLC0415 - takes a while, and so does the next one

        from falcon_assets.storage.kinds.tables.partition_folders import partition_folders  # noqa: PLC0415
        from falcon_assets.storage.tables.table_files import (  # noqa: PLC0415
            new_columns,
            require_fit,
            require_no_keys,
            require_short,
            table_files,
        )

        output = self._outputs[name]
        uri, catalog, written, folder = output.uri, self._store.catalog, output.written, output.versions.folder
        held = self._held_data.get(name)
        with driver_explained(self._store.cluster.name, f"publish {output.target.path}"):
            if held and output.place in output.present:  # before a kill
                output.versions.drop_held(output.values, [output.place])
                return version_of([*output.before.values()])
            found = self._files(name)
            if self._is_copy:
                from falcon_assets.storage.kinds.tables.copied_keys import take_keys_out  # noqa: PLC0415

                take_keys_out(written, name, found, output.layout.key_names)
            try:
                files = table_files(found, partial(written.open, name), output.layout.format)
                folders = partition_folders(files.records, uri, output.layout.keys)
                if output.is_new:
                    keys = output.layout.key_names
                    require_no_keys(files.columns, output.layout)
                    catalog.create(
                        uri.database, uri.table, files.columns, keys, output.layout.format, output.layout.location
                    )
                layout = self._layout(output.target, uri) or output.layout
                more = new_columns(files.columns, layout) if output.target.merges_schema else pa.schema([])
                require_fit(pa.schema([one for one in files.columns if one not in more]), layout)
                require_short(files.records, partial(written.open, name), layout)
                if len(more):
                    catalog.add_columns(uri.database, uri.table, more)
                    # Of two that add columns to a Hive table in one moment, the first one's are lost.
                    require_fit(files.columns, self._layout(output.target, uri) or layout)
            except StorageError as error:  # says "cluster ...: " itself, where it comes from the catalog
                why = str(error).removeprefix(f"cluster {self._store.cluster.name!r}: ")
                raise type(error)(str(self._error(output, why))) from error
            written.bring(name, files.records, output.place, lambda: None)
            folder.settle(output.place, output.target.permission)
            spelled = ((same(output.layout.keys, values), values) for values in output.before)
            there = dict(sorted(spelled, key=lambda one: one[0] == one[1]))
            new = {
                # Where it is there, as it is spelled there: a second one beside it would be the same one twice.
                there.get(values, values): NewPartition(
                    (folder.url(f"{output.place}/{each}".rstrip("/")),),
                    sum(files.records[file] for file in own),
                    files=tuple(folder.url(f"{output.place}/{file}") for file in own),
                )
                for values, (each, own) in folders.items()
            }
            said = {"falcon.instance": self._key, "falcon.version": posixpath.basename(output.place)}
            try:
                with self._replacing(output, new):
                    now = catalog.switch_all(uri.database, uri.table, new, said, output.before)
            except UnreachableError:
                self._published.add(name)  # perhaps: what is no partition after all goes a day later
                raise
            self._published.add(name)
            output.versions.is_published(output.place)
            if held or output.target.holds:
                output.versions.drop_held(output.values, {output.place, *output.present})
        return version_of(list(now.values()))

    def _replacing(self, output: _Output, new: Mapping[Values, NewPartition]) -> AbstractContextManager[None]:
        """Keeps what is replaced, or notes it for later removal."""
        if of := output.target.keeps:
            return KeptPartitions(output.versions).replacing(of, output.target.path, output.before, new)
        if not self._store.catalog.keeps_history:
            places = ((output.versions.folder.path(one.places[0]), one) for one in output.before.values())
            old = {output.versions.folder_of(place): one for place, one in places if place}
            for place, one in old.items():  # partitions that were written together share a folder
                output.versions.note(one.values, place)
        return nullcontext()

    def _prepared(self, name: str, target: OutputTarget) -> _Output:
        uri, catalog = TableUri.parse(target.path), self._store.catalog
        layout = self._layout(target, uri)
        is_new = layout is None
        if layout is None:
            if not target.makes_table:
                raise StorageError(
                    f"{self._key}: there is no table {uri.name} at {catalog.endpoint}: make it, or declare "
                    "`create: true` in the feed's table"
                )
            layout = new_layout(self._store, uri, target.format)
        if not layout.format:
            raise StorageError(f"{self._key}: table {uri.name} is neither in Parquet nor in ORC, which processes write")
        if why := next(filter(None, map(why_not_written, layout.keys)), None):
            raise StorageError(f"{self._key}: table {uri.name} is {why}")
        values = tuple(uri.fixed.get(key.lower(), ANY) for key in layout.key_names)
        before = {} if is_new else {one.values: one for one in TableLook(self._store).partitions(target.path)}
        versions = VersionFolders.of(self._store, layout)
        held = self._held_data.get(name)
        place = versions.folder.path(held.place) if held else versions.new(values)
        if place is None:  # on another store
            raise StorageError(f"{self._key}: {held.gone if held else uri.name}")
        written = written_version(self._held, name, versions.folder, self._there or place, self._staging)
        return _Output(target, uri, layout, is_new, before, versions, values, place, written)

    def _layout(self, target: OutputTarget, uri: TableUri) -> TableLayout | None:
        layout = self._store.catalog.layout(uri.database, uri.table)
        if layout is not None and (differs := uri.differs_from(layout.key_names)):
            raise StorageError(f"{self._key}: {uri}: the table is there, but {differs}")
        if layout is not None and layout.format and target.format != layout.format:
            raise StorageError(
                f"{self._key}: table {uri.name} is in {layout.format}, and the feed says {target.format}: declare "
                f"`format: {layout.format}`"
            )
        return layout

    def _error(self, output: _Output, why: str) -> StorageError:
        return StorageError(f"cluster {self._store.cluster.name!r}: cannot publish {output.target.path}: {why}")
