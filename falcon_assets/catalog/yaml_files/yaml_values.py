"""Nodes to plain dicts, lists and scalars; reports YAML that definitions may not use."""

from __future__ import annotations

from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode

from falcon_assets.catalog.yaml_files.yaml_nodes import MAP, SEQ, is_merge, scalar_value, short_tag

MAX_VALUES = 100_000
"""A document with more values, aliases counted as copies, is an error."""

MAX_CHARACTERS = 100_000
"""Of one text: the schema of a table of some thousand columns."""


class PlainValues:
    """Converts one document; mistakes are collected, not raised.

    Aliases share one value, so nested aliases need no more memory than the document; the size without aliases is
    counted, because later steps visit all of it.

    ``usable``: whether the value can be used despite its problems.
    """

    def __init__(self) -> None:
        self.problems: list[tuple[Node, str]] = []
        self.usable = True
        self._done: dict[int, tuple[Any, int]] = {}
        self._open: set[int] = set()

    def convert(self, root: Node) -> Any:
        """Returns the document's plain value: of a repeated key the first value, of a bad tag the text."""
        value, size = self._value(root)
        if size > MAX_VALUES:
            self.usable = False
            self.problems.append((root, f"the document has more than {MAX_VALUES:,} values, aliases written out"))
        return value

    def _value(self, node: Node) -> tuple[Any, int]:
        result: tuple[Any, int]
        if isinstance(node, ScalarNode):
            if len(node.value) > MAX_CHARACTERS:
                self.usable = False
                self.problems.append((node, f"a text of {len(node.value):,} characters: {MAX_CHARACTERS:,} at most"))
                return "", 1
            try:
                return scalar_value(node), 1
            except ValueError as error:
                self.problems.append((node, str(error)))
                return node.value, 1
        known = self._done.get(id(node))
        if known is not None:
            return known
        if id(node) in self._open:
            self.usable = False
            self.problems.append((node, "an alias must not stand inside of what it stands for"))
            return None, 1
        self._open.add(id(node))
        if node.tag not in (MAP, SEQ):
            self.problems.append((node, f"the tag {short_tag(node.tag)} is not supported; leave it out"))
        result = self._mapping(node) if isinstance(node, MappingNode) else self._sequence(node.value)
        self._open.discard(id(node))
        self._done[id(node)] = result
        return result

    def _sequence(self, items: list[Node]) -> tuple[list[Any], int]:
        pairs = [self._value(item) for item in items]
        return [value for value, _ in pairs], 1 + sum(size for _, size in pairs)

    def _mapping(self, node: MappingNode) -> tuple[dict[str, Any], int]:
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        lines: dict[str, int] = {}
        total = 1
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self.problems.append((key, "a key must be a text"))
                continue
            if is_merge(key):
                sources, size = self._merged(value)
                for source in sources:
                    merged = {**source, **merged}
                total += size
                continue
            name: str = key.value
            if name in own:
                self.problems.append((key, f"key {name!r} is given twice, first in line {lines[name]}"))
                continue
            own[name], size = self._value(value)
            lines[name] = key.start_mark.line + 1
            total += size
        return {**merged, **own} if merged else own, total

    def _merged(self, node: Node) -> tuple[list[dict[str, Any]], int]:
        value, size = self._value(node)
        sources = value if isinstance(value, list) else [value]
        if all(isinstance(source, dict) for source in sources):
            return sources, size
        self.problems.append((node, "'<<' takes an alias of a mapping, or a list of such aliases"))
        return [], size
