"""Statements that move what tasks have loaded into the target, by the declared way of loading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from falcon_assets.model.transfer import UpsertLoad


@dataclass(frozen=True)
class RowMove:
    """A delivery in SQL.

    Attributes:
        quoted: How a name is written in SQL.
        table: The target, in SQL.
        columns: The names of the exported columns, and SQL that makes their values from those of staging tables.
        filled: The column that the export fills; ``moment`` is its value in SQL, ``until`` that of the next instance.
    """

    quoted: Callable[[str], str]
    load: str | UpsertLoad
    table: str
    columns: Sequence[tuple[str, str]]
    filled: str | None
    moment: str
    until: str

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which rows are replaced; empty: they are not replaced one by one."""
        return self.load.upsert.key if isinstance(self.load, UpsertLoad) else ()

    def statements(self, tables: Sequence[str]) -> Iterator[str]:
        """Yields them in order; ``tables`` hold the rows."""
        filled = self.quoted(self.filled or "")
        if self.load == "replace":
            yield f"DELETE FROM {self.table}"
        elif self.load == "insert":
            yield f"DELETE FROM {self.table} WHERE {filled} = {self.moment}"
        elif self.load == "replace_partition":
            yield f"DELETE FROM {self.table} WHERE {filled} >= {self.moment} AND {filled} < {self.until}"
        if tables:
            yield from self.inserts(tables)

    def inserts(self, tables: Sequence[str]) -> Iterator[str]:
        """Yields those that write the rows, in place of others with the same key."""
        names = [self.quoted(one) for one in self.names]
        target = f"INSERT INTO {self.table} AS own ({', '.join(names)})"
        yield f"{target} {self.rows(tables)}{self._on_conflict(names)}"

    @property
    def names(self) -> list[str]:
        """The columns that are written."""
        return [*(name for name, _ in self.columns), *([self.filled] if self.filled else [])]

    def rows(self, tables: Sequence[str]) -> str:
        """A query of the rows as the target has them."""
        values = [f"{value} AS {self.quoted(name)}" for name, value in self.columns]
        values += [f"{self.moment} AS {self.quoted(self.filled)}"] if self.filled else []
        # SQLite would take ON CONFLICT for the condition of a join otherwise.
        return " UNION ALL ".join(f"SELECT {', '.join(values)} FROM {table} WHERE true" for table in tables)

    def _on_conflict(self, names: Sequence[str]) -> str:
        if not self.key:
            return ""
        key = [self.quoted(one) for one in self.key]
        others = [f"{name} = EXCLUDED.{name}" for name in names if name not in key]
        target = f" ON CONFLICT ({', '.join(key)}) DO "
        if not others:
            return f"{target}NOTHING"
        filled = self.quoted(self.filled or "")
        newer = f" WHERE own.{filled} IS NULL OR own.{filled} <= EXCLUDED.{filled}" if self.filled else ""
        return f"{target}UPDATE SET {', '.join(others)}{newer}"  # what a newer instance has written stays
