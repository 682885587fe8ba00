"""Schema and types of the ledger's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, get_args, get_origin, get_type_hints

from sqlalchemy import JSON, BigInteger, Boolean, Column, DateTime, Integer, MetaData, Text
from sqlalchemy.dialects.postgresql import JSONB

SCHEMA = "falcon"
METADATA = MetaData(schema=SCHEMA)
INSTANT = DateTime(timezone=True)
_TYPES: Mapping[Any, Any] = {bool: Boolean, int: BigInteger, datetime: INSTANT}
_TYPES_OF: Mapping[str, Any] = {
    **dict.fromkeys(
        (
            *("attempt", "failures", "definition", "deaths", "changes"),
            *("cores", "free_cores", "waiting", "own_cores"),
        ),
        Integer,
    ),
    "reason_data": JSON(none_as_null=True),
    "run": JSONB(none_as_null=True),
}
_DEFAULTS = {"deaths": "0", "provisioned": "false"}


def columns_of(record: type[Any], *key: str, **names: str | None) -> Iterator[Column[Any]]:
    """Yields a column for each field of a dataclass; a plain text in its annotation is the comment.

    ``names`` are those of columns that have another one; None: there is none.
    """
    plain, annotated = get_type_hints(record), get_type_hints(record, include_extras=True)
    for field in fields(record):
        if (name := names.get(field.name, field.name)) is None:
            continue
        hint = plain[field.name]
        kind = next(iter(get_args(hint) or (hint,)))
        comments = (one for one in getattr(annotated[field.name], "__metadata__", ()) if isinstance(one, str))
        yield Column(
            name,
            _TYPES_OF.get(name, _TYPES.get(kind, Text)),
            primary_key=name in key,
            nullable=get_origin(hint) is tuple or type(None) in get_args(hint),
            comment=next(comments, None),
            server_default=_DEFAULTS.get(name),
        )
