"""The URI of a table of a catalog, and which partitions of it an instance is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from falcon_assets.errors import ExpressionError

ANY = "*"
"""As the value of a partition key: every value that there is."""
_SCHEME = "catalog:"


@dataclass(frozen=True)
class TableUri:
    """``catalog:database:table#key=value;key=value``, a template or filled in; without ``#`` where it has no keys.

    Attributes:
        database: Name of the database, or namespace.
        table: Name of the table in it.
        keys: Partition key and its value, in the order in which they are written.
    """

    database: str
    table: str
    keys: tuple[tuple[str, str], ...]

    @classmethod
    def parse(cls, text: str) -> TableUri:
        """Reads a URI.

        Raises:
            ExpressionError: it has another form, or a key twice, or one without a value.
        """
        name, hash_, spec = text.removeprefix(_SCHEME).partition("#")
        database, colon, table = name.partition(":")
        if not (text.startswith(_SCHEME) and colon and database and table):
            raise ExpressionError(f"{text!r}: write catalog:database:table#key=value;key=value")
        keys: dict[str, str] = {}
        for part in spec.split(";") if hash_ else ():
            key, equals, value = part.partition("=")
            if not (key and equals and value):
                raise ExpressionError(f"{text!r}: {part!r} is not of the form key=value")
            if key.lower() in (other.lower() for other in keys):
                raise ExpressionError(f"{text!r}: the partition key {key!r} is there twice")
            keys[key] = value
        return cls(database, table, tuple(keys.items()))

    def __str__(self) -> str:
        keys = ";".join(f"{key}={value}" for key, value in self.keys)
        return f"{_SCHEME}{self.database}:{self.table}{'#' if keys else ''}{keys}"

    @staticmethod
    def is_one(path: str) -> bool:
        """Whether the path of an instance is such a URI, and none of files."""
        return path.startswith(_SCHEME)

    @property
    def name(self) -> str:
        """``database.table``, as people write it."""
        return f"{self.database}.{self.table}"

    @property
    def fixed(self) -> dict[str, str]:
        """The keys that have one value, in lower case, and that value."""
        return {key.lower(): value for key, value in self.keys if value != ANY}

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole table, whatever is in it."""
        return not self.fixed

    @property
    def open_keys(self) -> tuple[str, ...]:
        """The keys of which it has every value."""
        return tuple(key for key, value in self.keys if value == ANY)

    def of(self, keys: Sequence[str], values: Sequence[str]) -> TableUri:
        """The URI of the instance that a partition belongs to, if this is the URI of its feed.

        Args:
            keys: The partition keys of the table.
            values: Those of the partition.
        """
        found = dict(zip((key.lower() for key in keys), values, strict=True))
        return TableUri(
            self.database,
            self.table,
            tuple((key, ANY if value == ANY else found[key.lower()]) for key, value in self.keys),
        )

    def differs_from(self, keys: Sequence[str]) -> str | None:
        """Returns how the partition keys of the URI differ from those of the table; None: they do not.

        Args:
            keys: The partition keys of the table.
        """
        own, there = {key.lower() for key, _ in self.keys}, [key.lower() for key in keys]
        if missing := [key for key in there if key not in own]:
            return f"it is also partitioned by {', '.join(missing)}: add {';'.join(f'{key}=*' for key in missing)}"
        if unknown := sorted(own - set(there)):
            by = f"partitioned by {', '.join(there)}" if there else "not partitioned"
            return f"it is {by}, not by {', '.join(unknown)}"
        return None
