"""The options under which Spark finds all files of an instance, those in sub-folders too."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import dropwhile, takewhile

from falcon_assets.errors import WorkflowError
from falcon_assets.spark.data.dataset import InputData
from falcon_assets.storage.instances.data_files import is_data, shown

_RECURSIVE = "recursiveFileLookup"
_LAYOUT_OPTIONS = (_RECURSIVE.lower(), "basepath")


def layout_options(data: InputData, names: Iterable[str]) -> dict[str, str]:
    """The reader options under which Spark reads files in sub-folders too.

    Spark by itself lists sub-folders only where they are named ``key=value``, and makes columns of them. That
    stays so where all files of a feed without declared ``partitions`` lie in such folders, with the same keys. Else it
    lists all folders and makes no columns. A feed whose own options say how, is read so.

    Args:
        data: The input.
        names: The files of its instances, each relative to its own.

    Raises:
        WorkflowError: some files lie in such folders, and others do not or in folders of other keys, so that Spark
            would leave out some of them; or there are several instances with such folders, which Spark refuses.
    """
    if data.feed.partitions:
        return {_RECURSIVE: "true"}
    own = {key: value for key, value in data.feed.options.items() if key.lower() in _LAYOUT_OPTIONS}
    if own:
        return own
    seen: dict[tuple[str, ...], str] = {}
    for name in names:
        if is_data(name, data.feed.availability_flag):
            seen.setdefault(folder_keys(name), name)
    keys = next((keys for keys in seen if keys), ())
    if not keys:
        return {_RECURSIVE: "true"}
    where, declare = f"input {data.name!r} (feed {data.feed.name!r})", f"declare `partitions: [{', '.join(keys)}]`"
    if len(seen) > 1:
        one, other, *_ = sorted(seen.values())
        raise WorkflowError(
            f"{where}: the folders of {shown(one)} and {shown(other)} make different columns, and Spark would leave "
            f"out one of the files: {declare} in the feed, or move them"
        )
    if len(data.urls) > 1:
        raise WorkflowError(
            f"{where}: the files lie in folders like {keys[0]}=..., which Spark cannot make columns of for several "
            f"instances at once: {declare} in the feed"
        )
    return {}


def folder_keys(name: str) -> tuple[str, ...]:
    """The columns that Spark makes of the folders of a file, by its name relative to the instance.

    Source: Spark's ``PartitioningUtils.parsePartition``: from the file upwards, the first run of ``key=value``.
    """
    upwards = reversed(name.split("/")[:-1])
    run = takewhile(_has_key, dropwhile(lambda step: not _has_key(step), upwards))
    return tuple(reversed([step.partition("=")[0] for step in run]))


def _has_key(step: str) -> bool:
    return "=" in step
