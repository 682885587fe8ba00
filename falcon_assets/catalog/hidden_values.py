"""Stars in recorded definitions, and their replacement by values of the present definition, by key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Set
from typing import Any, TypeAlias

from yaml import YAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from falcon_assets.base.texts import STARS, without_credentials
from falcon_assets.catalog.stored_tree import has_hidden_values, masked
from falcon_assets.catalog.yaml_files.secrets import NOTIFICATION_KEY, Span, spans_of
from falcon_assets.catalog.yaml_files.yaml_nodes import compose_documents
from falcon_assets.errors import OldDefinitionError
from falcon_assets.model.secret_values import HIDDEN_KEYS

_Step: TypeAlias = tuple[str | int, str | None]

_HIDDEN = re.compile(r"(?<![^\s\[{,:])\*+(?![^\s\]},])")
"""A value that may have been hidden; stars within a text may look alike."""
_MARK, _VALUE = "\ue000", "\ue001"
"""Placeholders for a star and for a whole value: YAML does not allow stars there."""
UNKNOWN = "hidden"
WITHOUT = HIDDEN_KEYS | {NOTIFICATION_KEY}
"""Keys with secrets that reruns take from the present definition as a whole."""
_SAID = frozenset({"description", "tags", "groups"})
"""Keys that no computation depends on."""


def with_present_values(text: str, now: Any, kind: str, leave: Set[str] = frozenset()) -> str:
    """Returns the recorded text with the present values in place of those that are not recorded.

    The password in a URL is replaced only if the rest of the URL is unchanged: no other host must receive it.

    Args:
        text: A recorded definition.
        now: The present definition as plain values; None: the entity does not exist.
        kind: Of the entity, for people.
        leave: Keys below which missing values become ``hidden``.

    Raises:
        OldDefinitionError: the present definition has no such values; names their keys, and says what to do.
    """
    marked = _marked(text)
    edits: list[tuple[Span, str]] = []
    missing: list[str] = []
    for path, node in _hidden_in(marked):
        found = _at(now, path)
        whole = _is_whole(node)
        if found is None or not (whole or without_credentials(str(found)) == node.value):
            keys = {str(key) for key, _ in path}
            if not keys & (leave | _SAID):
                missing.append(_said(path, whole=whole))
            found = UNKNOWN if whole else node.value
        edits.append((spans_of(marked, [node])[0], json.dumps(found)))
    if missing:
        raise OldDefinitionError(_why(missing, kind, is_gone=now is None))
    for (start, end), value in sorted(edits, reverse=True):
        marked = f"{marked[:start]}{value}{marked[end:]}"
    return marked.replace(_MARK, "*")


def shown_hidden(text: str) -> str:
    """Returns the text as YAML, with :data:`UNKNOWN` for hidden values."""
    marked = _marked(text)
    try:
        spans = spans_of(marked, [node for _, node in _hidden_in(marked) if _is_whole(node)])
    except OldDefinitionError:  # who reads it says where
        spans = []
    for start, end in spans:
        marked = f"{marked[:start]}{UNKNOWN}{marked[end:]}"
    return marked.replace(_MARK, "*")


def as_recorded(text: str) -> str:
    """Returns a text recorded by an earlier version of this package without the secrets that it contains."""
    marked = _marked(text)
    try:
        hidden = spans_of(marked, [node for _, node in _hidden_in(marked) if _is_whole(node)])
    except OldDefinitionError:  # it cannot run again, whatever is in it
        return masked(text)
    for start, end in hidden:
        marked = f"{marked[:start]}{_VALUE}{marked[end:]}"
    return masked(marked).replace(_VALUE, STARS).replace(_MARK, "*")


def _marked(text: str) -> str:
    return _HIDDEN.sub(lambda found: _MARK * len(found[0]), text) if has_hidden_values(text) else text


def _is_whole(node: ScalarNode) -> bool:
    return _MARK in node.value and not node.value.replace(_MARK, "").strip()


def _hidden_in(marked: str) -> Iterator[tuple[tuple[_Step, ...], ScalarNode]]:
    try:
        for root in compose_documents(marked):
            for path, node in _leaves(root, ()):
                if _is_whole(node) or (STARS in node.value and re.search(rf"[=:/]{re.escape(STARS)}", node.value)):
                    yield path, node
    except YAMLError as error:
        raise OldDefinitionError("what is recorded cannot be read") from error


def _leaves(node: Node, path: tuple[_Step, ...]) -> Iterator[tuple[tuple[_Step, ...], ScalarNode]]:
    if isinstance(node, ScalarNode):
        yield path, node
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            yield from _leaves(value, (*path, (str(key.value), None)))
    elif isinstance(node, SequenceNode):
        for number, item in enumerate(node.value):
            said = item.value if isinstance(item, MappingNode) else ()
            name = next((value.value for key, value in said if key.value == "name"), None)
            yield from _leaves(item, (*path, (number, name if isinstance(name, str) else None)))


def _at(now: Any, path: tuple[_Step, ...]) -> Any:
    for key, name in path:
        if isinstance(now, dict):
            now = now.get(key)
        elif isinstance(now, list) and name is not None:
            now = next((one for one in now if isinstance(one, dict) and one.get("name") == name), None)
        elif isinstance(now, list) and isinstance(key, int) and key < len(now):
            now = now[key]
        else:
            return None
    return now


def _said(path: tuple[_Step, ...], *, whole: bool) -> str:
    where = ".".join(str(key if name is None else name) for key, name in path)
    return where if whole else f"{where} (a password in a URL)"


def _why(missing: list[str], kind: str, *, is_gone: bool) -> str:
    what = ", ".join(dict.fromkeys(missing))
    there = (
        f"the {kind} is not declared any more" if is_gone else f"the present definition of the {kind} has none there"
    )
    return f"secrets are not recorded but taken from the present definition, and {there}: {what}; declare it again"
