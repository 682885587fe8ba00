"""What several colos answer to one question, as one answer; without I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from falcon_assets.features.entities.listing import Entity
from falcon_assets.features.entities.questions import ListEntities
from falcon_assets.instances.operations.questions import InstanceList, ShowGrid
from falcon_assets.instances.operations.selection import CommandResult
from falcon_assets.instances.views.grid import InstanceGrid
from falcon_assets.instances.views.query import FeedInstanceInfo, InstanceInfo, InstancePage, InstanceQuery
from falcon_assets.operations.operation import Operation, Result
from falcon_assets.operations.paging import ListOperation, Page, select


def asked_of_each(asked: Operation, now: datetime) -> Operation:
    """What each colo is asked, so that the answers can be merged: lists from their beginning, or whole.

    ``now``: by the clock of the front, as those of colos differ.
    """
    if isinstance(asked, ShowGrid):
        return asked if asked.start or asked.end else asked.model_copy(update={"end": now})
    if not isinstance(asked, ListOperation):
        return asked
    if _can_select(asked):
        return asked.model_copy(update={"offset": 0, "limit": None})
    return asked.model_copy(update={"offset": 0, "limit": asked.limit and asked.offset + asked.limit})


def merged(asked: Operation, answers: Mapping[str, Any]) -> Any:
    """Merges answers of colos, in their order.

    Lists are put together, in the order that was asked for, an entity that several have once. Of what cannot be put
    together the first counts.
    """
    found = [*answers.values()]
    first = found[0]
    if isinstance(first, InstancePage) and isinstance(asked, InstanceList):
        return _instances(asked.query, found)
    if isinstance(first, InstanceGrid) and isinstance(asked, ShowGrid):
        return _grid(asked.query, found)
    if isinstance(first, Page):
        return _page(asked, found)
    if len(found) == 1:
        return first
    if isinstance(first, CommandResult):
        items, notes = (tuple(item for one in found for item in getattr(one, name)) for name in ("items", "notes"))
        return replace(first, items=items, notes=tuple(dict.fromkeys(notes)))
    return [item for one in found for item in one] if isinstance(first, list) else first


def _instances(query: InstanceQuery, pages: Sequence[InstancePage]) -> InstancePage:
    """They are in the same order in each colo, and none is in two, as clusters are not."""

    def order(one: InstanceInfo | FeedInstanceInfo) -> Any:
        key = (one.entity, one.cluster, one.instance)
        if query.by_time:
            return one.instance, *key
        return (query.value(one), *key) if query.by_value and isinstance(one, InstanceInfo) else key

    items = sorted((one for page in pages for one in page.items), key=order, reverse=query.descending)
    shown = tuple(items[: query.limit])
    more = shown and (len(items) > len(shown) or any(page.next is not None for page in pages))
    last = shown[-1] if more else None
    record = last if isinstance(last, InstanceInfo) else None
    following = query.token((last.entity, last.cluster, last.instance), record) if last else None
    total = None if query.uncounted else sum(page.total or 0 for page in pages)
    return InstancePage(shown, total, following)


def _grid(query: InstanceQuery, grids: Sequence[InstanceGrid]) -> InstanceGrid:
    rows = sorted((row for one in grids for row in one.items), key=lambda row: (row.entity, row.cluster))
    shown, first = tuple(rows[: query.limit]), grids[0]
    is_more = shown and (len(rows) > len(shown) or any(one.next is not None for one in grids))
    following = query.token((shown[-1].entity, shown[-1].cluster, first.start)) if is_more else None
    return replace(first, items=shown, total=sum(one.total for one in grids), next=following)


_ONCE = ("flow list",)
"""Lists of what all colos have, by name."""
_ORDERS = {"sla alerts": "-deadline", "sla pending": "deadline"}
"""How lists are sorted where nothing else is asked for."""


def _page(asked: Operation, pages: Sequence[Page[Any]]) -> Page[Any]:
    """Of a page that has more than its items, what it has of each cluster is put together, too."""
    first, found = pages[0], _items(asked, pages)
    if type(first) is Page:
        return found
    own = {one.name: getattr(first, one.name) for one in fields(first)}
    more = {
        name: {key: one for page in pages for key, one in getattr(page, name).items()}
        for name, value in own.items()
        if isinstance(value, Mapping)
    }
    return replace(first, items=found.items, total=found.total, next=found.next, **more)


def _items(asked: Operation, pages: Sequence[Page[Any]]) -> Page[Any]:
    items: dict[Any, Any] = {}
    for number, one in enumerate(item for page in pages for item in page.items):
        key = (one.kind, one.name) if isinstance(one, Entity) else one.name if asked.command in _ONCE else number
        items.setdefault(key, one)
    order = asked.sort or _ORDERS.get(asked.command) if isinstance(asked, ListOperation) else None
    if order and not _can_select(asked):  # type: ignore[arg-type]  # it is a list
        field = order.removeprefix("-")
        found = sorted(items.values(), key=lambda one: str(getattr(one, field, "")), reverse=order.startswith("-"))
        items = dict(enumerate(found))
    if isinstance(asked, ListOperation) and _can_select(asked):
        return select([*items.values()], asked.query, asked.fields)  # type: ignore[arg-type]  # of its items
    if not isinstance(asked, ListOperation):
        return Page(tuple(items.values()), len(items), None)
    total = sum(page.total for page in pages)
    end = asked.offset + asked.limit if asked.limit else len(items)
    return Page(tuple(items.values())[asked.offset : end], total, end if end < total and asked.limit else None)


@dataclass(frozen=True)
class MergedData(Result):
    """A list whose items are data already."""

    data: dict[str, Any]

    def as_data(self) -> dict[str, Any]:
        return self.data


def merged_data(asked: ListEntities, pages: Sequence[Mapping[str, Any]]) -> MergedData:
    """As :func:`merged`, of data of whole lists: reading thousands of definitions as such takes ten times as long."""
    items: dict[Any, Mapping[str, Any]] = {}
    for one in (item for page in pages for item in page["items"]):
        items.setdefault((one["kind"], one["name"]), one)
    found = [*items.values()]
    if asked.sort:
        field = asked.sort.removeprefix("-")
        found.sort(key=lambda one: _values(one, field), reverse=asked.sort.startswith("-"))
    end = len(found) if asked.limit is None else asked.offset + asked.limit
    following = end if end < len(found) else None
    return MergedData({"items": found[asked.offset : end], "total": len(found), "next": following})


def _values(one: Mapping[str, Any], field: str) -> list[str]:
    """What an entity is sorted by."""
    found = one.get(field, one.get(f"{field}s"))
    if isinstance(found, Mapping):
        return [text for name, value in found.items() for text in (name, f"{name}={value}")]
    return [found] if isinstance(found, str) else list(found or ())


def _can_select(asked: ListOperation) -> bool:
    """Whether the list can be filtered and sorted here."""
    return all(callable(one) for one in asked.fields.values()) and asked.orders is None
