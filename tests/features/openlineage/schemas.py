"""Events held against what the official client says of OpenLineage's schemas: properties, types, formats and facets.

The schemas themselves come with no package; the client's classes are generated from them and name them.
"""

from __future__ import annotations

import importlib
import pkgutil
import types
from collections.abc import Iterator
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import attr
from jsonschema import Draft202012Validator, FormatChecker

CHECKER = FormatChecker(formats=["uuid"])
FORMATS = {
    **dict.fromkeys(["eventTime", "nominalStartTime", "nominalEndTime"], "date-time"),
    **dict.fromkeys(["_producer", "_schemaURL", "producer", "schemaURL", "uri"], "uri"),
    "runId": "uuid",
}
FACETS = {
    "run": {"nominalTime", "parent", "processing_engine", "errorMessage", "tags"},
    "job": {"sourceCode", "sql", "jobType", "documentation", "ownership", "tags"},
    "dataset": {
        *("dataSource", "datasetType", "version", "schema", "columnLineage", "lifecycleStateChange"),
        *("documentation", "ownership", "tags"),
    },
    "input": {"subset", "inputStatistics"},
    "output": {"subset", "outputStatistics"},
}
"""What the specification calls the facets of each place; others are not its own."""


@CHECKER.checks("date-time", raises=ValueError)
def _is_time(text: Any) -> bool:
    return "T" in text and datetime.fromisoformat(text).tzinfo is not None


@CHECKER.checks("uri", raises=ValueError)
def _is_uri(text: Any) -> bool:
    return bool(urlsplit(text).scheme) and text.isascii() and " " not in text


def assert_valid(event: dict[str, Any]) -> None:
    """As the specification wants a run event, and each of its facets."""
    assert list(_problems(event)) == []


def _problems(event: dict[str, Any]) -> Iterator[str]:
    yield from _errors(event, event["schemaURL"])
    places = [("run", event["run"].get("facets", {})), ("job", event["job"].get("facets", {}))]
    for kind in ("input", "output"):
        for one in event[f"{kind}s"]:
            places += [("dataset", one["facets"]), (kind, one[f"{kind}Facets"])]
    for place, facets in places:
        for name, facet in facets.items():
            if name not in FACETS[place]:
                yield f"{name} is no facet of {place}"
            yield from _errors(facet, facet["_schemaURL"])


def _errors(thing: dict[str, Any], url: str) -> list[str]:
    return [f"{url} {error.json_path}: {error.message}" for error in _validator(url).iter_errors(thing)]


@cache
def _validator(url: str) -> Draft202012Validator:
    known: dict[str, Any] = {}
    schema = _reference(_classes()[url], known)
    return Draft202012Validator({**schema, "$defs": known}, format_checker=CHECKER)


@cache
def _classes() -> dict[str, type]:
    import openlineage.client.generated as package

    found = {}
    for module in pkgutil.iter_modules(package.__path__):
        for one in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
            if isinstance(one, type) and attr.has(one) and hasattr(one, "_get_schema"):
                found[one._get_schema()] = one
    return found


def _reference(cls: type, known: dict[str, Any]) -> dict[str, Any]:
    """A reference to the schema of a class, which is among the ``known`` afterwards: some hold themselves."""
    name = f"{cls.__module__}.{cls.__name__}"
    if name not in known:
        known[name] = {}
        hints, properties = get_type_hints(cls), {}
        for field in attr.fields(cls):
            of_format = {"format": FORMATS[field.name]} if field.name in FORMATS else {}
            properties[field.name] = _type(hints[field.name], known) | of_format
        required = [one.name for one in attr.fields(cls) if one.default is attr.NOTHING]
        known[name].update({"type": "object", "properties": properties, "required": required})
        known[name]["additionalProperties"] = False
    return {"$ref": f"#/$defs/{name}"}


def _type(hint: Any, known: dict[str, Any]) -> dict[str, Any]:
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type(one, known) for one in inside if one is not type(None)]}
    if origin is list:
        return {"type": "array", "items": _type(inside[0], known)}
    if origin is dict:
        return {"type": "object", "additionalProperties": {} if _is_facet(inside[1]) else _type(inside[1], known)}
    if isinstance(hint, type) and attr.has(hint):
        return _reference(hint, known)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [one.value for one in hint]}
    return {str: {"type": "string"}, int: {"type": "integer"}, bool: {"type": "boolean"}}.get(hint, {})


def _is_facet(hint: Any) -> bool:
    """Facets are checked by the schema that they name."""
    return isinstance(hint, type) and hint.__name__.endswith("Facet")
