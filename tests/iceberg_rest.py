"""An Iceberg REST service: no other is to be had for tests here, so this one keeps its tables as PyIceberg does.

It speaks what the protocol (https://iceberg.apache.org/rest-catalog-spec) says of configuration, tokens, namespaces and
tables, asks everybody for a token, and can fail before or after a commit.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

CLIENT, SECRET, TOKEN = "falcon", "s3cr3t/of+the/catalog", "t0ken-that-nobody-sees"
ENVIRON = {"CATALOG_CREDENTIAL": f"{CLIENT}:{SECRET}", "CATALOG_TOKEN": TOKEN}
"""Credentials that must be seen nowhere."""
OPTIONS = {"credential": {"env": "CATALOG_CREDENTIAL"}, "scope": "PRINCIPAL_ROLE:ALL"}
"""The registry's, for this service."""
_STATUSES = {
    NoSuchTableError: 404,
    NoSuchNamespaceError: 404,
    TableAlreadyExistsError: 409,
    NamespaceAlreadyExistsError: 409,
    CommitFailedException: 409,
}


class RestService(ThreadingHTTPServer):
    """Its warehouses are catalogs in a database; each has a prefix of that name.

    Attributes:
        fails_before: Statuses of the next commits, which are not done.
        fails_after: Statuses of the next commits, which are done.
    """

    daemon_threads = True

    def __init__(self, database: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fails_before: list[int] = []
        self.fails_after: list[int] = []
        self.catalog = cache(lambda warehouse: SqlCatalog(warehouse, uri=database, pool_pre_ping="true"))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/api/catalog"


@contextmanager
def iceberg_rest(database: str) -> Iterator[RestService]:
    """Serves the catalogs of a database."""
    with RestService(database) as service:
        threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.05}).start()
        yield service
        service.shutdown()


class _Handler(BaseHTTPRequestHandler):
    server: RestService
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm, wbufsize = True, -1  # else each answer would take 40 ms

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, *_: Any) -> None:
        pass

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        steps = [unquote(step) for step in parts.path.removeprefix("/api/catalog/v1/").split("/")]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        try:
            status, said = self._said(steps, parse_qs(parts.query), body)
        except tuple(_STATUSES) as error:
            status = _STATUSES[type(error)]
            said = {"error": {"message": str(error), "type": type(error).__name__, "code": status}}
        content = json.dumps(said).encode() if said else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def _said(self, steps: list[str], query: dict[str, list[str]], body: str) -> tuple[int, dict[str, Any]]:
        if steps == ["oauth", "tokens"]:
            given = {name: values[0] for name, values in parse_qs(body).items()}
            if (given.get("client_id"), given.get("client_secret")) == (CLIENT, SECRET):
                return 200, {"access_token": TOKEN, "token_type": "bearer", "expires_in": 3600}
            return 401, {"error": "invalid_client", "error_description": "nobody of that name"}
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {"error": {"message": "who are you?", "type": "NotAuthorizedException", "code": 401}}
        if steps == ["config"]:
            return 200, {"defaults": {}, "overrides": {"prefix": query["warehouse"][0]}}
        catalog = self.server.catalog(steps[0])
        match steps[1:]:
            case ["namespaces"]:
                catalog.create_namespace(tuple(json.loads(body)["namespace"]))
                return 200, {"namespace": json.loads(body)["namespace"], "properties": {}}
            case ["namespaces", namespace, "tables"]:
                return 200, self._created(catalog, namespace, CreateTableRequest.model_validate_json(body))
            case ["namespaces", namespace, "tables", table] if self.command == "GET":
                return 200, _loaded(catalog.load_table((namespace, table)))
            case ["namespaces", namespace, "tables", table] if self.command == "DELETE":
                catalog.drop_table((namespace, table))
                return 204, {}
            case ["namespaces", namespace, "tables", table]:
                return self._committed(catalog, (namespace, table), CommitTableRequest.model_validate_json(body))
        return 404, {"error": {"message": self.path, "type": "NotFoundException", "code": 404}}

    def _created(self, catalog: SqlCatalog, namespace: str, asked: CreateTableRequest) -> dict[str, Any]:
        if catalog.table_exists((namespace, asked.name)):
            raise TableAlreadyExistsError(f"table {namespace}.{asked.name} is there")
        make = catalog._create_staged_table if asked.stage_create else catalog.create_table
        return _loaded(
            make(
                (namespace, asked.name),
                asked.table_schema,
                asked.location,
                asked.partition_spec or UNPARTITIONED_PARTITION_SPEC,
                asked.write_order or UNSORTED_SORT_ORDER,
                asked.properties,
            )
        )

    def _committed(
        self, catalog: SqlCatalog, name: tuple[str, str], asked: CommitTableRequest
    ) -> tuple[int, dict[str, Any]]:
        if self.server.fails_before:
            return self.server.fails_before.pop(0), {}
        table: Any = SimpleNamespace(name=lambda: name)
        done = catalog.commit_table(table, asked.requirements, asked.updates)
        if self.server.fails_after:
            return self.server.fails_after.pop(0), {}
        return 200, json.loads(done.model_dump_json())


def _loaded(table: Table) -> dict[str, Any]:
    return {
        "metadata-location": table.metadata_location,
        "metadata": json.loads(table.metadata.model_dump_json()),
        "config": {},
    }
