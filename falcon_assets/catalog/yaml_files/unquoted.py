"""Expressions without quotes in ``{...}``: YAML ends them at their first comma."""

from __future__ import annotations

import re
from collections.abc import Iterator

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

_BEGUN = re.compile(r"[A-Za-z]\w*\([^()]*")


def join_unquoted(root: Node) -> Iterator[tuple[Node, str]]:
    pending, seen = [root], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, SequenceNode):
            pending.extend(node.value)
        elif isinstance(node, MappingNode):
            if node.flow_style:
                yield from _joined(node)
            pending.extend(value for _, value in node.value)


def _joined(mapping: MappingNode) -> Iterator[tuple[Node, str]]:
    pairs: list[tuple[Node, Node]] = []
    rest = list(mapping.value)
    while rest:
        key, value = rest.pop(0)
        pairs.append((key, value))
        if not (isinstance(value, ScalarNode) and not value.style and _BEGUN.fullmatch(value.value)):
            continue
        more = []
        for piece, empty in rest:
            if not (isinstance(piece, ScalarNode) and isinstance(empty, ScalarNode) and not empty.value):
                break
            more.append(piece.value)
            if piece.value.endswith(")"):
                value.value = ",".join([value.value, *more])
                del rest[: len(more)]
                name = key.value if isinstance(key, ScalarNode) else "..."
                yield value, f'YAML ends this at the comma: quote it, {name}: "{value.value}"'
                break
    mapping.value = pairs
