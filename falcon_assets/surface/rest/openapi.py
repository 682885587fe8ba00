"""The description of the interface in OpenAPI 3.1, from the declarations of the operations."""

from __future__ import annotations

import dataclasses
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo

from falcon_assets.operations.operation import Operation, plain_type
from falcon_assets.operations.paging import Page
from falcon_assets.surface.rest.endpoints import (
    NAMES,
    Endpoint,
    endpoints,
    given_of,
    is_many,
    kind_of,
    parameter_of,
)
from falcon_assets.surface.rest.idempotency import HEADER
from falcon_assets.surface.rest.problems import MEDIA_TYPE
from falcon_assets.surface.rest.requests import DRY_RUN, FILTER, FILTERS

PREFIX = "/falcon/api/v1"
"""Where the front mounts the interface."""
_ABOUT = (
    "Entities, instances and all else that `falcon` manages. Each operation is a command of `falcon`, with the same "
    "parameters and the same JSON."
)
_PROBLEMS = {
    "400": "A value is missing, unknown or malformed.",
    "401": "Nobody is logged in.",
    "403": "Roles, or the acl of an entity, do not allow it.",
    "404": "There is no such entity, instance or path.",
    "409": "It does not fit what there is now.",
    "413": "The body is too large.",
    "415": "The body is neither JSON nor YAML.",
    "422": "The definitions have problems, or the Idempotency-Key was used for another request.",
    "503": "Too many requests are waiting, or the database or a store does not answer.",
    "504": "It takes longer than the server waits.",
}
_DEFINITIONS: dict[str, Any] = {
    "description": "YAML as a text, an entity as an object, or a list of entities.",
    "anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array", "items": {"type": "object"}}],
}


@cache
def openapi() -> dict[str, Any]:
    """Returns the whole description."""
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints():
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    tags = [{"name": name} for name in dict.fromkeys(one.tag for one in endpoints())]
    return {
        "openapi": "3.1.0",
        "info": {"title": "falcon", "version": version("falcon-assets"), "description": _ABOUT},
        "servers": [{"url": PREFIX}],
        "security": [{"token": []}],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {status: _problem(text) for status, text in _PROBLEMS.items()},
            "schemas": {"Problem": _PROBLEM},
        },
    }


_PROBLEM = {
    "type": "object",
    "description": "What is wrong, as RFC 9457 has it.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "examples": ["urn:falcon:unknown-entity"]},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "A sentence: what is wrong, where, and what to do."},
        "problems": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Of definitions, each with its line.",
        },
    },
}


def _problem(text: str) -> dict[str, Any]:
    return {"description": text, "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    role = endpoint.operation.role.name.lower()
    owners = ", or the owner or group of the entity" if endpoint.operation.of_owners else ""
    first, _, rest = endpoint.text.partition("\n")
    ending = f"For the role {role}{owners}. Command: `falcon {endpoint.operation.command}`."
    described = {
        "operationId": endpoint.name,
        "tags": [endpoint.tag],
        "summary": first.rstrip("."),
        "description": f"{rest.strip()}\n\n{ending}".strip(),
        "parameters": [*_parameters(endpoint)],
        "responses": {
            "200": {"description": "Done.", "content": _content(endpoint.operation)},
            **{status: {"$ref": f"#/components/responses/{status}"} for status in _PROBLEMS},
        },
    }
    if endpoint.has_body:
        described["requestBody"] = _body(endpoint)
    return described


def _parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    found = []
    for name in endpoint.placed:
        schema = (
            {"type": "string", "minLength": 1} if name == NAMES else schema_of(endpoint.operation.model_fields[name])
        )
        text = "Names, with commas between them." if name == NAMES else ""
        found.append(_parameter(parameter_of(name), "path", schema, text, is_needed=True))
    for name, field in endpoint.fields.items():
        if not endpoint.has_body:
            shown = FILTER if name == FILTERS else name
            text = "FIELD=VALUE, repeated." if name == FILTERS else field.description or ""
            found.append(_parameter(shown, "query", _in_query(field), text, is_needed=field.is_required()))
        elif name == DRY_RUN:
            found.append(_parameter(name, "query", {"type": "boolean"}, field.description or ""))
    if endpoint.changes:
        text = "The same key and request have the same answer, and are performed once, within a day."
        found.append(_parameter(HEADER, "header", {"type": "string", "pattern": "^[!-~]{1,200}$"}, text))
    return found


def _parameter(name: str, place: str, schema: Any, text: str, *, is_needed: bool = False) -> dict[str, Any]:
    made = {"name": name, "in": place, "required": is_needed, "schema": schema}
    return {**made, "description": text} if text else made


def _body(endpoint: Endpoint) -> dict[str, Any]:
    fields = {name: field for name, field in endpoint.fields.items() if name != DRY_RUN}
    properties = {
        name: _DEFINITIONS if name == "definitions" else {**schema_of(field), "description": field.description or ""}
        for name, field in fields.items()
    }
    needed = [name for name, field in fields.items() if field.is_required()]
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    content: dict[str, Any] = {"application/json": {"schema": {**schema, "required": needed} if needed else schema}}
    if "definitions" in fields:
        content["application/yaml"] = {"schema": {"type": "string"}}
    return {"required": bool(needed), "content": content}


def _in_query(field: FieldInfo) -> dict[str, Any]:
    if get_origin(plain_type(field.annotation)) is dict or get_origin(kind_of(field)) is tuple:
        return {"type": "array", "items": {"type": "string", "pattern": "^[^=]+=.*$"}}
    return schema_of(field)


def schema_of(field: FieldInfo) -> dict[str, Any]:
    """The JSON schema of the values of a field; a text where a class reads it."""
    if values := [*given_of(field).values]:
        one: dict[str, Any] = {"type": "string", "enum": values}
        return {"type": "array", "items": one} if is_many(field) else one
    plain = [one for one in field.metadata if type(one).__name__ != "Given"]
    kind: Any = Annotated[field.annotation, *plain] if plain else field.annotation
    try:
        made = TypeAdapter(kind).json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError):
        return {"type": "array", "items": {"type": "string"}} if is_many(field) else {"type": "string"}
    if hasattr(kind_of(field), "parse"):
        return {"type": "array", "items": {"type": "string"}} if is_many(field) else {"type": "string"}
    found: dict[str, Any] = _without_null(_inlined(made, made.pop("$defs", {})))
    return found


def _inlined(schema: Any, defined: dict[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(one, defined) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(defined[schema["$ref"].rpartition("/")[2]], defined)
    return {key: _inlined(value, defined) for key, value in schema.items() if key not in ("title", "default")}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """None is what is not given."""
    choices = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    return choices[0] if len(choices) == 1 else schema


def _content(operation: type[Operation]) -> dict[str, Any]:
    kind = get_type_hints(operation.run)["return"]
    if kind is str:
        return {"text/plain": {"schema": {"type": "string"}}}
    if (get_origin(kind) or kind) is Page:
        items = {"type": "array", "items": _result(*(get_args(kind) or (dict,)))}
        following = {"type": ["integer", "null"], "description": "The offset of the next page; null: this is the last."}
        properties = {"items": items, "total": {"type": "integer"}, "next": following}
        return {"application/json": {"schema": {"type": "object", "properties": properties}}}
    return {"application/json": {"schema": _result(kind)}}


def _result(kind: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(kind):
        return {} if kind is not dict else {"type": "object"}
    said = getattr(kind, "keys", ()) or [one.name for one in dataclasses.fields(kind)]
    return {"type": "object", "properties": {one.partition("=")[0]: {} for one in said}}
