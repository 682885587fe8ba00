"""How all files of an instance are found, those in sub-folders too, and which columns their folders make."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import dropwhile, takewhile

from falcon_assets.errors import WorkflowError
from falcon_assets.spark.data.dataset import InputData
from falcon_assets.spark.data.paths import path_of
from falcon_assets.storage.instances.data_files import is_data, shown

_RECURSIVE = "recursiveFileLookup"
_LAYOUT_OPTIONS = (_RECURSIVE.lower(), "basepath")


@dataclass(frozen=True)
class Layout:
    """How the files of an input are found.

    Attributes:
        options: What Spark's reader is told.
        keys: The columns that folders like ``key=value`` make though the feed declares none; made by
            :func:`falcon_assets.spark.data.partitions.with_folders`, as texts.
        by_spark: The columns that Spark itself makes of folders, because the feed's own options say so.
    """

    options: dict[str, str]
    keys: tuple[str, ...] = ()
    by_spark: tuple[str, ...] = ()


def layout_of(data: InputData, names: Iterable[str]) -> Layout:
    """How Spark reads files in sub-folders too.

    All folders are listed. Where all files of a feed without declared ``partitions`` lie in folders named
    ``key=value``, with the same keys, those are columns. A feed whose own options say how, is read so.

    Args:
        data: The input.
        names: The files of its instances, each relative to its own.

    Raises:
        WorkflowError: some files lie in such folders, and others do not or in folders of other keys.
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
    """The columns that the folders of a file make, by its name relative to the instance, as Spark has it.

    Source: Spark's ``PartitioningUtils.parsePartition``: from the file upwards, the first run of ``key=value``.
    """
    upwards = reversed(name.split("/")[:-1])
    run = takewhile(_has_key, dropwhile(lambda step: not _has_key(step), upwards))
    return tuple(reversed([step.partition("=")[0] for step in run]))


def _keys_in(path: str) -> tuple[str, ...]:
    return tuple(step.partition("=")[0] for step in path.split("/")[:-1] if _has_key(step))


def _has_key(step: str) -> bool:
    return "=" in step
