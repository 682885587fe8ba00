"""Queries of imports, in which times are bound."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from sqlglot import TokenError
from sqlglot.dialects.dialect import Dialect

from falcon_assets.errors import DatasourceError


def bound(query: str, dialect: str, values: Mapping[str, str]) -> str:
    """Returns the query with a literal for each ``:name`` of ``values``, without a semicolon at its end.

    What stands in texts, quoted names and comments stays.

    Raises:
        DatasourceError: it is not a single statement.
    """
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(query)
    except TokenError as error:
        raise DatasourceError(f"the query cannot be read: {error}") from None
    while tokens and tokens[-1].token_type.name == "SEMICOLON":
        query = query[: tokens.pop().start]
    if any(one.token_type.name == "SEMICOLON" for one in tokens):
        raise DatasourceError("the query must be a single statement")
    for colon, name in reversed([*pairwise(tokens)]):
        if colon.token_type.name == "COLON" and name.start == colon.end + 1 and name.text.lower() in values:
            query = f"{query[: colon.start]}{values[name.text.lower()]}{query[name.end + 1 :]}"
    return query
