"""Imports into feeds from datasources, and exports of feeds to them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from falcon_assets.model.base import Declaration, EntityName, NonEmpty
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.process import ProcessSla, Retry

ColumnNames: TypeAlias = Annotated[tuple[NonEmpty, ...], Field(min_length=1)]


class SourceData(Declaration):
    """What is read, of which datasource; exactly one of ``table``, ``query``, ``path`` and ``topic``."""

    name: EntityName
    """Name of the datasource."""
    table: NonEmpty | None = None
    """A table or view of a database: ``orders``, ``sales.orders``; of an HTTP service, a resource: ``v1/orders``."""
    query: NonEmpty | None = None
    """A query of a database. ``:start`` and ``:end`` are the nominal times of the instance and of the next one, bound
    as parameters with a time zone."""
    path: NonEmpty | None = None
    """A folder, a file or a pattern (``*``) on a file server; may hold ``${YEAR}`` and the like."""
    topic: NonEmpty | None = None
    """A topic of a broker."""

    @property
    def what(self) -> str:
        """The table, path or topic, for people; ``a query``: there is none."""
        return self.table or self.path or self.topic or "a query"

    @model_validator(mode="after")
    def _one(self) -> SourceData:
        if sum(one is not None for one in (self.table, self.query, self.path, self.topic)) != 1:
            raise ValueError("needs exactly one of table, query, path and topic")
        return self


class Incremental(Declaration):
    """Extracts what was changed since the instance before."""

    column: NonEmpty
    """A column that grows with every change of a row: the time of the change, a version, or a growing key."""
    overlap: Frequency | None = None
    """How far before the last value of ``column``, a time, it is read again, because transactions end later than they
    start; with ``merge: {upsert: {key: [..]}}``. PostgreSQL needs none: there transactions themselves tell what is
    new."""


class IncrementalExtract(Declaration):
    """An extract of changes."""

    incremental: Incremental
    """Which changes."""


class Upsert(Declaration):
    """Rows replace those with the same key."""

    key: ColumnNames
    """The columns of the key."""


class UpsertMerge(Declaration):
    """A merge by key."""

    upsert: Upsert
    """Of several rows with one key the newest by the column of ``incremental`` stays."""


Extract: TypeAlias = Literal["full", "log-offsets"] | IncrementalExtract


class Fields(Declaration):
    """Columns to take: exactly one of the keys."""

    include: ColumnNames | None = None
    """These only, in this order."""
    exclude: ColumnNames | None = None
    """All but these."""

    @model_validator(mode="after")
    def _one(self) -> Fields:
        if (self.include is None) == (self.exclude is None):
            raise ValueError("needs include or exclude")
        return self

    def of(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Those of ``columns`` that are taken; names that are not among them are left out."""
        if self.include is not None:
            return tuple(one for one in self.include if one in columns)
        return tuple(one for one in columns if one not in (self.exclude or ()))


class _Policy(Declaration):
    delay: Frequency | None = None
    """How long after its nominal time an instance starts; omitted: at once."""
    at_once: Annotated[int, Field(ge=1, le=100, strict=True)] = 1
    """How many instances run at once; imports of changes run one after the other."""
    order: Literal["FIFO", "LIFO", "LAST_ONLY"] = "FIFO"
    """Which ready instance runs first: the oldest with ``FIFO``, else the newest; ``LAST_ONLY`` drops all but the
    newest."""
    retry: Retry = Retry()
    """How failed ones are tried again; omitted: three times, ten minutes apart."""
    sla: ProcessSla | None = None
    """When an instance should start and end; omitted: nobody is warned."""
    queue: EntityName | None = None
    """A queue of the location (``FALCON_QUEUES``); omitted: only ``at_once`` limits them."""


class ImportOptions(_Policy):
    """How a datasource is read."""

    extract: Extract = "full"
    """``full``: all of it, as it is then; ``incremental``: what changed since the instance before; ``log-offsets``: of
    a topic, the messages between the nominal times of the instance and of the next one."""
    merge: Literal["snapshot", "append"] | UpsertMerge = "append"
    """``append``: an instance holds what was extracted for it; ``snapshot``: likewise, and that is all of the source,
    so ``extract`` is ``full``; ``upsert``: an instance holds the rows of the instance before, in which those with the
    same key are replaced by what changed since."""
    fields: Fields | None = None
    """Which columns; omitted: all."""
    partition_by: NonEmpty | None = None
    """The column by whose ranges it is read in parallel; omitted: PostgreSQL: by pages of the table, others: by the
    primary key if it is a number, else not in parallel."""
    parallel: Annotated[int, Field(ge=1, le=1000, strict=True)] = 4
    """How many tasks read at once; not more than the datasource's ``throttle.connections`` at a time."""
    merge_schema: bool = False
    """true: new columns of the source follow by themselves; else they are an error that names them. Columns that
    changed their type or are gone are an error in any case."""

    @property
    def incremental(self) -> Incremental | None:
        """None: it does not depend on the instance before."""
        return self.extract.incremental if isinstance(self.extract, IncrementalExtract) else None

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which changes are merged into the instance before; empty: they are not."""
        return self.merge.upsert.key if isinstance(self.merge, UpsertMerge) else ()


class Import(ImportOptions):
    """How instances are made from a datasource."""

    source: SourceData
    """What is read."""

    @property
    def goes_on(self) -> bool:
        """Whether an instance begins where the one before ended."""
        return self.incremental is not None or self.extract == "log-offsets"

    @model_validator(mode="after")
    def _fits(self) -> Import:
        if self.merge == "snapshot" and self.extract != "full":
            raise ValueError("merge: snapshot is for extract: full; changes are merged by upsert, with a key")
        if isinstance(self.merge, UpsertMerge) and self.incremental is None:
            raise ValueError("merge: upsert is for an incremental extract")
        if self.incremental and self.incremental.overlap and not isinstance(self.merge, UpsertMerge):
            raise ValueError("overlap reads rows again, so it needs merge: {upsert: {key: [..]}}")
        if (self.extract == "log-offsets") != (self.source.topic is not None):
            raise ValueError("extract: log-offsets is for a topic, and a topic needs it")
        return self


class TargetData(Declaration):
    """What is written, of which datasource."""

    name: EntityName
    """Name of the datasource."""
    table: NonEmpty
    """A table of a database (``orders``, ``sales.orders``), a resource of an HTTP service, or a topic."""


class UpsertLoad(Declaration):
    """A load by key."""

    upsert: Upsert
    """Rows of the target with the same key are replaced."""


class ExportOptions(_Policy):
    """How a datasource is written."""

    load: Literal["insert", "replace_partition", "replace"] | UpsertLoad = "insert"
    """``insert``: rows are added, and a rerun of an instance replaces those that it added; ``upsert``: rows replace
    those with the same key; ``replace_partition``: an instance replaces the rows of its period, by ``partition``;
    ``replace``: the table holds the newest instance only."""
    partition: NonEmpty | None = None
    """The column of the target with the nominal time of the instance, which the export fills: a timestamp or a date.
    ``insert`` and ``replace_partition`` need it, as it tells what an instance wrote; with ``upsert``, rows that a newer
    instance has written stay."""
    fields: Fields | None = None
    """Which columns; omitted: all."""
    parallel: Annotated[int, Field(ge=1, le=1000, strict=True)] = 4
    """How many tasks write an instance at once; all instances of a run have not more than the datasource's
    ``throttle.connections``."""


class Export(ExportOptions):
    """How instances are delivered to a datasource."""

    target: TargetData
    """Where it is written."""


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else (value,)


Exports: TypeAlias = Annotated[tuple[Export, ...], BeforeValidator(_listed), Field(min_length=1)]
"""One export, or a list of them, each to another target."""
