"""Pages of a resource as rows, by dlt: its client knows the ways of services to divide answers into pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from falcon_assets.errors import DatasourceError
from falcon_assets.features.datasources.access import Access
from falcon_assets.features.datasources.datasource_type import ReadRequest, SourceColumn
from falcon_assets.model.spark_schema import column_definitions

if TYPE_CHECKING:
    import pyarrow as pa

_SECONDS = 30
_ATTEMPTS = 5
_HEADER = "header."
_PAGINATORS = {
    "auto": "",
    "single_page": "SinglePagePaginator",
    "json_link": "JSONLinkPaginator",
    "header_link": "HeaderLinkPaginator",
    "page_number": "PageNumberPaginator",
    "offset": "OffsetPaginator",
    "cursor": "JSONResponseCursorPaginator",
}
"""As dlt names them in its configuration, with its classes."""
_NUMBERS = frozenset({"limit", "offset", "base_page", "page", "maximum_page", "maximum_offset"})
_OWN = frozenset({"paginator", "data_selector", "batch_rows", "batch_bytes"})
_PARAMETER = re.compile(r":(start|end)\b")


@dataclass(frozen=True)
class ResourceReading:
    """A resource, which one task reads: its pages follow each other."""

    columns: Sequence[SourceColumn]
    parts: Sequence[ResourcePart]
    low: None = None
    high: None = None
    behind: None = None


@dataclass(frozen=True)
class ResourcePart:
    """All rows of a resource; values travel as texts, as JSON has them."""

    access: Access
    resource: str
    columns: tuple[tuple[str, str], ...]
    known: frozenset[str]
    is_declared: bool

    def batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # noqa: PLC0415 - only workers need it

        schema = pa.schema([(name, pa.string()) for name, _ in self.columns])
        for page in pages(self.access, self.resource):
            columns: dict[str, list[str | None]] = {name: [] for name, _ in self.columns}
            for row in page:
                if not self.is_declared and (new := sorted(row.keys() - self.known)):
                    raise DatasourceError(
                        f"{self._where}: rows have a column {new[0]!r} that the first page lacks: {_FIX}"
                    )
                for name, spark_type in self.columns:
                    columns[name].append(self._text(name, spark_type, row.get(name)))
            yield pa.RecordBatch.from_pydict(columns, schema=schema)

    def _text(self, name: str, spark_type: str, value: Any) -> str | None:
        if value is None:
            return None
        if not self.is_declared and spark_type != "string" and not _fits(value, spark_type):
            raise DatasourceError(
                f"{self._where}: column {name!r} is {spark_type} in the first page, but {value!r}: {_FIX}"
            )
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    @property
    def _where(self) -> str:
        return f"datasource {self.access.name!r}: {self.resource}"


_FIX = "declare the schema of the feed"


@contextmanager
def reading(access: Access, request: ReadRequest) -> Iterator[ResourceReading]:
    """Columns are those of the feed's ``schema``, else of the first page; raises DatasourceError."""
    source, fields = request.declared.source, request.declared.fields
    times = {"start": request.start, "end": request.end}
    resource = _PARAMETER.sub(lambda found: _instant(times[found[1]]), source.query or source.table or "")
    declared = column_definitions(request.schema) if request.schema else None
    columns = [_column(*one) for one in declared] if declared is not None else first_columns(access, resource)
    known = [one.name for one in columns]
    if fields is not None:
        if wrong := [one for one in fields.include or fields.exclude or () if one not in known]:
            raise DatasourceError(
                f"datasource {access.name!r}: {resource} has no column {', '.join(wrong)}; it has {', '.join(known)}"
            )
        columns = [columns[known.index(one)] for one in fields.of(tuple(known))]
    if not columns:
        raise DatasourceError(
            f"datasource {access.name!r}: {resource} has no rows yet, so its columns are unknown: {_FIX}"
        )
    pairs = tuple((one.name, one.spark_type) for one in columns)
    yield ResourceReading(columns, [ResourcePart(access, resource, pairs, frozenset(known), declared is not None)])


def first_columns(access: Access, resource: str) -> list[SourceColumn]:
    """The columns of the rows of the first page; what is neither a number nor a boolean is a text."""
    found: dict[str, str] = {}
    for row in next(iter(pages(access, resource)), ()):
        for name, value in row.items():
            found[name] = _wider(found.get(name), _type_of(value))
    return [_column(name, spark_type or "string") for name, spark_type in found.items()]


def pages(access: Access, resource: str) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yields the rows of each page; raises DatasourceError."""
    client, driver = _client(access), access.driver
    with _explained(access, resource):
        for page in client.paginate(resource.lstrip("/"), data_selector=driver.get("data_selector")):
            if not all(isinstance(row, dict) for row in page):
                raise DatasourceError(
                    f"datasource {access.name!r}: {resource} has other things than rows: driver.data_selector says "
                    "where they are in an answer, as a JSONPath"
                )
            yield page


def ask(access: Access) -> None:
    """Asks for the endpoint; raises DatasourceError where nothing answers, or the login is refused."""
    client = _client(access, attempts=1)
    with _explained(access, "/"):
        status = client.session.get(
            access.endpoint, auth=client.auth, headers=client.headers, timeout=_SECONDS
        ).status_code
    if status in (401, 403):
        raise DatasourceError(f"datasource {access.name!r}: the login was refused ({status}): look at its credential")


def _client(access: Access, attempts: int = _ATTEMPTS) -> Any:
    try:
        from dlt.sources.helpers.requests import Client  # noqa: PLC0415 - an extra
        from dlt.sources.helpers.rest_client import auth, paginators  # noqa: PLC0415 - likewise
        from dlt.sources.helpers.rest_client.client import RESTClient  # noqa: PLC0415 - likewise
    except ImportError:
        needs = "pip install 'falcon-assets[http]'"
        raise DatasourceError(f"datasource {access.name!r} needs a package: {needs}") from None
    driver = access.driver
    login: Any = auth.BearerTokenAuth(token=access.token) if access.token else None
    if access.user is not None and access.token is None:
        login = auth.HttpBasicAuth(username=access.user, password=access.password or "")
    kind = driver.get("paginator", "auto")
    if kind not in _PAGINATORS:
        raise DatasourceError(
            f"datasource {access.name!r}: driver.paginator {kind!r} is none of {', '.join(_PAGINATORS)}"
        )
    options = {
        key: int(value) if key in _NUMBERS and value.isdecimal() else value
        for key, value in driver.items()
        if key not in _OWN and not key.startswith(_HEADER)
    }
    try:
        paginator = getattr(paginators, _PAGINATORS[kind])(**options) if _PAGINATORS[kind] else None
    except (TypeError, ValueError) as error:
        said = str(error).partition("__init__() ")[2] or error
        raise DatasourceError(f"datasource {access.name!r}: driver: the paginator {kind} {said}") from None
    headers = {key.removeprefix(_HEADER): value for key, value in driver.items() if key.startswith(_HEADER)}
    # Its wait times come from a configuration of dlt's otherwise, which would look for files of the user.
    client = Client(request_timeout=_SECONDS, request_max_attempts=attempts, raise_for_status=False)
    base = access.endpoint.rstrip("/") + "/"
    return RESTClient(base, headers=headers, auth=login, paginator=paginator, session=client.session)


@contextmanager
def _explained(access: Access, resource: str) -> Iterator[None]:
    import requests  # noqa: PLC0415 - it takes long to import

    where = f"datasource {access.name!r}: {resource}"
    try:
        yield
    except DatasourceError:
        raise
    except requests.HTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        hint = ": look at its credential" if status in (401, 403) else ""
        raise DatasourceError(f"{where}: it answers {status}{hint}") from None
    except requests.RequestException as error:
        host = urlsplit(access.endpoint).netloc
        raise DatasourceError(f"{where}: {host} does not answer as it should ({type(error).__name__})") from None
    except (ValueError, KeyError) as error:  # an answer of another form; what it says may have secrets
        raise DatasourceError(f"{where}: its answer cannot be read ({type(error).__name__})") from None


def _instant(moment: datetime) -> str:
    return quote(moment.astimezone(UTC).isoformat().replace("+00:00", "Z"))


def _column(name: str, spark_type: str) -> SourceColumn:
    quoted = f"`{name.replace('`', '``')}`"
    expression = f"CAST({quoted} AS {spark_type})"
    if spark_type == "string":
        expression = ""
    elif "<" in spark_type:
        text = spark_type.replace("\\", "\\\\").replace("'", "\\'")
        expression = f"from_json({quoted}, '{text}', map('mode', 'FAILFAST'))"
    elif spark_type == "binary":
        expression = f"unbase64({quoted})"
    return SourceColumn(name, spark_type, spark_type, "string", expression)


def _type_of(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return "bigint"
    return "double" if isinstance(value, float) else "string"


def _wider(one: str | None, other: str) -> str:
    if not one or not other or one == other:
        return one or other
    return "double" if {one, other} == {"bigint", "double"} else "string"


def _fits(value: Any, spark_type: str) -> bool:
    return _wider(spark_type, _type_of(value)) == spark_type
