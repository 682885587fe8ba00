"""Values of partition keys, which are written as texts: numbers and dates have many spellings.

Catalogs get one of them, :func:`canonical`; instances have that of their URI.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from falcon_assets.storage.tables.catalog import Column, Values

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""Null, as Hive and Spark write it."""
_WHOLE = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_NUMBER = re.compile(r"[+-]?[0-9]+")
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})-([0-9]{1,2})|([0-9]{2})([0-9]{2}))")
_SHORT = re.compile(r"(?:var)?char\(([0-9]+)\)")
_TEXTS = ("string", "boolean", "date", *_WHOLE)


def canonical(key: Column, text: str) -> str:
    """Returns ``5`` for ``05`` of an int, ``2024-01-01`` for ``20240101`` of a date; ValueError: no such value."""
    if text == NO_VALUE:
        return text
    wrong = f"{key.name} is {key.type} in the table, and {text!r} is none"
    if bits := _WHOLE.get(key.type):
        if not _NUMBER.fullmatch(text) or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
            raise ValueError(wrong)
        return str(int(text))
    if key.type == "date":
        found = _DATE.fullmatch(text)
        try:
            return str(date(*(int(field) for field in found.groups() if field))) if found else _refuse(wrong)
        except ValueError:
            raise ValueError(wrong) from None
    if key.type == "boolean":
        return text.lower() if text.lower() in ("true", "false") else _refuse(wrong)
    if (short := _SHORT.fullmatch(key.type)) and len(text) > int(short[1]):
        raise ValueError(f"{wrong}: it has {len(text)} characters")
    return text


def same(keys: Sequence[Column], values: Values) -> Values:
    """Returns the values in canonical spelling; those that are not of their type stay unchanged."""
    return tuple(_or_itself(key, text) for key, text in zip(keys, values, strict=True))


def spelled(key: Column, text: str, like: str) -> str:
    """Spells a canonical value as another instance of the feed does: times in a URI have fixed lengths."""
    if key.type in _WHOLE:
        return like if _or_itself(key, like) == text else text.zfill(len(like))
    if key.type == "date" and like.isdigit():
        return text.replace("-", "")
    return like if _or_itself(key, like) == text else text


def has_spellings(key: Column) -> bool:
    return key.type in (*_WHOLE, "date", "boolean")


def why_not_written(key: Column) -> str | None:
    """Returns why equal values of the key cannot be recognized; None: they can."""
    if key.type in _TEXTS or _SHORT.fullmatch(key.type):
        return None
    return f"partitioned by {key.name}, a {key.type}: only texts, whole numbers and dates are written"


def _or_itself(key: Column, text: str) -> str:
    try:
        return canonical(key, text)
    except ValueError:
        return text


def _refuse(wrong: str) -> str:
    raise ValueError(wrong)
