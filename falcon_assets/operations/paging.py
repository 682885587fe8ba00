"""Lists in pages: filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeAlias, TypeVar

from falcon_assets.errors import QueryError
from falcon_assets.model.expression import nearest
from falcon_assets.operations.operation import Operation, Result

T = TypeVar("T")
MOST = 2**31 - 1

Fields: TypeAlias = "Mapping[str, Callable[[T], Iterable[str]]]"

TAG = "tag"
"""The field with several values at once."""


@dataclass(frozen=True)
class Query:
    """Filters, sorts and pages a list.

    Of several ``filters`` with one field any may fit, of different fields all must; of several tags all must (source:
    Apache Falcon). ``sort`` None is the order of the definitions, '-' in front reverses. ``limit`` None: all.
    """

    filters: tuple[tuple[str, str], ...] = ()
    sort: str | None = None
    offset: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        require_part(self.offset, self.limit, least=0)


@dataclass(frozen=True)
class Page(Result, Generic[T]):
    """``total`` counts all pages; ``next`` is the next offset, None: this is the last page."""

    items: Sequence[T]
    total: int
    next: int | None


class ListOperation(Operation):
    """An operation that lists in pages, filtered and sorted."""

    fields: ClassVar[Mapping[str, object]]
    orders: ClassVar[Mapping[str, object] | None] = None
    """None: :attr:`fields`."""
    filters: tuple[tuple[str, str], ...] = ()
    sort: str | None = None
    offset: int = 0
    limit: int | None = None

    @property
    def query(self) -> Query:
        return Query(self.filters, self.sort, self.offset, self.limit)

    def query_with(self, **more: str | None) -> Query:
        """The query with filters for what is given besides."""
        return replace(self.query, filters=(*self.filters, *((name, one) for name, one in more.items() if one)))


class LongList(Operation):
    """An operation that lists what is too long to be counted through: after each part there is a next one."""

    fields: ClassVar[Mapping[str, object]]
    orders: ClassVar[Mapping[str, object]]
    filters: tuple[tuple[str, str], ...] = ()
    sort: str
    after: str | None = None
    limit: int = 100


def require_part(offset: int, limit: int | None, *, least: int) -> None:
    if not 0 <= offset <= MOST:
        raise QueryError(f"offset {offset} must be from 0 to {MOST}")
    if limit is not None and not least <= limit <= MOST:
        raise QueryError(f"limit {limit} must be from {least} to {MOST}")


def known_field(field: str, fields: Mapping[str, object]) -> str:
    """Raises QueryError, naming the known fields."""
    if field not in fields:
        raise QueryError(f"there is no field {field!r}{nearest(field, fields)}; there is: {', '.join(fields)}")
    return field


def require_values(filters: Iterable[tuple[str, str]], known: Mapping[str, Collection[str]]) -> None:
    """Raises QueryError, naming the known values."""
    for field, value in filters:
        if field in known and value.casefold() not in {one.casefold() for one in known[field]}:
            raise QueryError(f"there is no {field} {value!r}; there is: {', '.join(known[field])}")


def select(found: Sequence[T], query: Query, fields: Fields[T]) -> Page[T]:
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
