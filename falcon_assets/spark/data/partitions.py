"""Sub-partitions: the folders below an instance path, as columns."""

from __future__ import annotations

import re
from fnmatch import translate
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from falcon_assets.errors import WorkflowError
from falcon_assets.spark.data.dataset import InputData
from falcon_assets.spark.data.paths import path_of, steps_of

_SCHEME = r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?/+"
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def with_partitions(frame: DataFrame, data: InputData, schema: StructType | None) -> DataFrame:
    """``frame`` with the feed's partitions as columns, and only the rows of ``data.partition``.

    The columns are made from the files' paths instead of by Spark's partition discovery, which knows Hive's
    ``country=US`` only, and one root folder only. Spark still skips the files that a filter on them rules out.

    Args:
        frame: Read with ``recursiveFileLookup``.
        data: Says where the instances are, how the folders are named and which of them are wanted.
        schema: The declared schema; a partition in it gets the type it declares, any other is a string.

    Raises:
        WorkflowError: ``data.partition`` has more levels than the feed.
    """
    depth = len(steps_of(path_of(data.urls[0])))
    folders = sf.split(sf.regexp_replace(sf.col("_metadata.file_path"), _SCHEME, ""), "/+")
    columns = {name: _value(folders, depth + level, name) for level, name in enumerate(data.feed.partitions)}
    for name, wanted in wanted_partitions(data):
        frame = frame.where(_matches(columns[name], wanted))
    return frame.withColumns(_typed(columns, schema))


def with_folders(frame: DataFrame, keys: tuple[str, ...], schema: StructType | None) -> DataFrame:
    """``frame`` with a column for each of ``keys``, of the folders like ``key=value`` that its files lie in.

    The texts stay as they are: ``region=01`` and ``region=1`` are two regions.

    Args:
        frame: Read with ``recursiveFileLookup``.
        keys: The keys in the names of the folders, outermost first.
        schema: The declared schema; a key in it gets the type it declares.
    """
    path = sf.col("_metadata.file_path")
    return frame.withColumns(_typed({unquote(key): _of_folder(path, key) for key in keys}, schema))


def _typed(columns: dict[str, Column], schema: StructType | None) -> dict[str, Column]:
    declared = {field.name.lower(): field.dataType for field in schema} if schema else {}
    return {
        name: column.cast(declared[name.lower()]) if name.lower() in declared else column
        for name, column in columns.items()
    }


def wanted_partitions(data: InputData) -> list[tuple[str, str]]:
    """Partition name and pattern for each level of ``data.partition`` that is not just ``*``."""
    names = data.feed.partitions
    patterns = [part for part in (data.partition or "").split("/") if part]
    if len(patterns) > len(names):
        declared = ", ".join(names) if names else "none"
        raise WorkflowError(
            f"input {data.name!r}: partition {data.partition!r} has {len(patterns)} levels, "
            f"but feed {data.feed.name!r} declares these partitions: {declared}"
        )
    pairs = zip(names, patterns, strict=False)
    return [(name, pattern.removeprefix(f"{name}=")) for name, pattern in pairs if pattern != "*"]


def _value(folders: Column, index: int, name: str) -> Column:
    """The folder at ``index`` of a path, without Hive's ``name=`` and its escapes; null where there is no folder."""
    folder = _unescaped(sf.when(sf.size(folders) > index + 1, sf.get(folders, sf.lit(index))))
    prefix = f"{name}="
    value = sf.when(folder.startswith(prefix), _unescaped(sf.substr(folder, sf.lit(len(prefix) + 1)))).otherwise(folder)
    return sf.when(value != _HIVE_NULL, value)


def _of_folder(path: Column, key: str) -> Column:
    """The value in the innermost folder of the key, in a path that is a URL."""
    value = _unescaped(sf.regexp_extract(_unescaped(path), f"^.*/{re.escape(key)}=([^/]*)/", 1))
    return sf.when(value != _HIVE_NULL, value)


def _unescaped(text: Column) -> Column:
    decoded = sf.try_url_decode(sf.replace(text, sf.lit("+"), sf.lit("%2B")))  # a plus is a plus in a path
    return sf.coalesce(decoded, text)


def _matches(column: Column, pattern: str) -> Column:
    if not set(pattern) & set("*?["):
        return column == sf.lit(pattern)
    return column.rlike("^" + re.sub(r"^\(\?s:(.*)\)\\[Zz]$", r"(?s:\1)", translate(pattern)) + "$")
