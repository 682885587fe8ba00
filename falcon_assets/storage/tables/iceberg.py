"""The tables of an Iceberg catalog, by pyiceberg."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain

import pyarrow as pa
from pydantic import ValidationError
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NoSuchTableError,
    OAuthError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TableAlreadyExistsError,
    UnauthorizedError,
    ValidationException,
)
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, Or
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, ManifestContent
from pyiceberg.table import Table, TableProperties
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, IntegerType, LongType, StringType
from requests import RequestException
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.storage.errors import driver_explained
from falcon_assets.storage.tables.catalog import Column, NewPartition, Partition, TableCatalog, TableLayout, Values
from falcon_assets.storage.tables.column_types import columns_of, nullable
from falcon_assets.storage.tables.iceberg_columns import are_named_alike, columns_in, mapping_for
from falcon_assets.storage.tables.iceberg_files import (
    data_files_at,
    equal,
    file_end,
    key_fields,
    table_name,
    text_of,
    version_of_files,
)


def require_plain(cluster: str, table: Table) -> None:
    """Raises StorageError if the table has such a feature."""
    name = table_name(table)
    for field in key_fields(table):
        if not isinstance(field.field_type, StringType | IntegerType | LongType | DateType):
            raise StorageError(
                f"cluster {cluster!r}: {name} is partitioned by {field.name}, a {field.field_type}: "
                "only texts, whole numbers and dates can be used"
            )
    if other := [str(one.transform) for one in table.spec().fields if not isinstance(one.transform, IdentityTransform)]:
        raise StorageError(
            f"cluster {cluster!r}: {name} is partitioned by {other[0]} of a column: only tables that are "
            "partitioned by columns as they are can be used"
        )
    snapshot = table.current_snapshot()
    if snapshot and any(one.content == ManifestContent.DELETES for one in snapshot.manifests(table.io)):
        raise has_deletes(cluster, table)


def has_deletes(cluster: str, table: Table) -> StorageError:
    return StorageError(
        f"cluster {cluster!r}: {table_name(table)} has delete files, which Spark does not apply when "
        "it reads data files by path: rewrite its data files first"
    )


def has_older_partitions(cluster: str, table: Table) -> StorageError:
    return StorageError(
        f"cluster {cluster!r}: {table_name(table)} has files that are partitioned in an older way: "
        "rewrite its data files first"
    )


_NO_RETRIES = {"commit.retry.num-retries": "0"}
_LONGEST_RETRYING = 120
"""Each commit is of the whole table, so writers of other partitions make it fail."""
_LONGEST_WAIT = 5
_UNDONE = (CommitFailedException, CommitStateUnknownException, ValidationException)
"""Another partition was published meanwhile, or the result is unknown: the table is loaded again."""
_LOGIN_REFUSED = re.compile(r"authentication failed|no password supplied|no pg_hba\.conf entry|role .* does not exist")
_READERS = 8
_FEW = 200
"""Partitions that are filtered by value; for more, all files are listed."""


class IcebergCatalog(TableCatalog):
    """An Iceberg catalog; ``opened`` gives PyIceberg's, at first use."""

    keeps_history = True

    def __init__(self, cluster: str, shown: str, opened: Callable[[], Catalog]) -> None:
        super().__init__(cluster, shown)
        self._open = opened

    def layout(self, database: str, table: str) -> TableLayout | None:
        with self._explained(f"look at table {database}.{table}"):
            try:
                found = self._catalog.load_table((database, table))
            except NoSuchTableError:
                return None
            require_plain(self.cluster, found)
            columns = {column.name: column for column in columns_of(schema_to_pyarrow(found.schema()))}
            keys = tuple(columns.pop(field.name) for field in key_fields(found))
            return TableLayout(f"{database}.{table}", tuple(columns.values()), keys, found.location(), "parquet")

    def values(self, database: str, table: str, fixed: Mapping[str, str]) -> list[Values]:
        with self._explained(f"list the partitions of {database}.{table}"):
            found = self._catalog.load_table((database, table))
            return list(self._files(found, equal(found, fixed)))

    def partitions(self, database: str, table: str, wanted: Sequence[Values]) -> dict[Values, Partition]:
        if not wanted:
            return {}
        with self._explained(f"look at partitions of {database}.{table}"):
            found = self._catalog.load_table((database, table))
            return self._partitions(found, wanted)

    def as_written(
        self, database: str, table: str, partitions: Sequence[Partition]
    ) -> list[tuple[Partition, tuple[Column, ...]]]:
        with self._explained(f"look into files of {database}.{table}"):
            found = self._catalog.load_table((database, table))
            if are_named_alike(found):
                return super().as_written(database, table, partitions)
            parts: dict[tuple[Values, tuple[Column, ...]], Partition] = {}
            with ThreadPoolExecutor(_READERS) as pool:
                for one in partitions:
                    ends = pool.map(lambda url: columns_in(found, file_end(found, url)[0]), one.places)
                    for place, columns in zip(one.places, ends, strict=True):
                        part = parts.get((one.values, columns), replace(one, places=()))
                        parts[one.values, columns] = replace(part, places=(*part.places, place))
            return [(part, columns) for (_, columns), part in parts.items()]

    def changed_at(self, database: str, table: str) -> datetime | None:
        with self._explained(f"look at table {database}.{table}"):
            snapshot = self._catalog.load_table((database, table)).current_snapshot()
            return datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC) if snapshot else None

    def create(
        self, database: str, table: str, columns: pa.Schema, keys: Sequence[str], kind: str, location: str
    ) -> None:
        # What the first output happens to have everywhere others need not have.
        every = pa.schema([*map(nullable, columns), *(pa.field(key, pa.string()) for key in keys)])
        with self._explained(f"make table {database}.{table}"):
            self._catalog.create_namespace_if_not_exists((database,))
            try:
                with (
                    self._catalog.create_table_transaction((database, table), every, location) as transaction,
                    transaction.update_spec() as spec,
                ):
                    for key in keys:
                        spec.add_identity(key)
            except (TableAlreadyExistsError, CommitFailedException):
                return

    def add_columns(self, database: str, table: str, columns: pa.Schema) -> None:
        with self._explained(f"add columns to table {database}.{table}"):
            for attempt in _attempts():
                with attempt:
                    found = self._catalog.load_table((database, table))
                    there = {field.name.lower() for field in found.schema().fields}
                    if new := [nullable(one) for one in columns if one.name.lower() not in there]:
                        with found.update_schema() as schema:
                            schema.union_by_name(pa.schema(new))

    def drop(self, database: str, table: str, partitions: Sequence[Partition]) -> None:
        wanted = {one.values: one.version for one in partitions}
        with self._explained(f"drop partitions of {database}.{table}"):
            for attempt in _attempts():
                with attempt:
                    found = self._catalog.load_table((database, table))
                    there = self._of(found, list(wanted))
                    for values, files in there.items():
                        if version_of_files(files) != wanted[values]:
                            raise self._replaced(f"{database}.{table}", values)
                    self._delete(found, [file for files in there.values() for file in files])

    def switch_all(
        self,
        database: str,
        table: str,
        new: Mapping[Values, NewPartition],
        said: Mapping[str, str],
        before: Mapping[Values, Partition],
    ) -> dict[Values, Partition]:
        records = [one.records for one in new.values() if one.records is not None]
        known = {**said, "falcon.records": str(sum(records))} if records else said
        with self._explained(f"publish partitions of {database}.{table}"):
            for attempt in _attempts():
                with attempt:
                    found = self._catalog.load_table((database, table))
                    made = {
                        values: [*data_files_at(found, values, one.files or one.places)] for values, one in new.items()
                    }
                    files = {values: [file for file, _ in each] for values, each in made.items()}
                    columns = [one for each in made.values() for _, one in each]
                    there = self._of(found, [*{**before, **new}])
                    if _versions(there) != _versions(files):  # else it is done, but nobody said so
                        was = {values: one.version for values, one in before.items()}
                        if (is_now := _versions(there)) != was:
                            changed = {*is_now.items()} ^ {*was.items()}
                            raise self._replaced(f"{database}.{table}", min(values for values, _ in changed))
                        self._replace(found, chain(*there.values()), chain(*files.values()), columns, known)
            return {values: _partition(values, each) for values, each in files.items()}

    def _replaced(self, table: str, values: Values) -> StorageError:
        return StorageError(
            f"cluster {self.cluster!r}: partition {'/'.join(values)} of {table} was changed by somebody else "
            "meanwhile: run it again"
        )

    def _delete(self, table: Table, files: Sequence[DataFile]) -> None:
        if files:
            table.metadata.properties.update(_NO_RETRIES)
            with table.transaction() as transaction, transaction.update_snapshot().overwrite() as snapshot:
                for file in files:
                    snapshot.delete_data_file(file)

    def _replace(
        self,
        table: Table,
        there: Iterable[DataFile],
        new: Iterable[DataFile],
        columns: Iterable[pa.Schema],
        said: Mapping[str, str],
    ) -> None:
        # Its own retries would add the new files a second time to what somebody else wrote into the partition.
        table.metadata.properties.update(_NO_RETRIES)
        with table.transaction() as transaction:
            # Spark's files name their columns, perhaps in another case, and do not number them.
            mapping = mapping_for(table, columns)
            if mapping != table.name_mapping():
                transaction.set_properties({TableProperties.DEFAULT_NAME_MAPPING: mapping.model_dump_json()})
            with transaction.update_snapshot(snapshot_properties=dict(said)).overwrite() as snapshot:
                for file in there:
                    snapshot.delete_data_file(file)
                for file in new:
                    snapshot.append_data_file(file)

    @cached_property
    def _catalog(self) -> Catalog:
        return self._open()

    def _partitions(self, table: Table, wanted: Sequence[Values]) -> dict[Values, Partition]:
        return {values: _partition(values, files) for values, files in self._of(table, wanted).items()}

    def _of(self, table: Table, wanted: Sequence[Values]) -> dict[Values, list[DataFile]]:
        keys = [field.name.lower() for field in key_fields(table)]
        filters: BooleanExpression = AlwaysTrue()
        if len(wanted) <= _FEW:
            each = [equal(table, dict(zip(keys, values, strict=True))) for values in wanted]
            filters = Or(*each) if len(each) > 1 else each[0]
        files = self._files(table, filters)
        return {values: files[values] for values in wanted if values in files}

    def _files(self, table: Table, filters: BooleanExpression) -> dict[Values, list[DataFile]]:
        require_plain(self.cluster, table)
        found: dict[Values, list[DataFile]] = {}
        keys = key_fields(table)
        for task in table.scan(row_filter=filters).plan_files():
            if task.delete_files:
                raise has_deletes(self.cluster, table)
            if task.file.spec_id != table.spec().spec_id:
                raise has_older_partitions(self.cluster, table)
            values = tuple(text_of(field, task.file.partition[at]) for at, field in enumerate(keys))
            found.setdefault(values, []).append(task.file)
        return found

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        with driver_explained(self.cluster, doing):  # what the table says of itself is in files on a store
            try:
                yield
            except (SQLAlchemyError, RequestException) as error:
                why = _of_driver(error)
                raise (self._refused(why) if _LOGIN_REFUSED.search(why) else self._silent(doing, why)) from None
            except (ServerError, ServiceUnavailableError, CommitStateUnknownException) as error:
                raise self._silent(doing, _said(error)) from None
            except (CommitFailedException, ValidationException):
                raise StorageError(
                    f"cluster {self.cluster!r}: cannot {doing}: too many others write into the table: run it again"
                ) from None
            except (UnauthorizedError, ForbiddenError, OAuthError) as error:
                raise StorageError(
                    f"cluster {self.cluster!r}: {self.endpoint} refuses to {doing} ({_said(error)}): check the "
                    "storage_options of the registry"
                ) from None
            except ValidationError as error:
                if "_catalog" not in self.__dict__:
                    raise self._silent(doing, "what is there is no Iceberg catalog") from None
                first = error.errors()[0]
                reason = f"PyIceberg does not know {'.'.join(map(str, first['loc']))} of it: {first['msg']}"
                raise StorageError(f"cluster {self.cluster!r}: cannot {doing}: {reason}") from None
            except OSError as error:
                raise StorageError(f"cluster {self.cluster!r}: cannot {doing}: {_said(error)}") from error
            except (RESTError, NoSuchTableError, NotImplementedError, TypeError, ValueError) as error:
                # No cause: what is said of one table is an answer, and others there may well be readable.
                raise StorageError(f"cluster {self.cluster!r}: cannot {doing}: {_said(error)}") from None

    def _refused(self, why: str) -> UnreachableError:
        return UnreachableError(
            f"cluster {self.cluster!r}: {self.endpoint} refused the login ({why}): check the user in "
            "interfaces.registry.endpoint, and its password in PGPASSWORD or the file .pgpass, here and where Dagster "
            "runs"
        )

    def _silent(self, doing: str, why: str) -> UnreachableError:
        return UnreachableError(f"cluster {self.cluster!r}: {self.endpoint} does not answer, asked to {doing}: {why}")


def _attempts() -> Retrying:
    """Retries after random waits, so that of many writers one always succeeds."""
    return Retrying(
        retry=retry_if_exception_type(_UNDONE),
        wait=wait_random_exponential(multiplier=0.1, max=_LONGEST_WAIT),
        stop=stop_after_delay(_LONGEST_RETRYING),
        reraise=True,
    )


def _versions(files: Mapping[Values, Sequence[DataFile]]) -> dict[Values, str | None]:
    return {values: version_of_files(each) for values, each in files.items()}


def _partition(values: Values, files: Sequence[DataFile]) -> Partition:
    return Partition(
        values,
        tuple(sorted(file.file_path for file in files)),
        version_of_files(files) or "",
        len(files),
        sum(file.file_size_in_bytes for file in files),
        "parquet",
        records=sum(file.record_count for file in files),
    )


def _of_driver(error: Exception) -> str:
    """A database's message has no secret in it; one about a request may have."""
    name = type(error).__name__
    return (
        f"{name}: {_said(error.orig)}" if isinstance(error, DBAPIError) and isinstance(error.orig, Exception) else name
    )


def _said(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
