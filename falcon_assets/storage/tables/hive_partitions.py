"""The tables of a Hive Metastore, by its own thrift interface."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from pymetastore.hive_metastore import ttypes
from pymetastore.hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.storage.tables.catalog import Column, NewPartition, Partition, TableCatalog, TableLayout, Values
from falcon_assets.storage.tables.column_types import columns_of, hive_type
from falcon_assets.storage.tables.key_values import has_spellings, same
from falcon_assets.storage.tables.partition_names import partition_name, values_of

if TYPE_CHECKING:
    import pyarrow as pa


T = TypeVar("T")
logging.getLogger("thrift").setLevel(logging.CRITICAL)  # what it says is said again, as an error
_CONNECT_SECONDS = 5.0
_SECONDS = 60.0
_CHANGING_SECONDS = 600.0
"""Of a call that changes something, as in Hive's clients: the metastore retries while its database is locked."""
_AT_ONCE = 1000
_CHANGED_AT_ONCE = 250
"""A metastore on Derby cannot drop a thousand in one call."""
_ALL = -1
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_SHOWN = 3
_STATISTICS = re.compile(
    r"COLUMN_STATS_ACCURATE|numRows|rawDataSize|STATS_GENERATED.*|transient_lastDdlTime"
    r"|spark\.sql\.statistics\..*|impala_intermediate_stats_.*|impala\..*"
)
"""Parameters that change when data is counted and not written, with the time of such a change."""
_CLASSES = {
    "parquet": (
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    ),
    "orc": (
        "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        "org.apache.hadoop.hive.ql.io.orc.OrcSerde",
    ),
}
"""Format -> Hive's classes that read it, write it and make rows of it."""
_FORMATS = {reader: name for name, (reader, _, _) in _CLASSES.items()}


class HiveCatalog(TableCatalog):
    """A Hive Metastore at ``thrift://host:port``, or several that serve the same tables, separated by commas.

    Each operation has a connection of its own, so any thread may call.
    """

    keeps_spellings = True
    says_urls_of_hadoop = True

    def __init__(self, cluster: str, endpoint: str) -> None:
        super().__init__(cluster, endpoint)
        self._hosts = [one.strip().removeprefix("thrift://").rpartition(":") for one in endpoint.split(",")]

    def layout(self, database: str, table: str) -> TableLayout | None:
        with self._client(f"look at table {database}.{table}") as client:
            try:
                found = client.get_table(database, table)
            except ttypes.NoSuchObjectException:
                return None
        if (found.parameters or {}).get("transactional", "").lower() == "true":
            raise StorageError(
                f"cluster {self.cluster!r}: {database}.{table} is transactional: "
                "what is in its files is not what readers see"
            )
        return TableLayout(
            f"{database}.{table}",
            tuple(Column(column.name, column.type) for column in found.sd.cols),
            tuple(Column(key.name, key.type) for key in found.partitionKeys or ()),
            found.sd.location or "",
            _FORMATS.get(found.sd.inputFormat, ""),
        )

    def values(self, database: str, table: str, fixed: Mapping[str, str]) -> list[Values]:
        with self._client(f"list the partitions of {database}.{table}") as client:
            keys = [Column(key.name, key.type) for key in client.get_table(database, table).partitionKeys or ()]
            part = [_pattern(key, fixed.get(key.name.lower(), "")) for key in keys]
            if any(part):
                names = client.get_partition_names_ps(database, table, part, _ALL)
            else:
                names = client.get_partition_names(database, table, _ALL)
        wanted = [fixed.get(key.name.lower()) for key in keys]
        return [
            values
            for values in map(values_of, names)
            if all(one in (None, value) for one, value in zip(wanted, same(keys, values), strict=True))
        ]

    def partitions(self, database: str, table: str, wanted: Sequence[Values]) -> dict[Values, Partition]:
        if not wanted:
            return {}
        found: dict[Values, Partition] = {}
        with self._client(f"look at partitions of {database}.{table}") as client:
            keys = [key.name for key in client.get_table(database, table).partitionKeys]
            for one in _named(client, database, table, keys, [partition_name(keys, values) for values in wanted]):
                found[tuple(one.values)] = _partition(one)
        return found

    def create(
        self, database: str, table: str, columns: pa.Schema, keys: Sequence[str], kind: str, location: str
    ) -> None:
        reader, writer, serde = _CLASSES[kind]
        storage = ttypes.StorageDescriptor(
            cols=[ttypes.FieldSchema(one.name, hive_type(one.type), "") for one in columns_of(columns)],
            location=location,
            inputFormat=reader,
            outputFormat=writer,
            numBuckets=-1,
            serdeInfo=ttypes.SerDeInfo(serializationLib=serde, parameters={"serialization.format": "1"}),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )
        made = ttypes.Table(
            tableName=table,
            dbName=database,
            sd=storage,
            partitionKeys=[ttypes.FieldSchema(key, "string", "") for key in keys],
            tableType="EXTERNAL_TABLE",
            parameters={"EXTERNAL": "TRUE"},
        )
        doing = f"make table {database}.{table}"
        with self._client(doing, _CHANGING_SECONDS) as client, suppress(ttypes.AlreadyExistsException):
            try:
                client.create_table(made)
            except (ttypes.InvalidObjectException, ttypes.NoSuchObjectException):
                if database.lower() in client.get_all_databases():
                    raise
                raise StorageError(
                    f"cluster {self.cluster!r}: cannot make table {database}.{table}: there is no database {database}: "
                    "create it in the Hive Metastore first"
                ) from None

    def add_columns(self, database: str, table: str, columns: pa.Schema) -> None:
        with self._client(f"add columns to table {database}.{table}", _CHANGING_SECONDS) as client:
            whole = client.get_table(database, table)
            there = {one.name.lower() for one in (*whole.sd.cols, *whole.partitionKeys)}
            new = [one for one in columns_of(columns) if one.name.lower() not in there]
            if new:
                whole.sd.cols += [ttypes.FieldSchema(one.name, hive_type(one.type), "") for one in new]
                client.alter_table(database, table, whole)

    def drop(self, database: str, table: str, partitions: Sequence[Partition]) -> None:
        with self._client(f"drop partitions of {database}.{table}", _CHANGING_SECONDS) as client:
            keys = [key.name for key in client.get_table(database, table).partitionKeys]
            known = {partition_name(keys, one.values): one for one in partitions}
            there = {partition_name(keys, one.values): one for one in _named(client, database, table, keys, [*known])}
            for name, one in there.items():
                if _partition(one).version != known[name].version:
                    raise self._replaced(f"{database}.{table}", name)
            self._drop(client, database, table, [*there])

    def switch_all(
        self,
        database: str,
        table: str,
        new: Mapping[Values, NewPartition],
        said: Mapping[str, str],
        before: Mapping[Values, Partition],
    ) -> dict[Values, Partition]:
        with self._client(f"publish partitions of {database}.{table}", _CHANGING_SECONDS) as client:
            whole = client.get_table(database, table)
            keys = [key.name for key in whole.partitionKeys]
            names = {values: partition_name(keys, values) for values in {**before, **new}}
            self._require_unchanged(client, database, table, keys, before)
            made = {values: _made(whole, values, one, said) for values, one in new.items()}
            added = [one for values, one in made.items() if values not in before]
            found = []
            if added:  # first: of two that do this, one is refused, and has changed nothing then
                asked = ttypes.AddPartitionsRequest(database, table, added, ifNotExists=False, needResult=True)
                try:
                    found += client.add_partitions_req(asked).partitions
                except ttypes.AlreadyExistsException:
                    these = ", ".join(names[tuple(one.values)] for one in added[:_SHOWN])
                    raise self._replaced(f"{database}.{table}", these) from None
            altered = [one for values, one in made.items() if values in before]
            for some in _parts(altered, _CHANGED_AT_ONCE):
                client.alter_partitions(database, table, some)
            found += _named(client, database, table, keys, [names[tuple(one.values)] for one in altered])
            self._drop(client, database, table, [names[values] for values in before.keys() - new.keys()])
            return {tuple(one.values): _partition(one) for one in found}

    def _require_unchanged(
        self, client: Any, database: str, table: str, keys: Sequence[str], before: Mapping[Values, Partition]
    ) -> None:
        names = {values: partition_name(keys, values) for values in before}
        there = _named(client, database, table, keys, [*names.values()])
        versions = {tuple(one.values): _partition(one).version for one in there}
        for values, one in before.items():
            if versions.get(values) != one.version:
                raise self._replaced(f"{database}.{table}", names[values])

    @staticmethod
    def _drop(client: Any, database: str, table: str, names: list[str]) -> None:
        for some in _parts(names, _CHANGED_AT_ONCE):
            parts = ttypes.RequestPartsSpec(names=some)
            client.drop_partitions_req(
                ttypes.DropPartitionsRequest(database, table, parts, deleteData=False, needResult=False)
            )

    def _replaced(self, table: str, name: str) -> StorageError:
        return StorageError(
            f"cluster {self.cluster!r}: partition {name} of {table} was changed by somebody else meanwhile: "
            "run it again"
        )

    @contextmanager
    def _client(self, doing: str, patience: float = _SECONDS) -> Iterator[Any]:
        try:
            transport = self._opened(patience)
        except (TException, OSError) as error:
            raise UnreachableError(
                f"cluster {self.cluster!r}: {self.endpoint} does not answer: {_said(error)}"
            ) from None
        try:
            yield Client(TBinaryProtocolAccelerated(transport))
        except TTransportException as error:
            raise UnreachableError(
                f"cluster {self.cluster!r}: {self.endpoint} broke off while asked to {doing}: {_said(error)}"
            ) from None
        except TException as error:
            raise StorageError(f"cluster {self.cluster!r}: cannot {doing}: {_said(error)}") from None
        finally:
            transport.close()

    def _opened(self, patience: float) -> TBufferedTransport:
        for number, (host, _, port) in enumerate(self._hosts, start=1):
            socket = TSocket(host.strip("[]"), int(port))
            socket.setTimeout(_CONNECT_SECONDS * 1000)
            transport = TBufferedTransport(socket)
            try:
                transport.open()
            except TTransportException:
                if number == len(self._hosts):
                    raise
            else:
                socket.setTimeout(patience * 1000)
                break
        return transport


def _parts(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for begin in range(0, len(items), size):
        yield list(items[begin : begin + size])


def _pattern(key: Column, value: str) -> str:
    """Returns the value of a partition key for the metastore's filter; "": any.

    It takes a dot for any character, as a database takes an underscore, and its handling of other special characters
    depends on its version. So it may return more than was asked for.
    """
    return value if _PLAIN.fullmatch(value) and not has_spellings(key) else ""


def _named(client: Any, database: str, table: str, keys: Sequence[str], names: Sequence[str]) -> Iterator[Any]:
    """Returns the existing partitions with exactly these names, also if the database ignores case."""
    wanted = set(names)
    for some in _parts(names, _AT_ONCE):
        for one in client.get_partitions_by_names(database, table, some):
            if partition_name(keys, tuple(one.values)) in wanted:
                yield one


def _made(whole: Any, values: Values, one: NewPartition, said: Mapping[str, str]) -> Any:
    storage = copy.copy(whole.sd)
    storage.location = one.places[0]
    known = {**said, **one.parameters}
    if one.records is not None:
        known["falcon.records"] = str(one.records)
    return ttypes.Partition(
        values=list(values), dbName=whole.dbName, tableName=whole.tableName, sd=storage, parameters=known
    )


def _partition(one: Any) -> Partition:
    parameters = {key: value for key, value in (one.parameters or {}).items() if not _STATISTICS.fullmatch(key)}
    signed = json.dumps([one.sd.location, sorted(parameters.items())]).encode()
    return Partition(
        tuple(one.values),
        (one.sd.location,),
        hashlib.blake2b(signed, digest_size=16).hexdigest(),
        _number(parameters.get("numFiles")),
        _number(parameters.get("totalSize")),
        _FORMATS.get(one.sd.inputFormat, ""),
        dict(one.parameters or {}),
    )


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


def _said(error: Exception) -> str:
    """Returns the operating system's reason, where thrift only reports a failure."""
    cause = getattr(error, "inner", None) or error
    said = getattr(cause, "strerror", None) or getattr(cause, "message", None) or str(cause) or type(cause).__name__
    return str(said).splitlines()[0]
