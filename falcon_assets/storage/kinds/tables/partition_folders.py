"""The folders of several partitions that were written together: ``region=US/carrier=UA``, as Spark names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote

from falcon_assets.errors import StorageError
from falcon_assets.model.table_uri import TableUri
from falcon_assets.storage.tables.catalog import Column, Values
from falcon_assets.storage.tables.key_values import canonical
from falcon_assets.storage.tables.partition_names import partition_name


def folder_of(uri: TableUri, keys: Sequence[str], values: Values) -> str:
    """Returns the folder of a partition among those that are written together; "" if it is the whole instance."""
    known = dict(zip((key.lower() for key in keys), values, strict=True))
    return partition_name(uri.open_keys, tuple(known[key.lower()] for key in uri.open_keys))


def partition_folders(
    files: Iterable[str], uri: TableUri, keys: Sequence[Column]
) -> dict[Values, tuple[str, list[str]]]:
    """Returns folder and files of each partition, by canonical values, which for ``*`` keys are in the folders.

    Raises StorageError if there is none, a file is in none, two folders are one partition, or a value is invalid.
    """
    opened = sorted(key.lower() for key in uri.open_keys)
    named = "/".join(f"{key}=..." for key in uri.open_keys)
    found: dict[Values, tuple[str, list[str]]] = {}
    astray: list[str] = []
    for file in files:
        steps = file.split("/")[:-1][: len(opened)]
        said = {key.lower(): unquote(value) for key, _, value in (step.partition("=") for step in steps)}
        if sorted(said) == opened:
            folder, own = found.setdefault(_canonical(keys, {**uri.fixed, **said}), ("/".join(steps), []))
            if folder != "/".join(steps):
                raise StorageError(f"{folder} and {'/'.join(steps)} are one partition of the table")
            own.append(file)
        else:
            astray.append(file)
    if not found:
        raise StorageError(f"it has no rows, or no folders {named}: an instance is one partition at least")
    if astray:
        by = ", ".join(uri.open_keys)
        raise StorageError(f"{astray[0]} lies in no folder {named}: a program writes it with partitionBy({by})")
    return found


def _canonical(keys: Sequence[Column], values: Mapping[str, str]) -> Values:
    try:
        return tuple(canonical(key, values[key.name.lower()]) for key in keys)
    except ValueError as error:
        raise StorageError(str(error)) from None
