"""Paths and methods of operations, derived from their declarations."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from types import GenericAlias
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from falcon_assets.base.texts import hidden
from falcon_assets.model.access import Role
from falcon_assets.operations.operation import Change, Given, Operation, plain_type
from falcon_assets.operations.paging import ListOperation, Page
from falcon_assets.surface.registry import registry

Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE"]

_PLURALS = {
    **{noun: f"{noun}s" for noun in ("datasource", "executor", "feed", "flow", "instance", "notification", "template")},
    "entity": "entities",
    "root": "roots",
}
_METHODS: Mapping[str, Method] = {"submit": "POST", "update": "PUT", "delete": "DELETE"}
"""Of the operations that have no other word in their path."""
_PLAIN = ("list", "show", *_METHODS)
BODY = ("POST", "PUT")
NAMES = "names"
"""Several names, with commas between them where they are in a path, as ``{name}``."""
_IN_PATHS = {"NAME", "NAME...", "FEED", "PROCESS", "ENTITY", "CLUSTER", "TEMPLATE", "INSTANCE"}
"""The places of values that paths have: names and instances."""


@dataclass(frozen=True)
class Endpoint:
    """An operation over HTTP.

    Attributes:
        path: Below the prefix of the interface, with ``{parameters}``.
        placed: Fields whose values are in the path, in this order.
    """

    operation: type[Operation]
    method: Method
    path: str
    placed: tuple[str, ...]

    @property
    def name(self) -> str:
        """The identifier of the operation in OpenAPI."""
        return self.operation.command.replace(" ", "-")

    @property
    def tag(self) -> str:
        return self.operation.command.split()[0]

    @property
    def text(self) -> str:
        return inspect.getdoc(self.operation) or ""

    @cached_property
    def fields(self) -> Mapping[str, FieldInfo]:
        """What is given beside the path: neither who asks, nor files of the server."""
        return {
            name: field
            for name, field in self.operation.model_fields.items()
            if name not in ("actor", *self.placed) and plain_type(field.annotation) is not Path
        }

    @property
    def has_body(self) -> bool:
        return self.method in BODY

    @property
    def changes(self) -> bool:
        return self.method != "GET"


@cache
def endpoints() -> tuple[Endpoint, ...]:
    """Returns those of all operations that may be requested over the network, paths with words before others."""
    found = (one.load() for one in registry().values())
    return tuple(sorted(map(_endpoint, (one for one in found if one.remote)), key=lambda one: (one.path, one.method)))


def endpoint_of(operation: type[Operation]) -> Endpoint:
    return next(one for one in endpoints() if one.operation is operation)


def _endpoint(operation: type[Operation]) -> Endpoint:
    *nouns, verb = operation.command.split()
    placed = _placed(operation)
    steps = [_PLURALS.get(noun, noun) for noun in nouns]
    parameters = [f"{{{parameter_of(name)}}}" for name in placed]
    if not nouns:
        steps, verb = [verb], ""
    if verb in _PLAIN and not (verb in ("submit", "update") and parameters):
        path = "/".join(["", *steps, *parameters])
    elif parameters or not verb:
        path = "/".join(["", *steps, *parameters, *([verb] if verb else [])])
    else:
        path = f"{'/'.join(['', *steps])}:{verb}"
    return Endpoint(operation, _method(operation, verb, placed), path, placed)


def _method(operation: type[Operation], verb: str, placed: tuple[str, ...]) -> Method:
    if verb in _METHODS and not (placed and verb != "delete"):
        return _METHODS[verb]
    reads = not issubclass(operation, Change) and (
        operation.role is Role.VIEWER or issubclass(operation, ListOperation)
    )
    takes_text = "definitions" in operation.model_fields
    return "GET" if reads and not takes_text else "POST"


def _placed(operation: type[Operation]) -> tuple[str, ...]:
    return tuple(name for name, field in operation.model_fields.items() if _is_placed(name, field, operation))


def _is_placed(name: str, field: FieldInfo, operation: type[Operation]) -> bool:
    if name == NAMES and operation.command == "entity delete":
        return True
    return field.is_required() and given_of(field).place in _IN_PATHS


def parameter_of(name: str) -> str:
    """The name of a field in paths."""
    return "name" if name == NAMES else name


def given_of(field: FieldInfo) -> Given:
    return next((one for one in field.metadata if isinstance(one, Given)), Given())


def is_many(field: FieldInfo) -> bool:
    return get_origin(plain_type(field.annotation)) is tuple


def kind_of(field: FieldInfo) -> Any:
    """The type of the values of a field, one by one."""
    kind = plain_type(field.annotation)
    return plain_type(get_args(kind)[0]) if get_origin(kind) is tuple else kind


AS_RESULT = "application/vnd.falcon.result+json"
"""Results of which nothing is lost, for ``falcon --server``, which shows what it would show on the server."""


@cache
def adapter_of(operation: type[Operation]) -> TypeAdapter[Any] | None:
    """Writes and reads what the operation gives; None: it cannot be read again."""
    kind = get_type_hints(operation.run, include_extras=True)["return"]
    try:
        made = TypeAdapter(kind)
        made.json_schema(mode="serialization")
    except PydanticUserError:
        return None
    return made


def dumped(operation: type[Operation], result: Any) -> str | None:
    """Returns the result as JSON, with stars for secrets; None: only :func:`.data_of` is there for it."""
    adapter = adapter_of(operation)
    return None if adapter is None else hidden(adapter.dump_json(result, by_alias=True).decode())


def loaded(operation: type[Operation], text: str) -> Any:
    """Raises pydantic's ValidationError where the server has another version."""
    adapter = adapter_of(operation)
    assert adapter is not None
    found = adapter.validate_json(text)
    bases = (base for base in getattr(type(found), "__orig_bases__", ()) if get_origin(base) is Page)
    for base in bases:  # pydantic does not know what the items of a dataclass are whose base is generic
        items_kind: Any = GenericAlias(tuple, (get_args(base)[0], ...))
        items = TypeAdapter(items_kind).validate_python(found.items)
        found = replace(found, items=items)
    return found
