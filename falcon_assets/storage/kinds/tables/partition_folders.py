"""The folders of several partitions that were written together: ``region=US/carrier=UA``, as Spark names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from falcon_assets.errors import StorageError
from falcon_assets.model.table_uri import TableUri
from falcon_assets.storage.tables.catalog import Values
from falcon_assets.storage.tables.partition_names import partition_name


def folder_of(uri: TableUri, keys: Sequence[str], values: Values) -> str:
    """The folder of a partition among those that are written together; "": an instance is this partition only."""
    known = dict(zip((key.lower() for key in keys), values, strict=True))
    return partition_name(uri.open_keys, tuple(known[key.lower()] for key in uri.open_keys))


def partition_folders(files: Iterable[str], uri: TableUri, keys: Sequence[str]) -> dict[Values, tuple[str, list[str]]]:
    """The partitions that were written for an instance: the folder of each, and its files.

    Args:
        files: The data files that were written, relative to a folder, as the folders are that are given.
        uri: The instance. Of keys that are ``*`` the folders say the values, in any order of the keys.
        keys: The partition keys of the table.

    Raises:
        StorageError: there is none, or a file lies in none.
    """
    opened = sorted(key.lower() for key in uri.open_keys)
    named = "/".join(f"{key}=..." for key in uri.open_keys)
    found: dict[Values, tuple[str, list[str]]] = {}
    astray: list[str] = []
    for file in files:
        steps = file.split("/")[:-1][: len(opened)]
        said = {key.lower(): unquote(value) for key, _, value in (step.partition("=") for step in steps)}
        if sorted(said) == opened:
            values = {**uri.fixed, **said}
            found.setdefault(tuple(values[key.lower()] for key in keys), ("/".join(steps), []))[1].append(file)
        else:
            astray.append(file)
    if not found:
        raise StorageError(f"it has no rows, or no folders {named}: an instance is one partition at least")
    if astray:
        by = ", ".join(uri.open_keys)
        raise StorageError(f"{astray[0]} lies in no folder {named}: a program writes it with partitionBy({by})")
    return found
