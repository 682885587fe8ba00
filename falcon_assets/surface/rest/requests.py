"""Requests over HTTP as operations: values from the path, the query and the body."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, get_origin

import yaml
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from starlette.datastructures import QueryParams
from starlette.requests import Request

from falcon_assets.errors import FalconError, UsageError
from falcon_assets.model.instant import format_instant
from falcon_assets.operations.operation import Operation, plain_type
from falcon_assets.operations.paging import ListOperation, LongList, known_field
from falcon_assets.surface.rest.endpoints import NAMES, Endpoint, is_many, kind_of, parameter_of

MOST_BYTES = 5_000_000
"""Of a body."""
FILTER, FILTERS = "filter", "filters"
COLO = "colo"
"""Where something is to be asked or done, of the colos of a front of several."""
DRY_RUN = "dry_run"
_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")
_JSON = "application/json"
_SHOWN = 200


class TooLargeError(FalconError):
    """The body has more bytes than are read."""


class MediaTypeError(FalconError):
    """The body is neither JSON nor YAML."""


async def body_of(request: Request) -> bytes:
    """The body, whose bytes are counted, whatever the client declares; raises TooLargeError."""
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > MOST_BYTES:
            raise TooLargeError(f"the body has more than {MOST_BYTES:,} bytes")
    return bytes(found)


def operation_of(endpoint: Endpoint, request: Request, body: bytes) -> Operation:
    """The operation that a request asks for.

    Raises:
        UsageError: a value is missing, unknown or of another type; the text says which.
        MediaTypeError: the body is neither JSON nor YAML.
        QueryError: a list has no such field.
    """
    given = {name: _placed(name, request.path_params[parameter_of(name)]) for name in endpoint.placed}
    if endpoint.has_body:
        sent = _sent(endpoint, request.headers.get("content-type", ""), body)
        asked = {name: one for name, one in request.query_params.multi_items() if name != COLO}
        if twice := sent.keys() & asked.keys():
            raise UsageError(f"{', '.join(sorted(twice))} is in the query and in the body: say it once")
        given |= {name: _of_body(endpoint, name, value) for name, value in sent.items()}
        own = given.keys()
    else:
        own = given.keys()
        if body.strip():
            raise UsageError(f"a {endpoint.method} takes no body: what it needs is in the path and in the query")
    given |= _of_query(endpoint, request.query_params, own)
    _require_fields(endpoint.operation, given)
    return made(endpoint.operation, given)


def _require_fields(operation: type[Operation], given: Mapping[str, Any]) -> None:
    """Raises QueryError where a list is filtered or sorted by a field that it does not have."""
    if not issubclass(operation, ListOperation | LongList):
        return
    for name, _ in given.get(FILTERS, ()):
        known_field(name, operation.fields)
    if isinstance(sort := given.get("sort"), str):
        known_field(sort.removeprefix("-"), operation.orders or operation.fields)


def made(operation: type[Operation], given: Mapping[str, Any]) -> Operation:
    """Raises UsageError for what the operation does not take, or lacks."""
    try:
        asked = operation(**given)
    except ValidationError as error:
        raise UsageError("; ".join(map(_sentence, error.errors()))) from error
    start, end = getattr(asked, "start", None), getattr(asked, "end", None)
    if start and end and end < start:
        raise UsageError(f"end: it is before start {format_instant(start)}")
    return asked


def _sentence(error: Any) -> str:
    where = ".".join(map(str, error["loc"]))[:_SHOWN]
    said = {"missing": "it is missing", "extra_forbidden": "there is no such parameter"}.get(error["type"])
    text = said or str(error["msg"]).removeprefix("Value error, ")
    return f"{where}: {text}" if where else text


def _placed(name: str, value: str) -> Any:
    return tuple(one for one in value.split(",") if one) if name == NAMES else value


def _of_query(endpoint: Endpoint, query: QueryParams, there: Iterable[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for given in dict.fromkeys(query.keys()):
        name = FILTERS if given == FILTER and FILTERS in endpoint.fields else given
        field = endpoint.fields.get(name)
        if field is None and name == COLO:
            continue
        if field is None or name in there or (name == FILTERS != given and name == given):
            raise UsageError(f"{given[:_SHOWN]}: there is no such parameter")
        values = query.getlist(given)
        if name == FILTERS:
            found[name] = tuple(_pair(FILTER, one) for one in values)
        elif get_origin(plain_type(field.annotation)) is dict:
            found[name] = dict(_pair(given, one) for one in values)
        elif is_many(field):
            found[name] = tuple(_parsed(field, one) for one in values)
        elif len(values) > 1:
            raise UsageError(f"{given}: it is there {len(values)} times")
        else:
            found[name] = _parsed(field, values[0])
    return found


def _pair(name: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{name}: write {name}=field=value, not {text[:_SHOWN]!r}")
    return key.strip(), value.strip()


def _of_body(endpoint: Endpoint, name: str, value: Any) -> Any:
    field = endpoint.fields.get(name)
    if field is None:
        raise UsageError(f"{name[:_SHOWN]}: there is no such key")
    if name == "definitions":
        return as_definitions(value)
    if isinstance(value, list):
        return tuple(_parsed(field, one) for one in value)
    return _parsed(field, value)


def _parsed(field: FieldInfo, value: Any) -> Any:
    kind = kind_of(field)
    if isinstance(value, str) and hasattr(kind, "parse") and not isinstance(value, kind):
        try:
            return kind.parse(value)
        except FalconError as error:
            raise UsageError(f"{value[:_SHOWN]!r}: {error}") from error
    return value


def as_definitions(value: Any) -> str:
    """Definitions as YAML: a text is YAML, a mapping is one entity, a list has several; raises UsageError."""
    if isinstance(value, str):
        return value
    documents = value if isinstance(value, list) else [value]
    if not all(isinstance(one, dict) for one in documents):
        raise UsageError("definitions: write YAML as a text, an entity as an object, or a list of such objects")
    return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, explicit_start=True)


def _sent(endpoint: Endpoint, media_type: str, body: bytes) -> dict[str, Any]:
    """The values in a body, by the names of fields."""
    if not body.strip():
        return {}
    kind = media_type.partition(";")[0].strip().lower()
    if kind in _YAML and "definitions" in endpoint.fields:
        try:
            return {"definitions": body.decode()}
        except UnicodeDecodeError as error:
            raise UsageError("the body is no text in UTF-8") from error
    if kind != _JSON:
        also = ", or definitions as application/yaml" if "definitions" in endpoint.fields else ""
        raise MediaTypeError(f"send application/json{also}")
    found = read_json(body)
    if not isinstance(found, dict):
        raise UsageError("the body is no JSON object")
    if "kind" in found and "name" in found and "definitions" in endpoint.fields:
        return {"definitions": found}  # an entity as it is
    return found


def read_json(body: bytes) -> Any:
    """Raises UsageError."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the body is no JSON: {error if isinstance(error, ValueError) else 'too deep'}") from error
