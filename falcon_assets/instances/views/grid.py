"""Instances as a grid: a row for each entity and cluster, a column for each step of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, NamedTuple

from sqlalchemy import Connection, text

from falcon_assets.catalog.store import EntityStore
from falcon_assets.errors import QueryError
from falcon_assets.instances.store.instance_pages import Span
from falcon_assets.instances.views.asked import asked_for
from falcon_assets.instances.views.due import Asked, counted
from falcon_assets.instances.views.listing import readable, rows_of
from falcon_assets.instances.views.query import FIELDS, InstanceQuery, State
from falcon_assets.model.instant import Instant
from falcon_assets.model.process import Process
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Result
from falcon_assets.operations.paging import TAG
from falcon_assets.planning.instance_record import FeedState, InstanceState

GRID_FIELDS = {**FIELDS, **dict.fromkeys((TAG, "pipeline"))}
MOST_STEPS = 2_000
SHAPES: Mapping[State, str] = {
    InstanceState.FAILED: "✖",
    InstanceState.TIMED_OUT: "◔",
    InstanceState.KILLED: "⊘",
    FeedState.MISSING: "✖",
    InstanceState.RUNNING: "▶",
    InstanceState.READY: "◆",
    InstanceState.WAITING: "○",
    FeedState.PENDING: "○",
    InstanceState.SUSPENDED: "‖",
    InstanceState.SKIPPED: "»",
    FeedState.EVICTED: "▫",
    InstanceState.SUCCEEDED: "●",
    FeedState.AVAILABLE: "●",
}
"""The sign of each state, so that nobody needs to tell colours apart; of several in one cell the first counts."""
_RANK = {state.value: rank for rank, state in enumerate(SHAPES)}


class GridRun(NamedTuple):
    """Cells of one state, side by side.

    Attributes:
        step: The first one, from 0.
        steps: How many.
        instances: How many they are of; cells with several have the state that matters most.
    """

    state: State
    step: int
    steps: int
    instances: int


@dataclass(frozen=True)
class GridRow(Result):
    entity: str
    kind: str
    cluster: str
    runs: tuple[GridRun, ...]
    keys: ClassVar[tuple[str, ...]] = ("entity", "kind", "cluster", "runs=said")

    @property
    def said(self) -> list[dict[str, Any]]:
        return [{**one._asdict(), "state": one.state.value} for one in self.runs]


@dataclass(frozen=True)
class InstanceGrid(Result):
    """Rows of ``steps`` cells; ``total`` counts the rows of all pages, ``next`` is for ``after``, None: the last page.

    Attributes:
        start: The beginning of the first step.
        step_seconds: The length of a step.
    """

    start: Instant
    step_seconds: int
    steps: int
    items: tuple[GridRow, ...]
    total: int
    next: str | None

    def at(self, step: int) -> datetime:
        """The beginning of a step."""
        return self.start + timedelta(seconds=step * self.step_seconds)


def instance_grid(
    installation: Installation, query: InstanceQuery, start: datetime, step: timedelta, steps: int
) -> InstanceGrid:
    """Returns the rows of entities that the user may read; raises as :func:`.list_instances`.

    ``query`` says which entities, and with states those that have such an instance; its times are ignored.
    """
    if not 1 <= steps <= MOST_STEPS:
        raise QueryError(f"there may be 1 to {MOST_STEPS:,} steps, not {steps:,}: take a longer step or a shorter time")
    query = replace(query, start=start, end=start + steps * step - timedelta(microseconds=1))
    store = installation.all_entities.in_colo(query.colo) if query.colo else installation.entities
    now, rows, states, after = installation.settings.now(), rows_of(query), query.states, query.after_key
    with installation.tables_caught_up().begin() as connection:
        asked = asked_for(connection, store, query, now)
        asked = [one for one in asked if _is_wanted(query, store, one) and _is_there(one)]
        asked = readable(installation, store, query, asked)
        if states is not None:
            there = counted(connection, rows, asked, states)
            asked = [one for one in asked if there.get(one.key)]
        asked.sort(key=lambda one: one.key)
        rest = [one for one in asked if after is None or one.key > after[:2]]
        shown = rest[: query.limit]
        cells = _cells(connection, query, shown, start, step)
    items = tuple(
        GridRow(one.key[0], one.kind, one.key[1], tuple(_runs(cells.get(one.key, {}), rows.states))) for one in shown
    )
    following = query.token((*shown[-1].key, start)) if len(rest) > len(shown) else None
    return InstanceGrid(start, int(step.total_seconds()), steps, items, len(asked), following)


def _is_wanted(query: InstanceQuery, store: EntityStore, one: Asked) -> bool:
    tags = {value.casefold() for field, value in query.filters if field == TAG}
    pipelines = {value.casefold() for field, value in query.filters if field == "pipeline"}
    if not (tags or pipelines):
        return True
    workload = None if one.kind == "feed" else store.workload(*one.key)
    entity = workload.entity if workload else store.feed(one.key[0])
    own = {text.casefold() for name, value in entity.tags.items() for text in (name, f"{name}={value}")}
    there = {name.casefold() for name in (entity.pipelines if isinstance(entity, Process) else ())}
    return tags <= own and (not pipelines or bool(pipelines & there))


def _is_there(one: Asked) -> bool:
    """Whether its timeline has an instance in the span."""
    return bool(one.timeline.count) and bool(one.timeline.indexes(one.span.first, one.span.last))


Cells = dict[int, tuple[str, int]]
"""Step -> the state that matters most, and the number of instances."""


def _cells(
    connection: Connection, query: InstanceQuery, asked: Sequence[Asked], start: datetime, step: timedelta
) -> dict[tuple[str, str], Cells]:
    found: dict[tuple[str, str], Cells] = {one.key: {} for one in asked}
    rows = rows_of(query)
    for entity, cluster, steps, states, numbers in _recorded(connection, query, asked, start, step):
        cells = found[entity, cluster]
        for at, state, number in zip(steps, states, numbers, strict=True):
            _add(cells, at, state, number)
    spans = [
        Span(*one.key, one.timeline.instance(indexes[0]), one.timeline.instance(indexes[-1]))
        for one in asked
        if (indexes := one.indexes)
    ]
    there = rows.instants_in(connection, spans)
    for one in asked:
        state, cells, own = one.without_row.value, found[one.key], there.get(one.key, set())
        for nominal in dict.fromkeys(map(one.timeline.instance, one.indexes)):
            if nominal not in own:
                _add(cells, (nominal - start) // step, state, 1)
    return found


def _add(cells: Cells, at: int, state: str, number: int) -> None:
    known = cells.get(at)
    if known is None:
        cells[at] = state, number
    else:
        cells[at] = min(known[0], state, key=_RANK.__getitem__), known[1] + number


_STATEMENT = """\
SELECT asked.entity, asked.cluster, found.steps, found.states, found.numbers
FROM unnest(CAST(:entities AS text[]), CAST(:clusters AS text[])) AS asked (entity, cluster), LATERAL (
    SELECT array_agg(step) AS steps, array_agg(state) AS states, array_agg(number) AS numbers FROM (
        SELECT CAST(floor(extract(epoch FROM {instant} - CAST(:start AS timestamptz)) / :seconds) AS integer) AS step,
               state, CAST(count(*) AS integer) AS number
        FROM {table} WHERE {entity} = asked.entity AND cluster = asked.cluster
                       AND {instant} >= CAST(:start AS timestamptz) AND {instant} <= CAST(:last AS timestamptz)
        GROUP BY 1, 2
    ) AS cells
) AS found
WHERE found.steps IS NOT NULL
"""


def _recorded(
    connection: Connection, query: InstanceQuery, asked: Sequence[Asked], start: datetime, step: timedelta
) -> Iterable[Any]:
    """By one statement, on the index, with an array for each row of the grid: there may be 100,000 cells."""
    rows = rows_of(query)
    statement = _STATEMENT.format(table=rows.table, entity=rows.entity.name, instant=rows.instant.name)
    values = {"start": start, "last": query.last, "seconds": step.total_seconds()}
    names = {"entities": [one.key[0] for one in asked], "clusters": [one.key[1] for one in asked]}
    return connection.execute(text(statement), {**values, **names}) if asked else ()


def _runs(cells: Cells, states: type[Any]) -> Iterator[GridRun]:
    run: GridRun | None = None
    known: dict[str, State] = {one.value: one for one in states}
    for at in sorted(cells):
        state, number = known[cells[at][0]], cells[at][1]
        if run is not None and run.state is state and at == run.step + run.steps:
            run = GridRun(state, run.step, run.steps + 1, run.instances + number)
            continue
        if run is not None:
            yield run
        run = GridRun(state, at, 1, number)
    if run is not None:
        yield run
