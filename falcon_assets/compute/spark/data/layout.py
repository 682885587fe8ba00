"""Layout of an instance's files, including sub-folders, and the columns that folders become."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import translate
from itertools import dropwhile, takewhile
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from falcon_assets.compute.spark.data.dataset import InputData
from falcon_assets.compute.spark.data.input_files import path_of, steps_of
from falcon_assets.errors import WorkflowError
from falcon_assets.storage.instances.data_files import is_data, shown

_RECURSIVE = "recursiveFileLookup"
_LAYOUT_OPTIONS = (_RECURSIVE.lower(), "basepath")


@dataclass(frozen=True)
class Layout:
    """The way in which the files of an input are found.

    ``keys`` are columns of folders that the feed does not declare; ``by_spark`` those that Spark itself makes, because
    of the feed's own options.
    """

    options: dict[str, str]
    keys: tuple[str, ...] = ()
    by_spark: tuple[str, ...] = ()


def layout_of(data: InputData, names: Iterable[str]) -> Layout:
    """Returns the layout with which Spark reads files in sub-folders too; ``names`` are relative to their instances.

    If all files of a feed without declared ``partitions`` are in folders named ``key=value``, with the same keys, those
    are columns; raises WorkflowError if only some are. The feed's own options have precedence.
    """
    if data.feed.partitions:
        return Layout({_RECURSIVE: "true"})
    own = {key: value for key, value in data.feed.options.items() if key.lower() in _LAYOUT_OPTIONS}
    if own:
        is_flat = any(key.lower() == _RECURSIVE.lower() and value.lower() == "true" for key, value in own.items())
        name = next(iter(names), "")
        return Layout(own, (), () if is_flat else _keys_in(f"{path_of(data.urls[0])}/{name}"))
    seen: dict[tuple[str, ...], str] = {}
    for name in names:
        if is_data(name, data.feed.availability_flag):
            seen.setdefault(folder_keys(name), name)
    keys = next((keys for keys in seen if keys), ())
    if len(seen) > 1:
        one, other, *_ = sorted(seen.values())
        raise WorkflowError(
            f"input {data.name!r} (feed {data.feed.name!r}): the folders of {shown(one)} and {shown(other)} make "
            f"different columns: declare `partitions: [{', '.join(keys)}]` in the feed, or move them"
        )
    return Layout({_RECURSIVE: "true"}, keys)


def folder_keys(name: str) -> tuple[str, ...]:
    """Returns the columns of a file's folders, by its name relative to the instance, as Spark does.

    Source: Spark's ``PartitioningUtils.parsePartition``: from the file upwards, the first run of ``key=value``.
    """
    upwards = reversed(name.split("/")[:-1])
    run = takewhile(_has_key, dropwhile(lambda step: not _has_key(step), upwards))
    return tuple(reversed([step.partition("=")[0] for step in run]))


def _keys_in(path: str) -> tuple[str, ...]:
    return tuple(step.partition("=")[0] for step in path.split("/")[:-1] if _has_key(step))


def _has_key(step: str) -> bool:
    return "=" in step


_SCHEME = r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?/+"
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def with_partitions(frame: DataFrame, data: InputData, schema: StructType | None) -> DataFrame:
    """Returns ``frame`` with the feed's partitions as columns, and only the rows of ``data.partition``.

    The columns are made from the files' paths instead of by Spark's partition discovery, which supports only Hive's
    ``country=US``, and one root folder. Spark still skips the files that a filter on them excludes.
    """
    depth = len(steps_of(path_of(data.urls[0])))
    folders = sf.split(sf.regexp_replace(sf.col("_metadata.file_path"), _SCHEME, ""), "/+")
    columns = {name: _value(folders, depth + level, name) for level, name in enumerate(data.feed.partitions)}
    for name, wanted in wanted_partitions(data):
        frame = frame.where(_matches(columns[name], wanted))
    return frame.withColumns(_typed(columns, schema))


def folder_at(depth: int) -> Column:
    """The path of a row's file up to that many steps, with nothing escaped, as :func:`.path_of` returns it."""
    steps = sf.split(sf.regexp_replace(sf.col("_metadata.file_path"), _SCHEME, ""), "/+")
    return _unescaped(sf.concat(sf.lit("/"), sf.array_join(sf.slice(steps, 1, depth), "/")))


def with_folders(frame: DataFrame, keys: tuple[str, ...], schema: StructType | None) -> DataFrame:
    """Returns ``frame`` with columns of folders ``key=value``, as unchanged texts (``01``) or as in ``schema``."""
    path = sf.col("_metadata.file_path")
    return frame.withColumns(_typed({unquote(key): _of_folder(path, key) for key in keys}, schema))


def _typed(columns: dict[str, Column], schema: StructType | None) -> dict[str, Column]:
    declared = {field.name.lower(): field.dataType for field in schema} if schema else {}
    return {
        name: column.cast(declared[name.lower()]) if name.lower() in declared else column
        for name, column in columns.items()
    }


def wanted_partitions(data: InputData) -> list[tuple[str, str]]:
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
    """The folder at ``index`` of a path, without Hive's ``name=`` and its escapes; null: there is no folder."""
    folder = _unescaped(sf.when(sf.size(folders) > index + 1, sf.get(folders, sf.lit(index))))
    prefix = f"{name}="
    value = sf.when(folder.startswith(prefix), _unescaped(sf.substr(folder, sf.lit(len(prefix) + 1)))).otherwise(folder)
    return sf.when(value != _HIVE_NULL, value)


def _of_folder(path: Column, key: str) -> Column:
    value = _unescaped(sf.regexp_extract(_unescaped(path), f"^.*/{re.escape(key)}=([^/]*)/", 1))
    return sf.when(value != _HIVE_NULL, value)


def _unescaped(text: Column) -> Column:
    decoded = sf.try_url_decode(sf.replace(text, sf.lit("+"), sf.lit("%2B")))  # a plus is a plus in a path
    return sf.coalesce(decoded, text)


def _matches(column: Column, pattern: str) -> Column:
    if not set(pattern) & set("*?["):
        return column == sf.lit(pattern)
    return column.rlike("^" + re.sub(r"^\(\?s:(.*)\)\\[Zz]$", r"(?s:\1)", translate(pattern)) + "$")
