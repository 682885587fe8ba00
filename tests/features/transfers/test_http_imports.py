"""Imports from a real HTTP service on loopback, which pages, asks for a login, and fails now and then."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq
import pytest

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access, access_to
from falcon_assets.features.datasources.datasource_type import datasource_types
from falcon_assets.model.datasource import DatasourceThrottle
from tests.builders import cluster_yaml, feed_yaml, on
from tests.world import MakeWorld, World

TOKEN = "t0ken-of-the-shop"
ORDERS = [
    {
        "id": number,
        "name": f"Größe {number}",
        "paid": number % 2 == 0,
        "price": number + 0.5,
        "at": None,
        "lines": [number],
    }
    for number in range(7)
]
EXACT = "id bigint, price decimal(10,2), at timestamp, lines array<int>, name string"
DATASOURCE = """---
kind: datasource
name: shop
type: http
interfaces: {{readonly: {{endpoint: '{url}', credential: {{token: {{env: SHOP_TOKEN}}}}}}}}
driver: {{paginator: json_link, next_url_path: next, data_selector: items}}
"""


class Service(ThreadingHTTPServer):
    """Orders in pages of three; each page fails once, and what was asked is kept."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.failed: set[str] = set()
        self.rows: list[dict[str, Any]] = ORDERS

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def log_message(self, *_: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer(401, {})
        elif self.path not in self.server.failed and "orders" in self.path:
            self.server.failed.add(self.path)
            self._answer(503, {})
        elif self.path.startswith("/api/orders"):
            self.server.asked.append(self.path)
            first = int(parse_qs(urlsplit(self.path).query).get("from_row", ["0"])[0])
            rows, following = self.server.rows[first : first + 3], first + 3
            more = f"{self.server.url}/orders?from_row={following}" if following < len(self.server.rows) else None
            self._answer(200, {"items": rows, "next": more})
        else:
            self._answer(404, {})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    found = Service()
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_TOKEN", TOKEN)
        yield found
    found.shutdown()
    found.server_close()
    thread.join()


@pytest.fixture(scope="module")
def world(service: Service, make_world: MakeWorld) -> World:
    named = {"source": {"name": "shop", "table": "orders"}}
    asked = {"source": {"name": "shop", "query": "orders?since=:start&before=:end"}}
    feeds = [
        feed_yaml("orders", on("primary", **{"import": named}), schedule=True),
        feed_yaml("exact", on("primary", **{"import": asked}), schema=EXACT, schedule=True),
    ]
    return make_world({"all.yaml": "".join([cluster_yaml(), DATASOURCE.format(url=service.url), *feeds])})


def rows(world: World, feed: str, number: int) -> list[dict[str, Any]]:
    return pq.read_table(world.settings.home / f"data/primary/{feed}/2013-01-01/{number:02}").to_pylist()


def test_all_pages_are_rows(service: Service, world: World) -> None:
    assert world.step("00:00") == ["orders import on primary, 2013-01-01T00:00Z, attempt 1"]
    found = rows(world, "orders", 0)
    assert found == [{**one, "lines": json.dumps(one["lines"])} for one in ORDERS]


def test_a_declared_schema_is_exact(service: Service, world: World) -> None:
    service.rows = [
        {"id": 1, "price": "12.30", "at": "2024-03-31T02:30:00+02:00", "lines": [1, None], "name": "a", "more": 1},
        {"id": 2, "price": 7, "name": None},
    ]
    world.step("01:00")
    assert rows(world, "exact", 0) == [
        {
            "id": 1,
            "price": Decimal("12.30"),
            "at": datetime(2024, 3, 31, 0, 30, tzinfo=UTC),
            "lines": [1, None],
            "name": "a",
        },
        {"id": 2, "price": Decimal("7.00"), "at": None, "lines": None, "name": None},
    ]
    assert "/api/orders?since=2013-01-01T00%3A00%3A00Z&before=2013-01-01T01%3A00%3A00Z" in service.asked


def test_later_pages_of_another_form_are_an_error_that_names_the_column(service: Service, world: World) -> None:
    service.rows = [{"id": 1}, {"id": 2}, {"id": 3}, {"id": "four"}]
    world.step("02:00")
    # The hour before was there already: the rows of now are those of the next.
    reasons = [row["reason"] for row in world.rows("orders import").values() if row["state"] == "FAILED"]
    assert reasons
    for one in reasons:
        assert "column 'id' is bigint in the first page, but 'four': declare the schema of the feed" in one
    service.rows = ORDERS


def access(service: Service, **changed: Any) -> Access:
    return Access("shop", "http", service.url, DatasourceThrottle(), **{"token": TOKEN, **changed})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"token": "wrong"}, "the login was refused"),
        ({"driver": {"paginator": "pages"}}, "driver.paginator 'pages' is none of auto, single_page"),
        ({"driver": {"paginator": "offset", "limt": "3"}}, "the paginator offset got an unexpected keyword"),
    ],
)
def test_what_is_wrong_is_said(service: Service, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(DatasourceError, match=said):
        datasource_types()["http"].require_reachable(access(service, **changed))


def test_a_resource_that_is_not_there(service: Service) -> None:
    with pytest.raises(DatasourceError, match="nothing: it answers 404"):
        [*datasource_types()["http"].datasets(access(service), "nothing")]


def test_columns_are_those_of_the_first_page(service: Service, world: World) -> None:
    driver = {"paginator": "json_link", "next_url_path": "next", "data_selector": "items"}
    (found,) = datasource_types()["http"].datasets(access(service, driver=driver), "orders")
    assert {one.name: one.spark_type for one in found.columns} == {
        **{"id": "bigint", "name": "string", "paid": "boolean", "price": "double", "at": "string", "lines": "string"}
    }
    known = access_to(world.store.datasources["shop"], {"SHOP_TOKEN": TOKEN}, write=False)
    assert TOKEN not in repr(known)
