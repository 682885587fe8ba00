"""The tables of a Hive Metastore, by its own thrift interface."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pymetastore.hive_metastore import ttypes
from pymetastore.hive_metastore.ThriftHiveMetastore import Client
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from falcon_assets.errors import StorageError, UnreachableError
from falcon_assets.storage.tables.catalog import Column, Partition, TableCatalog, TableLayout, Values
from falcon_assets.storage.tables.column_types import columns_of, hive_type

if TYPE_CHECKING:
    import pyarrow as pa

logging.getLogger("thrift").setLevel(logging.CRITICAL)  # what it says is said again, as an error
_CONNECT_SECONDS = 5.0
_SECONDS = 60.0
"""How long one call may take."""
_AT_ONCE = 1000
"""So many partitions are asked for in one call."""
_ALL = -1
_STATISTICS = frozenset(("COLUMN_STATS_ACCURATE", "numRows", "rawDataSize"))
"""What ``ANALYZE TABLE`` changes and no writer of data."""
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
            if fixed:
                keys = [key.name.lower() for key in client.get_table(database, table).partitionKeys]
                part = [fixed.get(key, "") for key in keys]
                names = client.get_partition_names_ps(database, table, part, _ALL)
            else:
                names = client.get_partition_names(database, table, _ALL)
        return [_values(name) for name in names]

    def partitions(self, database: str, table: str, wanted: Sequence[Values]) -> dict[Values, Partition]:
        if not wanted:
            return {}
        found: dict[Values, Partition] = {}
        with self._client(f"look at partitions of {database}.{table}") as client:
            keys = [key.name for key in client.get_table(database, table).partitionKeys]
            for begin in range(0, len(wanted), _AT_ONCE):
                names = [_name(keys, values) for values in wanted[begin : begin + _AT_ONCE]]
                for one in client.get_partitions_by_names(database, table, names):
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
        with self._client(f"make table {database}.{table}") as client, suppress(ttypes.AlreadyExistsException):
            client.create_table(made)

    def add_columns(self, database: str, table: str, columns: pa.Schema) -> None:
        with self._client(f"add columns to table {database}.{table}") as client:
            whole = client.get_table(database, table)
            there = {one.name.lower() for one in (*whole.sd.cols, *whole.partitionKeys)}
            new = [one for one in columns_of(columns) if one.name.lower() not in there]
            if new:
                whole.sd.cols += [ttypes.FieldSchema(one.name, hive_type(one.type), "") for one in new]
                client.alter_table(database, table, whole)

    def drop(self, database: str, table: str, partitions: Sequence[Partition]) -> None:
        with self._client(f"drop partitions of {database}.{table}") as client:
            keys = [key.name for key in client.get_table(database, table).partitionKeys]
            known = {_name(keys, one.values): one for one in partitions}
            there = {_name(keys, one.values): one for one in client.get_partitions_by_names(database, table, [*known])}
            for name, one in there.items():
                if _partition(one).version != known[name].version:
                    raise self._replaced(f"{database}.{table}", name)
            if there:
                parts = ttypes.RequestPartsSpec(names=[*there])
                client.drop_partitions_req(
                    ttypes.DropPartitionsRequest(database, table, parts, deleteData=False, needResult=False)
                )

    def switch(
        self, database: str, table: str, values: Values, folder: str, said: Mapping[str, str], before: Partition | None
    ) -> Partition:
        with self._client(f"publish a partition of {database}.{table}") as client:
            whole = client.get_table(database, table)
            name = _name([key.name for key in whole.partitionKeys], values)
            storage = copy.deepcopy(whole.sd)
            storage.location = folder
            new = ttypes.Partition(
                values=list(values), dbName=database, tableName=table, sd=storage, parameters=dict(said)
            )
            if before is None:
                try:
                    return _partition(client.add_partition(new))  # of two that do this, one is refused
                except ttypes.AlreadyExistsException:
                    raise self._replaced(f"{database}.{table}", name) from None
            there = client.get_partitions_by_names(database, table, [name])
            if [_partition(one).version for one in there] != [before.version]:
                raise self._replaced(f"{database}.{table}", name)
            client.alter_partition(database, table, new)
            return _partition(client.get_partition_by_name(database, table, name))

    def _replaced(self, table: str, name: str) -> StorageError:
        return StorageError(
            f"cluster {self.cluster!r}: partition {name} of {table} was changed by somebody else meanwhile: "
            "run it again"
        )

    @contextmanager
    def _client(self, doing: str) -> Iterator[Any]:
        try:
            transport = self._opened()
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

    def _opened(self) -> TBufferedTransport:
        """A connection to the first of the hosts that answers."""
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
                socket.setTimeout(_SECONDS * 1000)
                break
        return transport


def _partition(one: Any) -> Partition:
    parameters = {key: value for key, value in (one.parameters or {}).items() if key not in _STATISTICS}
    signed = json.dumps([one.sd.location, sorted(parameters.items())]).encode()
    return Partition(
        tuple(one.values),
        (one.sd.location,),
        hashlib.blake2b(signed, digest_size=16).hexdigest(),
        _number(parameters.get("numFiles")),
        _number(parameters.get("totalSize")),
        _FORMATS.get(one.sd.inputFormat, ""),
    )


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(1, 32)}
"""Source: Hive's ``FileUtils.charToEscape``."""


def _name(keys: Sequence[str], values: Values) -> str:
    return "/".join(f"{_escaped(key.lower())}={_escaped(value)}" for key, value in zip(keys, values, strict=True))


def _escaped(text: str) -> str:
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)


def _values(name: str) -> Values:
    return tuple(unquote(step.partition("=")[2]) for step in name.split("/"))


def _said(error: Exception) -> str:
    """What the operating system says, where thrift only says that it failed."""
    cause = getattr(error, "inner", None) or error
    told = getattr(cause, "strerror", None) or getattr(cause, "message", None) or str(cause) or type(cause).__name__
    return str(told).splitlines()[0]
