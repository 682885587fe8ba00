"""Declared schemas."""

from __future__ import annotations

from copy import deepcopy
from functools import lru_cache

from pyspark.sql.types import StructType

from falcon_assets.errors import WorkflowError
from falcon_assets.spark.data.dataset import InputData

FIXED_SCHEMAS = {
    "text": "value string",
    "binaryFile": "path string, modificationTime timestamp, length bigint, content binary",
}
"""Formats whose schema Spark fixes."""

_WIDER = {
    "tinyint": {"smallint", "int", "bigint"},
    "smallint": {"int", "bigint"},
    "int": {"bigint"},
    "float": {"double"},
}


def parse_schema(ddl: str) -> StructType:
    """The schema that a Spark DDL text says; needs a running session, because Spark parses it.

    Raises:
        ParseException: not legal DDL (a Spark error).
    """
    return deepcopy(_parsed(ddl))  # StructType.add changes it in place


@lru_cache(maxsize=512)
def _parsed(ddl: str) -> StructType:
    parsed = StructType.fromDDL(ddl)
    return parsed if isinstance(parsed, StructType) else StructType().add("value", parsed)


def compare_orc(data: InputData, found: StructType, declared: StructType) -> None:
    """Makes sure that columns which the files have are of the declared type, or of a type that fits into it.

    Spark's other columnar reader, Parquet, checks this itself in every file; ORC's turns what does not fit into null.

    Raises:
        WorkflowError: names every column of another type.
    """
    types = {field.name.lower(): field.dataType.simpleString() for field in found}
    wrong = [
        f"{field.name} is {types[field.name.lower()]}, declared {field.dataType.simpleString()}"
        for field in declared
        if field.name.lower() in types and not _fits(types[field.name.lower()], field.dataType.simpleString())
    ]
    if wrong:
        raise WorkflowError(
            f"input {data.name!r} (feed {data.feed.name!r}): "
            f"the files do not have the declared schema: {'; '.join(wrong)}"
        )


def _fits(found: str, declared: str) -> bool:
    return found == declared or declared in _WIDER.get(found, ())
