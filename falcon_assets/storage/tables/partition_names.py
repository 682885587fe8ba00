"""The names of partitions, as Hive and Spark have them: ``ds=2024-01-01/region=US``."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

from falcon_assets.storage.tables.catalog import Values

_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(1, 32)}
"""Source: Hive's ``FileUtils.charToEscape``."""


def partition_name(keys: Sequence[str], values: Values) -> str:
    return "/".join(f"{_escaped(key.lower())}={_escaped(value)}" for key, value in zip(keys, values, strict=True))


def values_of(name: str) -> Values:
    return tuple(unquote(step.partition("=")[2]) for step in name.split("/"))


def _escaped(text: str) -> str:
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)
