"""Entities of templates: parameters are put in place of values that are parsed already, never into YAML text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from falcon_assets.catalog.validation import unknown_word
from falcon_assets.catalog.yaml_files.documents import Document, KeyPath
from falcon_assets.catalog.yaml_files.yaml_nodes import MAP, STR, node_of, plain_text
from falcon_assets.catalog.yaml_files.yaml_values import PlainValues
from falcon_assets.errors import InvalidDefinitionsError, Problem
from falcon_assets.features.templates.definitions import LISTS, Parameter, Template

_HOLE = re.compile(r"\{\{ *([A-Za-z][A-Za-z0-9_-]*) *\}\}")
_MOST_ENTITIES = 1_000
FOR, IN, ENTITIES = "for", "in", "entities"


def body_problems(document: Document, template: Template) -> Iterator[Problem]:
    """Problems of holes and loops of a template, in words and with their lines."""
    used = set[str]()
    for path, item in _items(document):
        names = dict.fromkeys(template.parameters, "")
        if isinstance(item, MappingNode) and _value(item, FOR) is not None:
            yield from _loop_problems(document, path, template)
            loop = document.node((*path, FOR))
            names[loop.value if isinstance(loop, ScalarNode) else ""] = ""
            over = document.node((*path, IN))
            used.add(over.value if isinstance(over, ScalarNode) else "")
            inner = document.node((*path, ENTITIES))
        else:
            inner = item
        for node, is_key in _texts(inner):
            for name in _HOLE.findall(node.value):
                used.add(name)
                if name not in names:
                    yield document.problem_at(node, unknown_word("parameter", name, tuple(names)))
                elif (what := _alone(template.parameters.get(name))) and not _HOLE.fullmatch(node.value.strip()):
                    yield document.problem_at(node, f"{name!r} is {what}: it stands alone, not within a text")
            if is_key and "{{" in node.value:
                yield document.problem_at(node, "a parameter cannot stand in a key")
            elif "{{" in (rest := _HOLE.sub("", node.value)) or "}}" in rest:
                yield document.problem_at(node, "only the name of a parameter can stand in {{ }}")
    for name in template.parameters:
        if name not in used:
            yield document.problem(("parameters", name), f"the parameter {name!r} is not used", at_key=True)


def _alone(parameter: Parameter | None) -> str:
    """Why it has to stand alone; empty: it has not."""
    if parameter is None:
        return ""
    return "a secret" if parameter.secret else "a list" if parameter.type in LISTS else ""


def _loop_problems(document: Document, path: KeyPath, template: Template) -> Iterator[Problem]:
    data: Any = document.data["entities"][path[1]]
    for key in data:
        if key not in (FOR, IN, ENTITIES):
            yield document.problem((*path, key), unknown_word("key", key, (FOR, IN, ENTITIES)), at_key=True)
    if not isinstance(data.get(FOR), str) or not _HOLE.fullmatch(f"{{{{{data.get(FOR)}}}}}"):
        yield document.problem((*path, FOR), "must be a name")
    elif data[FOR] in template.parameters:
        yield document.problem((*path, FOR), f"{data[FOR]!r} is a parameter: choose another name")
    lists = tuple(name for name, one in template.parameters.items() if one.type in LISTS)
    if data.get(IN) not in lists:
        yield document.problem((*path, IN), unknown_word("list", str(data.get(IN)), lists))
    if not isinstance(data.get(ENTITIES), list) or not all(isinstance(one, dict) for one in data[ENTITIES]):
        yield document.problem((*path, ENTITIES), "must be a list of entities")


def rendered(document: Document, values: Mapping[str, Any], use: Mapping[str, Any]) -> list[Document]:
    """Returns the entities as documents, whose positions are those of the template.

    ``values`` has plain values of parameters; those without one are left out, with what consists of them. ``use`` is
    written into each entity.

    Raises:
        InvalidDefinitionsError: a text needs a parameter that has no value, or there are too many entities.
    """
    found = list[Document]()
    for path, item in _items(document):
        rounds: list[tuple[Node, Mapping[str, Any]]] = [(item, values)]
        loop = document.node((*path, FOR))
        if isinstance(loop, ScalarNode):
            over = document.node((*path, IN))
            inner = document.node((*path, ENTITIES))
            assert isinstance(over, ScalarNode) and isinstance(inner, SequenceNode)
            each = [{**values, loop.value: value} for value in values.get(over.value) or ()]
            rounds = [(one, own) for own in each for one in inner.value]
        found += [_entity(document, node, own, use) for node, own in rounds]
        if len(found) > _MOST_ENTITIES:
            raise InvalidDefinitionsError([document.problem(path, f"it makes more than {_MOST_ENTITIES:,} entities")])
    return found


def _entity(document: Document, node: Node, values: Mapping[str, Any], use: Mapping[str, Any]) -> Document:
    root = _Filling(document, values).filled(node) or node
    assert isinstance(root, MappingNode)
    pairs = [pair for pair in root.value if pair[0].value != "template"]
    key = ScalarNode(STR, "template", node.start_mark, node.start_mark)
    root = MappingNode(
        MAP, [*pairs, (key, node_of(use, lambda _: node))], node.start_mark, node.end_mark, root.flow_style
    )
    data = PlainValues().convert(root)
    return Document(document.file, document.lines, root, data, document.path)


class _Filling:
    """Fills one entity; what several aliases share is filled once."""

    def __init__(self, document: Document, values: Mapping[str, Any]) -> None:
        self._document, self._values = document, values
        self._done: dict[int, Node | None] = {}

    def filled(self, node: Node) -> Node | None:
        """None: it consists of parameters that have no value."""
        if id(node) not in self._done:
            self._done[id(node)] = self._filled(node)
        return self._done[id(node)]

    def _filled(self, node: Node) -> Node | None:
        marks = (node.start_mark, node.end_mark)
        if isinstance(node, ScalarNode):
            return self._scalar(node)
        if isinstance(node, MappingNode):
            pairs = [(key, inner) for key, value in node.value if (inner := self.filled(value)) is not None]
            return MappingNode(node.tag, pairs, *marks, node.flow_style) if pairs or not node.value else None
        assert isinstance(node, SequenceNode)
        items = [inner for value in node.value if (inner := self.filled(value)) is not None]
        return SequenceNode(node.tag, items, *marks, node.flow_style) if items or not node.value else None

    def _scalar(self, node: ScalarNode) -> Node | None:
        if whole := _HOLE.fullmatch(node.value.strip()):
            value = self._values.get(whole[1])
            return None if value is None else node_of(value, lambda _: node)
        if "{{" not in node.value:
            return node
        for name in _HOLE.findall(node.value):
            if self._values.get(name) is None:
                message = f"the parameter {name!r} has no value, and this text needs it"
                raise InvalidDefinitionsError([self._document.problem_at(node, message)])
        text = _HOLE.sub(lambda found: plain_text(self._values[found[1]]), node.value)
        return ScalarNode(STR, text, node.start_mark, node.end_mark, '"')


def secret_paths(document: Document, template: Template) -> Callable[[Any], dict[str, Any]]:
    """Returns a function that finds the secrets of a template in the plain data of an entity that it has made."""
    places: dict[str, list[KeyPath]] = {}
    for path, item in _items(document):
        inner = document.node((*path, ENTITIES)) if _value(item, FOR) is not None else None
        for root in inner.value if isinstance(inner, SequenceNode) else [item]:
            for place, node in _paths(root, ()):
                hole = _HOLE.fullmatch(node.value.strip())
                if hole and hole[1] in template.parameters and template.parameters[hole[1]].secret:
                    places.setdefault(hole[1], []).append(place)

    def find(data: Any) -> dict[str, Any]:
        found = {name: [_at(data, path) for path in paths] for name, paths in places.items()}
        return {name: value for name, those in found.items() if (value := next(filter(None, those), None)) is not None}

    return find


def _at(data: Any, path: KeyPath) -> Any:
    for step in path:
        if isinstance(data, dict) or (isinstance(data, list) and isinstance(step, int) and step < len(data)):
            data = data.get(step) if isinstance(data, dict) else data[step]  # type: ignore[index]
        else:
            return None
    return data if isinstance(data, dict) else None


def _items(document: Document) -> Iterator[tuple[KeyPath, Node]]:
    found = document.node(("entities",))
    for index, item in enumerate(found.value if isinstance(found, SequenceNode) else ()):
        yield ("entities", index), item


def _value(node: Node, key: str) -> Node | None:
    pairs = node.value if isinstance(node, MappingNode) else ()
    return next((value for name, value in pairs if name.value == key), None)


def _texts(root: Node | None) -> Iterator[tuple[ScalarNode, bool]]:
    """All texts below a node, and whether each is a key; what several aliases share is yielded once."""
    pending, seen = [(root, False)], set[int]()
    while pending:
        node, is_key = pending.pop()
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, ScalarNode):
            yield node, is_key
        elif isinstance(node, MappingNode):
            pending += [one for key, value in node.value for one in ((key, True), (value, False))]
        else:
            pending += [(one, False) for one in node.value]


def _paths(node: Node, path: KeyPath) -> Iterator[tuple[KeyPath, ScalarNode]]:
    if isinstance(node, ScalarNode):
        yield path, node
    elif isinstance(node, MappingNode):
        for key, value in node.value:
            yield from _paths(value, (*path, str(key.value)))
    else:
        for index, item in enumerate(node.value):
            yield from _paths(item, (*path, index))
