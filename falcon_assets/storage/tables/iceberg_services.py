"""Services behind Iceberg catalogs: a database, or one that speaks Iceberg's REST protocol."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from sqlalchemy import NullPool, create_engine, make_url

_CONNECT_SECONDS, _SECONDS = 5.0, 60.0
_OF_S3FS = {
    "key": "s3.access-key-id",
    "secret": "s3.secret-access-key",
    "token": "s3.session-token",
    "endpoint_url": "s3.endpoint",
    "region_name": "s3.region",
}


def file_options(options: Mapping[str, object]) -> dict[str, object]:
    """Makes PyIceberg use s3fs: its other driver looks for a region in the network if none is declared."""
    client = options.get("client_kwargs")
    settings = {**options, **(client if isinstance(client, Mapping) else {})}
    found = {name: settings[option] for option, name in _OF_S3FS.items() if settings.get(option)}
    found["py-io-impl"] = "pyiceberg.io.fsspec.FsspecFileIO"
    return {**found, "s3.anonymous": "true"} if settings.get("anon") else found


def database(url: str, name: str, warehouse: str, options: Mapping[str, object] = MappingProxyType({})) -> Catalog:
    """Returns a catalog in a PostgreSQL database, with a connection per question; ``warehouse`` is for new tables."""
    uri = make_url(url).set(drivername="postgresql+psycopg2")
    uri = uri.update_query_dict({"connect_timeout": str(int(_CONNECT_SECONDS))})
    texts = {name: str(value) for name, value in options.items()}
    properties = {**texts, "uri": uri.render_as_string(hide_password=False), "warehouse": warehouse}
    catalog = SqlCatalog(name or "default", **properties)
    catalog.close()
    # Each feed has a catalog of its own: a pool for each would keep as many connections as there are feeds.
    catalog.engine = create_engine(uri, poolclass=NullPool)
    return catalog


def rest(url: str, warehouse: str, options: Mapping[str, object]) -> Catalog:
    """Returns a catalog behind a REST service, and requests its configuration; ``warehouse`` may be empty."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    if warehouse:
        texts["warehouse"] = warehouse
    return _PatientRestCatalog("rest", **texts, uri=url)


class _PatientRestCatalog(RestCatalog):
    """Sets timeouts: PyIceberg itself would wait forever for a silent service."""

    def _config_headers(self, session: Session) -> None:
        super()._config_headers(session)
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Patience())


class _Patience(HTTPAdapter):
    def send(self, request: PreparedRequest, *args: Any, **kwargs: Any) -> Response:
        return super().send(request, *args, **{**kwargs, "timeout": (_CONNECT_SECONDS, _SECONDS)})
