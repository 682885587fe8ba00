"""Features of Iceberg tables that are lost when Spark reads their data files by path."""

from __future__ import annotations

from pyiceberg.manifest import ManifestContent
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, IntegerType, LongType, StringType

from falcon_assets.errors import StorageError
from falcon_assets.storage.tables.iceberg_files import key_fields, table_name


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
