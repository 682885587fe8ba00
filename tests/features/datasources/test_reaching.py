"""``falcon datasource test`` and the doctor, against real servers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
from click.testing import CliRunner, Result

from falcon_assets.doctor.all_checks import CHECKS
from falcon_assets.doctor.diagnosis import CheckContext
from falcon_assets.errors import DatasourceError
from falcon_assets.settings import load_settings
from falcon_assets.surface.cli.main import falcon
from tests.builders import cluster_yaml, datasource_yaml, feed_yaml, on
from tests.features.datasources.test_postgresql import access
from tests.mariadb_server import MariaDb
from tests.operations.rows import NOW

SECRET = "hunter22-of-the-shop"


def call(*words: str) -> Result:
    return CliRunner().invoke(falcon, ["datasource", "test", *words])


@pytest.fixture
def home(write_entities: Callable[[dict[str, str]], Path]) -> Path:
    """FALCON_HOME, with a database in a file that the datasource ``files`` has."""
    declared = {"type": "sqlite", "interfaces": {"write": {"endpoint": "sqlite:shop.db"}}}
    write_entities({"a.yaml": cluster_yaml() + datasource_yaml("files", **declared)})
    folder = load_settings().home
    with closing(sqlite3.connect(folder / "shop.db")) as connection:
        connection.executescript(
            "DROP TABLE IF EXISTS orders; DROP TABLE IF EXISTS sums;"
            "CREATE TABLE orders (id INTEGER NOT NULL, name TEXT); CREATE TABLE sums (n REAL)"
        )
    return folder


def test_tables_columns_and_types(home: Path) -> None:
    shown = call("files").output
    for cells in (("orders", "id", "integer", "bigint", "no"), ("orders", "name", "text", "string", "yes")):
        assert any(all(f" {cell} " in line for cell in cells) for line in shown.splitlines()), shown
    assert shown.endswith("files (sqlite) is reached by write: 2 tables\n")
    assert json.loads(call("files", "--table", "sums", "--json").output) == {
        "name": "files",
        "type": "sqlite",
        "interfaces": ["write"],
        "tables": [
            {
                "name": "sums",
                "columns": [{"name": "n", "source_type": "real", "spark_type": "double", "is_nullable": True}],
            }
        ],
    }


def test_what_is_wrong_is_a_sentence(home: Path) -> None:
    assert str(call("file").exception) == "there is no datasource 'file' (did you mean 'files'?)"
    assert str(call("files", "--table", "sum").exception) == "datasource 'files' has no table 'sum'; there is: sums"


def test_both_interfaces_are_reached_each_with_its_credential(
    database: str, write_entities: Callable[[dict[str, str]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = access(database)
    with psycopg2.connect(known.endpoint, user=known.user, password=known.password) as connection:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE orders (id int)")
        connection.commit()
    password = {"password": {"env": "SHOP_PASSWORD"}}
    readonly = {"endpoint": known.endpoint, "credential": {"user": known.user, **password}}
    write = {"endpoint": "postgresql://127.0.0.1:9/shop", "credential": {"user": "ann", **password}}
    text = datasource_yaml(interfaces={"readonly": readonly, "write": write})
    write_entities({"a.yaml": cluster_yaml() + text})
    assert "needs the environment variable SHOP_PASSWORD, which is not set" in str(call("shop").exception)
    monkeypatch.setenv("SHOP_PASSWORD", SECRET)
    refused = call("shop")
    assert isinstance(refused.exception, DatasourceError)
    assert "datasource 'shop' cannot be reached at postgresql://127.0.0.1:9/shop" in str(refused.exception)
    assert SECRET not in str(refused.exception) + refused.output
    write_entities({"a.yaml": cluster_yaml() + datasource_yaml(interfaces={"readonly": readonly})})
    assert call("shop", "--table", "orders").output.endswith("shop (postgresql) is reached by readonly: 1 table\n")


def test_the_doctor_reaches_those_that_are_needed_here(
    home: Path, mariadb: MariaDb, write_entities: Callable[[dict[str, str]], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said() -> list[tuple[str, str]]:
        found = CHECKS["datasources"](CheckContext(load_settings(), NOW))
        return [(one.status.value, one.text) for one in found]

    there = {"type": "mysql", "interfaces": {"readonly": {"endpoint": f"mysql://127.0.0.1:{mariadb.port}/mysql"}}}
    there["interfaces"]["readonly"]["credential"] = {"user": "root"}  # type: ignore[index]
    away = datasource_yaml("away", interfaces={"readonly": {"endpoint": "postgresql://127.0.0.1:9/shop"}}, colo="west")
    text = cluster_yaml(colo="east") + datasource_yaml("there", **there, colo="east") + away
    write_entities({"a.yaml": text})
    well = ("ok", "datasource 'there': interfaces.readonly is reached")
    found = said()
    assert [one for one in found if one[0] == "ok"] == [well]
    (problem,) = (text for status, text in found if status == "problem")
    assert problem.startswith("datasource 'away' cannot be reached at postgresql://127.0.0.1:9/shop: ")
    monkeypatch.setenv("FALCON_COLO", "east")
    assert said() == [well]
    needs_it = feed_yaml("orders", on("primary", **{"import": {"source": {"name": "away", "table": "x"}}}))
    write_entities({"a.yaml": text + needs_it})
    assert [status for status, _ in said()] == ["ok", "problem"]
    write_entities({"a.yaml": cluster_yaml(colo="east")})
    assert said() == [("ok", "no datasource is needed here")]
