"""A shop: an hourly feed of orders, and a database that it is exported to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg2
import sqlalchemy
import yaml

from tests.builders import feed_yaml, on
from tests.world import World


@dataclass(frozen=True)
class Shop:
    """The database, asked by nothing of the product.

    Attributes:
        url: Of SQLAlchemy.
        schema: Where its tables are.
    """

    url: str
    schema: str = "public"

    def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Executes a statement, and returns its rows."""
        known = sqlalchemy.make_url(self.url)
        with closing(self._connection(known)) as connection, connection, connection.cursor() as cursor:
            cursor.execute(f"SET search_path = {self.schema}, public")
            cursor.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    @staticmethod
    def _connection(known: sqlalchemy.URL) -> Any:
        host = known.query.get("host") or known.host
        return psycopg2.connect(
            host=host, port=known.port, dbname=known.database, user=known.username, password=known.password
        )

    def fresh(self, *statements: str) -> None:
        """Drops all tables, and executes statements."""
        self.ask(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE; CREATE SCHEMA {self.schema}; {'; '.join(statements)}")

    @property
    def staging(self) -> list[str]:
        """Tables that deliveries have left."""
        named = "SELECT relname FROM pg_class WHERE relname LIKE 'falcon_staging%' AND relkind = 'r'"
        return [name for (name,) in self.ask(named)]

    @property
    def deliveries(self) -> list[tuple[Any, ...]]:
        """The hour and the number of rows of each, in their order."""
        asked = (
            "SELECT extract(hour FROM instance AT TIME ZONE 'UTC')::int, rows FROM falcon_deliveries ORDER BY number"
        )
        return self.ask(asked)


def datasource_yaml(url: str, name: str = "shop", **more: Any) -> str:
    """A document with the database of a URL of SQLAlchemy; its password is in ``SHOP_PASSWORD``."""
    known = sqlalchemy.make_url(url)
    endpoint = (
        known._replace(drivername="postgresql", username=None, password=None).render_as_string().replace("+", "%20")
    )
    credential = {"user": known.username, **({"password": {"env": "SHOP_PASSWORD"}} if known.password else {})}
    interfaces = {"write": {"endpoint": endpoint, "credential": credential}}
    declared = {"kind": "datasource", "name": name, "type": "postgresql", "interfaces": interfaces, **more}
    return "---\n" + yaml.safe_dump(declared, sort_keys=False)


def export(table: str = "orders", to: str = "shop", **more: Any) -> dict[str, Any]:
    """An export of a feed to a table of a datasource."""
    return {"target": {"name": to, "table": table}, **more}


def orders_yaml(*exports: dict[str, Any], **overrides: Any) -> str:
    """The feed, in JSON, of which every hour has numbers, names and amounts."""
    schema = "id bigint, name string, amount decimal(12,2)"
    locations = {"data": "/orders/${YEAR}-${MONTH}-${DAY}-${HOUR}"}
    given = {"format": "json", "schema": schema, "availability_flag": "_SUCCESS", "locations": locations}
    given |= {"schedule": True} | overrides
    return feed_yaml("orders", on("primary", export=list(exports)), **given)


def land(world: World, hour: int, rows: Sequence[dict[str, Any]]) -> None:
    """An hour lands on ``primary``."""
    folder = world.folder("primary", "orders", hour)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "part.json").write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    (folder / "_SUCCESS").touch()
