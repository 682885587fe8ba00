"""Pydantic's errors in plain words: the only place where they are translated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from yaml.nodes import MappingNode, Node, ScalarNode

from falcon_assets.catalog.yaml_files.documents import MOST_PROBLEMS, Document, KeyPath, more_problems
from falcon_assets.catalog.yaml_files.secrets import NOTIFICATION_KEY
from falcon_assets.catalog.yaml_files.yaml_nodes import NULL, STR
from falcon_assets.errors import Problem
from falcon_assets.model.expression import nearest
from falcon_assets.model.secret_values import SECRET_KEY


def legal_keys(model: type[BaseModel], location: tuple[int | str, ...]) -> tuple[str, ...]:
    """Returns the legal keys at ``location`` (pydantic's, with tags of unions); empty: any key is legal."""
    annotations: list[Any] = [model]
    for step in location:
        annotations = [below for annotation in annotations for below in _below(annotation, step)]
    return tuple(
        key for annotation in annotations for option in _options(annotation) for key, _ in _keyed_fields(option)
    )


def _options(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _options(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for member in get_args(annotation):
            yield from _options(member)
    else:
        yield annotation


def _keyed_fields(option: Any) -> Iterator[tuple[str, FieldInfo]]:
    if isinstance(option, type) and issubclass(option, BaseModel):
        for name, info in option.model_fields.items():
            yield info.alias or name, info


def _below(annotation: Any, step: int | str) -> Iterator[Any]:
    for option in _options(annotation):
        if get_origin(option) is tuple:
            yield get_args(option)[0]
        elif get_origin(option) is dict:
            yield get_args(option)[1]
        for key, info in _keyed_fields(option):
            if key == step:
                yield info.annotation
            elif get_origin(info.annotation) is Literal and step in get_args(info.annotation):
                yield option  # the tag of a union, not a key


_LONGEST_VALUE = 60
_NAME_RULE = "a letter, then letters, digits, '-' or '_', 39 characters at most"
_PATTERN_RULES = {
    "permission": 'octal digits in quotes ("0755"), or "*"',
    "uri": "catalog:database:table#key=value;key=value",
    "availability_flag": "the name of a file, without slashes and spaces",
    "function": "package.module:name",
    "ui": "http://host:port",
    "target_file_size": "a number with KB, MB or GB, like 256MB",
}

SECRET_RULES = {
    False: "must be a mapping (key: value)",
    True: "must be {env: NAME}, {file: PATH}, {encrypted: ...}, a text, a whole number, or true or false",
}
"""Legal values at and below ``storage_options``, without quoting the value."""
_REFERENCES = "{env: NAME}, {file: PATH} or {encrypted: ...}"
_DATASOURCE_RULES = {
    "driver": f"must be a text, {_REFERENCES}",
    "user": f"must be a text, {_REFERENCES}",
    "credential": f"must be {_REFERENCES}: secrets do not stand in definitions",
}
"""Legal values below these keys of a datasource, without quoting the value."""
_RECEIVER_RULES = {
    1: "must be a mapping (key: value)",
    2: "must be a list of {url: {env: NAME}}",
    3: f"must be {{url: ...}} with {_REFERENCES}: the URL says who may write there, so it is a secret",
}
"""Legal values at and below ``notification``, without quoting the value."""


def validation_problems(document: Document, model: type[BaseModel], error: ValidationError) -> Iterator[Problem]:
    """Yields one problem for each mistake in the document, at its key; of very many the first."""
    every = [detail for detail in error.errors(include_url=False) if detail["type"] != "is_instance_of"]
    details = every[:MOST_PROBLEMS]
    if len(every) > len(details):
        yield document.problem((), more_problems(len(every) - len(details)))
    misspelt: set[KeyPath] = set()
    for detail in details:
        if detail["type"] == "extra_forbidden":
            *parent, key = _key_path(document, detail)
            meant = get_close_matches(str(key), legal_keys(model, detail["loc"][:-1]), n=1)
            misspelt.update((*parent, word) for word in meant)
    secrets: set[KeyPath] = set()
    for detail in details:
        path = _key_path(document, detail)
        secret, rule = _secret_rule(path, detail["type"])
        if rule:
            if secret not in secrets:
                secrets.add(secret)
                yield document.problem(secret, rule)
        elif detail["type"] == "extra_forbidden":
            keys = legal_keys(model, detail["loc"][:-1])
            yield document.problem(path, unknown_word("key", str(path[-1]), keys), at_key=True)
        elif detail["type"] == "missing":
            if path not in misspelt:
                yield document.problem(path, "required key is missing")
        elif detail["type"].startswith("union_tag_"):
            yield _wrong_tag(document, path, detail)
        elif detail["type"] != "too_short" or not detail["input"]:
            # A list that is too short only because its items are wrong is no problem of its own.
            message = _message(detail, path, document.node(path))
            yield document.problem(path, message, at_key=detail["loc"][-1:] == ("[key]",))


def _secret_rule(path: KeyPath, kind: str) -> tuple[KeyPath, str]:
    """Returns the key of a secret on the path, and the rule for its value; "": there is none."""
    if depth := _secret_depth(path):
        return path[: depth + 1], SECRET_RULES[len(path) > depth]
    depth = _depth_in_datasource(path)
    if depth and not (kind == "extra_forbidden" and len(path) <= depth + 1):
        rules = (_DATASOURCE_RULES[str(key)] for key in reversed(path[: depth + 1]) if key in _DATASOURCE_RULES)
        return path[: depth + 1], next(rules) if len(path) > depth else SECRET_RULES[False]
    return path[:3], _RECEIVER_RULES[min(len(path), 3)] if _is_receiver(path, kind) else ""


def _secret_depth(path: KeyPath) -> int:
    """Returns the number of keys to storage options, of a cluster, its registry or locations; 0: not on the path."""
    for depth, key in enumerate(path, start=1):
        if key == SECRET_KEY and (depth == 1 or path[depth - 2] in ("locations", "registry")):
            return depth
    return 0


def _depth_in_datasource(path: KeyPath) -> int:
    """Returns the number of keys to a credential or to the options of the driver; 0: not on the path."""
    if path[:1] == ("driver",):
        return 1
    return 3 if path[:1] == ("interfaces",) and path[2:3] == ("credential",) else 0


def _is_receiver(path: KeyPath, kind: str) -> bool:
    if not path or path[0] != NOTIFICATION_KEY or path[1:2] == ("on",):
        return False
    return len(path) > 2 or kind not in ("missing", "extra_forbidden", "too_short")


def unknown_word(what: str, word: str, legal: tuple[str, ...]) -> str:
    """``unknown key 'x'``, with the nearest legal one, or else all of them where they are few."""
    close = nearest(word, legal)
    if not close and 0 < len(legal) <= 30:
        close = f"; legal here: {', '.join(legal)}"
    return f"unknown {what} {shorten(word)!r}{close}"


def shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[: _LONGEST_VALUE - 3] + "..."


def _key_path(document: Document, detail: ErrorDetails) -> KeyPath:
    """Returns pydantic's location without the tags of unions, which are not in the document."""
    path: KeyPath = ()
    for index, step in enumerate(detail["loc"]):
        is_missing_key = detail["type"] == "missing" and index == len(detail["loc"]) - 1
        if is_missing_key or document.node((*path, step)) is not None:
            path = (*path, step)
    return path


def _wrong_tag(document: Document, path: KeyPath, detail: ErrorDetails) -> Problem:
    context = detail.get("ctx", {})
    key = str(context["discriminator"]).strip("'")
    if detail["type"] == "union_tag_not_found":
        return document.problem((*path, key), "required key is missing")
    legal = _quoted(str(context["expected_tags"]))
    return document.problem((*path, key), _not_legal(f"unknown {key} ", str(context["tag"]), legal))


def _not_legal(prefix: str, value: str, legal: tuple[str, ...]) -> str:
    verb = "" if prefix else " is not legal"
    return f"{prefix}{shorten(value)!r}{verb}{nearest(value, legal)}; legal: {', '.join(legal)}"


def _quoted(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"'([^']*)'", text))


def _message(detail: ErrorDetails, path: KeyPath, node: Node | None) -> str:
    text = node.value if isinstance(node, ScalarNode) else str(detail["input"])
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "value_error":
        return str(context["error"]).replace(repr(text), repr(shorten(text)))
    if kind in _NOT_LEGAL:
        return _NOT_LEGAL[kind](text, path, context)
    if kind == "string_type" and isinstance(node, ScalarNode) and node.tag not in (STR, NULL):
        return f'{shorten(text)} is not a text: write "{shorten(text)}" in quotes'
    if kind in _WANTED:
        return f"must be {_WANTED[kind]}, not {_described(node)}"
    return f"{shorten(text)!r}: {detail['msg']}"


_WANTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "model_type": "a mapping (key: value)",
    "dict_type": "a mapping (key: value)",
    "tuple_type": "a list",
}
_NOT_LEGAL: dict[str, Callable[[str, KeyPath, dict[str, object]], str]] = {
    "literal_error": lambda text, _, context: _not_legal("", text, _quoted(str(context["expected"]))),
    "enum": lambda text, _, context: _not_legal("", text, _quoted(str(context["expected"]))),
    "string_pattern_mismatch": lambda text, path, _: (
        f"{shorten(text)!r} is not legal: write {_PATTERN_RULES.get(str(path[-1]), _NAME_RULE)}"
    ),
    "greater_than_equal": lambda text, _, context: f"{shorten(text)} is not legal: {context['ge']:g} or more",
    "greater_than": lambda text, _, context: f"{shorten(text)} is not legal: more than {context['gt']:g}",
    "less_than_equal": lambda text, _, context: f"{shorten(text)} is not legal: {context['le']:g} at most",
    "string_too_short": lambda text, path, context: "must not be empty",
    "too_short": lambda text, path, context: "must not be empty",
}


def _described(node: Node | None) -> str:
    if not isinstance(node, ScalarNode):
        return "a mapping" if isinstance(node, MappingNode) else "a list"
    if node.tag == NULL:
        return "empty"
    return repr(shorten(node.value)) if node.tag == STR else shorten(node.value)
