"""Links to the pages of the front: an operation with a page has the same link everywhere.

The parameters of a link are the fields of the operation, and its filters, by their names: names with any characters are
quoted there, and a page reads the operation back from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, TypeVar, get_origin
from urllib.parse import urlencode

from pydantic import ValidationError

from falcon_assets.errors import QueryError
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.operation import Operation, plain_type

PLACE = "/falcon"
"""Where the front serves the pages."""
T = TypeVar("T", bound=Operation)


def page_path(page: str, parameters: Iterable[tuple[str, Any]]) -> str:
    """The link to a page, without the address of the server; leaves out parameters that are None or empty."""
    said = [(name, _text(value)) for name, value in parameters if value not in (None, "", ())]
    query = urlencode(said, errors="surrogatepass")
    return f"{PLACE}/{page}" + (f"?{query}" if query else "")


def link_of(asked: Operation) -> str:
    """The link to the page of an operation, which has one."""
    return page_path(asked.page or "", _parameters(asked))


def read_back(operation: type[T], parameters: Sequence[tuple[str, str]], **more: Any) -> T:
    """The operation that a link is about; ignores parameters that it does not have.

    Raises:
        QueryError: a parameter is missing, or malformed.
    """
    fields, filters = operation.model_fields, getattr(operation, "fields", {})
    given: dict[str, list[str]] = {}
    for name, value in parameters:
        if value:
            given.setdefault(name, []).append(value)
    own: dict[str, Any] = {}
    for name, values in given.items():
        is_list = name in fields and get_origin(plain_type(fields[name].annotation)) is tuple
        if name in fields and (is_list or len(values) == 1 or name not in filters) and name not in ("filters", "actor"):
            own[name] = tuple(values) if is_list else values[-1]
        elif name in filters:
            own["filters"] = (*own.get("filters", ()), *((name, value) for value in values))
    try:
        return operation(**{**own, **more})
    except ValidationError as error:
        (first, *_) = error.errors()
        said = first["msg"].removeprefix("Value error, ")
        raise QueryError(f"{'.'.join(map(str, first['loc'])) or operation.command}: {said}") from error


def _parameters(asked: Operation) -> Iterator[tuple[str, Any]]:
    for name, field in type(asked).model_fields.items():
        value = getattr(asked, name)
        if name == "filters":
            yield from value
        elif isinstance(value, Mapping):
            continue
        elif isinstance(value, tuple):
            yield from ((name, one) for one in value)
        elif field.is_required() or value != field.default:
            yield name, value


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, bool):
        return "true" if value else ""
    return str(value.value if isinstance(value, Enum) else value)
