"""What of a feed does not fit a table that it is delivered to, and the statements that change that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Generic, Protocol, TypeVar
from zoneinfo import ZoneInfo

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.datasource_type import WriteRequest
from falcon_assets.model.instant import format_instant
from falcon_assets.model.transfer import UpsertLoad


class KnownColumn(Protocol):
    """A column of a target.

    Attributes:
        type: As its database writes it.
        is_filled: Whether it has a value where none is given.
        is_generated: Whether none may be given.
    """

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def is_required(self) -> bool: ...
    @property
    def is_filled(self) -> bool: ...
    @property
    def is_generated(self) -> bool: ...


C = TypeVar("C", bound=KnownColumn)


@dataclass(frozen=True)
class TargetDialect(Generic[C]):
    """What a database says about its columns.

    Attributes:
        quoted: How a name is written in SQL.
        fits: Whether all values of a Spark type get into a column as they are.
        natural_type: The type that holds all values of a Spark type, which can be that of a key.
        change: What follows ALTER TABLE to change the type of ``{name}`` to ``{type}``; empty: nothing does.
        unique: The statement that makes an index ``{index}`` of the columns ``{names}`` of ``{table}``.
        time_type: The type of a column with the times of instances.
        zone_of: The time zone of what such a column holds, ``date`` of one with dates, None of one with instants;
            KeyError: it cannot hold times.
    """

    quoted: Callable[[str], str]
    fits: Callable[[str, C], bool]
    natural_type: Callable[[str, bool], str]
    change: str
    unique: str
    time_type: str
    zone_of: Callable[[C], str | None]

    def require_fit(
        self,
        request: WriteRequest,
        columns: Sequence[C],
        unique: Callable[[], Collection[Collection[str]]],
        table: str,
        shown: str,
    ) -> None:
        """Raises DatasourceError with all that does not fit ``table``, in SQL, which is ``shown`` to people.

        ``unique`` has the columns of each unique index.
        """
        if problems := [*self._misfits(request, columns, table), *self._problems_of_load(request, unique, table)]:
            raise DatasourceError(f"{request.feed} cannot be delivered to {shown}: {'; '.join(problems)}")

    def created(self, table: str, request: WriteRequest) -> str:
        """The statement that creates a table for what is delivered."""
        load, filled = request.declared.load, request.declared.partition
        key = load.upsert.key if isinstance(load, UpsertLoad) else ()
        own = [f"{self.quoted(name)} {self.natural_type(kind, name in key)}" for name, kind in request.columns]
        own += [f"{self.quoted(filled)} {self.time_type} NOT NULL"] if filled else []
        own += [f"PRIMARY KEY ({', '.join(map(self.quoted, key))})"] if key else []
        return f"CREATE TABLE {table} ({', '.join(own)})"

    def moment(self, column: C | None, instance: datetime, zone: str) -> datetime | date:
        """The time of an instance as its column has it; a date is one in ``zone``."""
        of_column = self.zone_of(column) if column is not None else None
        if of_column == "date":
            return instance.astimezone(ZoneInfo(zone)).date()
        return instance.astimezone(UTC).replace(tzinfo=None) if of_column else instance

    def _misfits(self, request: WriteRequest, target: Sequence[C], table: str) -> Iterator[str]:
        known, filled = {one.name: one for one in target}, request.declared.partition
        for name, spark_type in request.columns:
            if problem := self._misfit(name, spark_type, known, filled, f"ALTER TABLE {table}"):
                yield f"{problem}, or leave it out (fields: {{exclude: [{name}]}})"
        if filled and filled not in known:
            column = f"{self.quoted(filled)} {self.time_type}"
            yield f"{filled}, which the export fills, is not in the table: ALTER TABLE {table} ADD COLUMN {column}"
        elif filled:
            yield from self._problems_of_time(request, known[filled])
        given = {*dict(request.columns), filled}
        for one in target:
            if one.is_required and not one.is_filled and one.name not in given:
                yield f"{one.name} {one.type} must not be null, and is not exported: give it a default, or export it"

    def _misfit(self, name: str, spark_type: str, known: Mapping[str, C], filled: str | None, alter: str) -> str | None:
        there = known.get(name)
        if name == filled:
            return f"{name} is filled by the export, with the time of the instance: rename it in the feed"
        if there is None:
            other = next((one for one in known if one.lower() == name.lower()), None)
            same = f" (there is {other}: upper and lower case count)" if other else ""
            add = f"{alter} ADD COLUMN {self.quoted(name)} {self.natural_type(spark_type, False)}"
            return f"{name} {spark_type} is not in the table{same}: {add}"
        if there.is_generated:
            return f"{name} is generated by the table: rename it in the feed"
        if self.fits(spark_type, there):
            return None
        natural = self.natural_type(spark_type, False)
        change = self.change.format(name=self.quoted(name), type=natural)
        does_not = f"{there.type} in the table, which does not hold all of its values"
        what = f"{name} is {spark_type} in the feed and {does_not}"
        return f"{what}: {alter} {change}" if change else f"{what} as they are: make it {natural}"

    def _problems_of_time(self, request: WriteRequest, filled: C) -> Iterator[str]:
        try:
            zone = self.zone_of(filled)
        except KeyError:
            yield f"{filled.name}, which the export fills, is {filled.type}, and has to be a timestamp or a date"
            return
        if zone == "date" and request.start.astimezone(ZoneInfo(request.timezone)).time() != time():
            instance = format_instant(request.start)
            short = self.time_type.replace("timestamp with time zone", "timestamptz")
            yield f"{filled.name} is a date, and {instance} is no midnight in {request.timezone}: make it {short}"

    def _problems_of_load(
        self, request: WriteRequest, unique: Callable[[], Collection[Collection[str]]], table: str
    ) -> Iterator[str]:
        declared = request.declared
        if not isinstance(declared.load, UpsertLoad):
            if declared.load in ("insert", "replace_partition") and declared.partition is None:
                needs = f"load: {declared.load} needs partition"
                yield f"{needs}: the column of the table that has the time of the instance"
            return
        key = declared.load.upsert.key
        if missing := [one for one in key if one not in {*dict(request.columns), declared.partition}]:
            yield f"{', '.join(missing)} of the key is not exported"
        elif set(key) not in [set(columns) for columns in unique()]:
            names = ", ".join(map(self.quoted, key))
            create = self.unique.format(index=self.quoted("_".join((*key, "key"))), table=table, names=names)
            yield f"load: upsert needs a unique index on {', '.join(key)}, as the database finds rows by it: {create}"
