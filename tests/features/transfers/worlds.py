"""Feeds that are imported from a database of the tests, and what they hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy
import yaml
from sqlalchemy import select

from falcon_assets.catalog.store import load_entities
from falcon_assets.history.platform.open_ledger import open_ledger
from falcon_assets.history.tables.transfers import TRANSFERS
from falcon_assets.settings import Settings
from tests.builders import cluster_yaml, feed_yaml
from tests.features.transfers.source import endpoint_of
from tests.world import World

PASSWORD = "sesam-17-ü"
"""Of the datasource; the servers of the tests ask for none."""


def datasource_yaml(url: str, name: str = "shop", **more: Any) -> str:
    """A document with the database as a datasource."""
    made = sqlalchemy.make_url(url)
    credential = {"user": made.username, "password": {"env": "SHOP_PASSWORD"}}
    interface = {"endpoint": endpoint_of(url), "credential": credential}
    declared = {"kind": "datasource", "name": name, "type": "postgresql", "interfaces": {"readonly": interface}}
    return "---\n" + yaml.safe_dump({**declared, **more}, sort_keys=False)


def imported(name: str = "orders", hours: int = 24, more: dict[str, Any] | None = None, **declared: Any) -> str:
    """A document with an hourly feed of so many hours that is imported as declared, from a table of its name."""
    source = {"name": "shop", "table": name}
    validity = {"start": "2013-01-01T00:00Z", "end": f"2013-01-0{1 + hours // 24}T{hours % 24:02}:00Z"}
    on = {"name": "primary", "validity": validity, "import": {"source": source, **declared}}
    data = {"data": f"/{name}/${{YEAR}}-${{MONTH}}-${{DAY}}-${{HOUR}}"}
    keys = {"schedule": True, "locations": data, "availability_flag": "_SUCCESS", **(more or {})}
    return feed_yaml(name, on, **keys)


@dataclass(frozen=True)
class ImportWorld(World):
    """A world with imports."""

    def table(self, feed: str, number: int) -> pa.Table:
        """What plain pyarrow reads of an hour."""
        return pq.read_table(self.folder("primary", feed, number), partitioning=None)

    def ids(self, feed: str, number: int) -> list[int]:
        """The ids of its rows, sorted."""
        return sorted(self.table(feed, number)["id"].to_pylist())

    def transfers(self, process: str = "orders import") -> dict[int, dict[str, Any]]:
        """What the ledger has of the imports, by hour."""
        return {row["nominal"].hour: row for row in self.all_transfers(process)}

    def all_transfers(self, process: str) -> list[dict[str, Any]]:
        """The same for all instances, oldest first."""
        self.ledger.catch_up()
        asked = select(TRANSFERS).where(TRANSFERS.c.process == process).order_by(TRANSFERS.c.nominal)
        with self.ledger.engine.connect() as connection:
            return [dict(row._mapping) for row in connection.execute(asked)]


def import_world(
    settings: Settings,
    instance: dg.DagsterInstance,
    write_entities: Callable[[dict[str, str]], Path],
    url: str,
    *feeds: str,
    cluster: str | None = None,
    **datasource: Any,
) -> ImportWorld:
    """A world with these feeds, on ``primary``."""
    everything = (cluster or cluster_yaml()) + datasource_yaml(url, **datasource) + "".join(feeds)
    store = load_entities(write_entities({"all.yaml": everything}))
    return ImportWorld(store, settings, instance, open_ledger(settings, instance))


@pytest.fixture(scope="module")
def shop_password() -> Any:
    """In the environment, where the datasource says that it is."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SHOP_PASSWORD", PASSWORD)
        yield
