"""Lists that are asked for in parts: filtered, sorted, paged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from falcon_assets.errors import QueryError
from falcon_assets.model.expression import nearest

T = TypeVar("T")
MOST = 2**31 - 1
"""More items than a list has; databases take no number without an end."""

Fields: TypeAlias = "Mapping[str, Callable[[T], Iterable[str]]]"
"""Field -> the values that an item has in it; none where it has no such value."""

TAG = "tag"
"""The field that has several values at once, of which several can be asked for."""


@dataclass(frozen=True)
class Query:
    """Which items of a list are wanted.

    Attributes:
        filters: Field and value; of several with one field any may fit, of different fields all must; of several tags
            all must (source: Apache Falcon).
        sort: The field to sort by; with a '-' in front the other way round; None: the order of the definitions.
        offset: How many are left out at the beginning.
        limit: How many at most; None: all.
    """

    filters: tuple[tuple[str, str], ...] = ()
    sort: str | None = None
    offset: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        """Checks it.

        Raises:
            QueryError: no list has such a part.
        """
        require_part(self.offset, self.limit, least=0)


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list.

    Attributes:
        items: What is in this part.
        total: How many there are in all parts.
        next: The offset of the next part; None: this is the last one.
    """

    items: tuple[T, ...]
    total: int
    next: int | None

    def as_data(self, item: Callable[[T], Any]) -> dict[str, Any]:
        """What ``--json`` prints."""
        return {"items": [item(one) for one in self.items], "total": self.total, "next": self.next}


def require_part(offset: int, limit: int | None, *, least: int) -> None:
    """Checks which part of a list is asked for.

    Args:
        offset: How many are left out.
        limit: How many at most; None: all.
        least: How many at least a part may have.

    Raises:
        QueryError: there is no such part.
    """
    if not 0 <= offset <= MOST:
        raise QueryError(f"offset {offset} is none from 0 to {MOST}")
    if limit is not None and not least <= limit <= MOST:
        raise QueryError(f"limit {limit} is none from {least} to {MOST}")


def known_field(field: str, fields: Mapping[str, object]) -> str:
    """The field.

    Raises:
        QueryError: there is none of that name; the text lists the others.
    """
    if field not in fields:
        raise QueryError(f"there is no field {field!r}{nearest(field, fields)}; there is: {', '.join(fields)}")
    return field


def require_values(filters: Iterable[tuple[str, str]], known: Mapping[str, Collection[str]]) -> None:
    """Checks the values of fields that have only these.

    Raises:
        QueryError: there is no such value; the text lists the others.
    """
    for field, value in filters:
        if field in known and value.casefold() not in {one.casefold() for one in known[field]}:
            raise QueryError(f"there is no {field} {value!r}; there is: {', '.join(known[field])}")


def select(found: Sequence[T], query: Query, fields: Fields[T]) -> Page[T]:
    """The part of ``found`` that is asked for.

    Raises:
        QueryError: a field is not known.
    """
    wanted: dict[str, set[str]] = {}
    for field, value in query.filters:
        wanted.setdefault(known_field(field, fields), set()).add(value.casefold())
    fitting = [one for one in found if all(_fits(field, fields[field](one), own) for field, own in wanted.items())]
    if query.sort:
        key = fields[known_field(query.sort.removeprefix("-"), fields)]
        fitting.sort(key=lambda one: list(key(one)), reverse=query.sort.startswith("-"))
    end = len(fitting) if query.limit is None else query.offset + query.limit
    return Page(tuple(fitting[query.offset : end]), len(fitting), end if end < len(fitting) else None)


def _fits(field: str, values: Iterable[str], wanted: set[str]) -> bool:
    there = {value.casefold() for value in values}
    return wanted <= there if field == TAG else bool(wanted & there)
