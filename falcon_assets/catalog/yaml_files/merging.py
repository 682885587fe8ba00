"""Writes a new definition into the old text: comments, order and layout stay as the author left them.

Texts are cut and joined at the positions of YAML's nodes, so unchanged parts stay the same to the byte. The result is
parsed again, and used only if it has exactly the values of the new definition.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from falcon_assets.catalog.yaml_files.yaml_nodes import compose_documents, is_merge
from falcon_assets.catalog.yaml_files.yaml_values import PlainValues

_Edit: TypeAlias = tuple[int, int, str]
"""Start, end and replacement."""
_NAMES = ("name", "input", "url")
"""Keys that identify an item of a list."""


class _CannotMergeError(Exception): ...


def merged(old: str, new: str) -> str:
    """Returns ``old`` changed to the values of ``new``; ``new`` if impossible. Comments of ``new`` are lost."""
    old = old if old.endswith("\n") else f"{old}\n"
    try:
        before, after = _Side(old), _Side(new)
        text = _edited(old, list(_merge(before, before.root, after, after.root)))
        return text if said(text) == said(new) else new
    except (_CannotMergeError, yaml.YAMLError, StopIteration):
        return new


def said(text: str) -> list[str]:
    """Returns the documents of a text, equal for equal values; raises YAMLError."""
    return [canonical(_value(root)) for root in compose_documents(text)]


def canonical(value: Any) -> str:
    """Returns a text that is equal for equal values, in any order of keys; 1 and true differ."""
    return json.dumps(value, sort_keys=True, default=repr)


def has_comments(text: str) -> bool:
    """Raises yaml.YAMLError if it is not YAML."""
    rest = list(text)
    for root in compose_documents(text):
        for node in _all_nodes(root):
            if isinstance(node, ScalarNode):
                start, end = node.start_mark.index, node.end_mark.index
                rest[start:end] = "x" * (end - start)
    return any(mark == "#" and (at == 0 or rest[at - 1].isspace()) for at, mark in enumerate(rest))


@dataclass(frozen=True)
class _Entry:
    """An entry of a mapping or an item of a list: from its key or dash to the end of its value."""

    id: str
    key: str | None
    value: Node
    start: int
    column: int
    end: int


class _Side:
    def __init__(self, text: str) -> None:
        self.text = text
        self.root = next(compose_documents(text))
        seen: set[int] = set()
        for node in _all_nodes(self.root):
            merges = isinstance(node, MappingNode) and any(is_merge(key) for key, _ in node.value)
            if id(node) in seen or merges:
                raise _CannotMergeError  # an alias stands for a text that is elsewhere
            seen.add(id(node))

    def entries(self, node: CollectionNode) -> list[_Entry]:
        if isinstance(node, MappingNode):
            found = [
                _Entry(key.value, key.value, value, key.start_mark.index, key.start_mark.column, self.end(value))
                for key, value in node.value
            ]
        else:
            found = [self._item(item, bool(node.flow_style)) for item in node.value]
        if len({one.id for one in found}) < len(found):
            raise _CannotMergeError
        return found

    def _item(self, item: Node, flow: bool) -> _Entry:
        value = _value(item)
        named = [key for key in _NAMES if isinstance(value, dict) and isinstance(value.get(key), str)]
        identity = f"{named[0]}={value[named[0]]}" if named else canonical(value)
        start = item.start_mark.index
        if not flow:
            start = self.text.rfind("-", 0, start)
            if start < self.line_start(item.start_mark.index) or self.text[start + 1 : item.start_mark.index].strip():
                raise _CannotMergeError
        return _Entry(identity, None, item, start, start - self.line_start(start), self.end(item))

    def end(self, node: Node) -> int:
        """The end of its text; YAML's parser gives for blocks only the start of the next one."""
        if isinstance(node, CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            return self.end(last[1] if isinstance(node, MappingNode) else last)
        end: int = node.end_mark.index
        while end > node.start_mark.index and self.text[end - 1].isspace():
            end -= 1
        return end

    def line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def next_line(self, at: int) -> int:
        found = self.text.find("\n", at)
        return len(self.text) if found < 0 else found + 1

    def first_line(self, entry: _Entry) -> int:
        start = self.line_start(entry.start)
        if self.text[start : entry.start].strip():
            raise _CannotMergeError  # it shares the line with a dash
        while start and self.text[self.line_start(start - 1) : start].lstrip().startswith("#"):
            start = self.line_start(start - 1)
        return start


def _merge(old: _Side, one: Node, new: _Side, other: Node) -> Iterator[_Edit]:
    if _same(one, other):
        return
    if isinstance(one, ScalarNode) or isinstance(other, ScalarNode) or type(one) is not type(other):
        raise _CannotMergeError
    assert isinstance(one, CollectionNode)
    assert isinstance(other, CollectionNode)
    before, after = {entry.id: entry for entry in old.entries(one)}, new.entries(other)
    kept = [entry.id for entry in after if entry.id in before]
    if not kept or (isinstance(one, SequenceNode) and kept != [name for name in before if name in set(kept)]):
        raise _CannotMergeError
    if one.flow_style and len(kept) == len(before) == len(after):
        for entry in after:
            yield from _inline_edits(old, before[entry.id], new, entry)
    elif one.flow_style:
        raise _CannotMergeError
    else:
        yield from _block_edits(old, list(before.values()), new, after, is_block=not other.flow_style)


def _inline_edits(old: _Side, known: _Entry, new: _Side, entry: _Entry) -> Iterator[_Edit]:
    try:
        yield from list(_merge(old, known.value, new, entry.value))
    except _CannotMergeError:
        yield known.value.start_mark.index, known.end, _inline(new, entry)


def _block_edits(
    old: _Side, before: Sequence[_Entry], new: _Side, after: Sequence[_Entry], *, is_block: bool
) -> Iterator[_Edit]:
    by_id, wanted = {entry.id: entry for entry in before}, {entry.id for entry in after}
    for entry, following in zip(before, [*before[1:], None], strict=True):
        if entry.id not in wanted:
            end = old.first_line(following) if following else old.next_line(entry.end)
            yield old.first_line(entry), end, ""
    place, column = None, before[0].column
    for entry in after:
        known = by_id.get(entry.id)
        if known is None:
            at = old.first_line(before[0]) if place is None else old.next_line(place.end)
            yield at, at, " " * column + _written(new, entry, column, is_block=is_block) + "\n"
            continue
        place = known
        try:
            yield from list(_merge(old, known.value, new, entry.value))
        except _CannotMergeError:
            yield known.start, known.end, _written(new, entry, column, is_block=is_block)


def _written(new: _Side, entry: _Entry, column: int, *, is_block: bool) -> str:
    if not is_block:
        return (f"{json.dumps(entry.key)}: " if entry.key is not None else "- ") + _inline(new, entry)
    first, *lines = new.text[entry.start : entry.end].split("\n")
    moved = [first]
    for line in lines:
        if line.strip() and line[: entry.column].strip():
            raise _CannotMergeError
        moved.append(" " * column + line[entry.column :] if line.strip() else "")
    return "\n".join(moved)


def _inline(new: _Side, entry: _Entry) -> str:
    node = entry.value
    text = new.text[node.start_mark.index : entry.end]
    if isinstance(node, CollectionNode):
        is_plain = bool(node.flow_style)
    else:
        style = getattr(node, "style", None)
        is_plain = style in ("'", '"') or (style not in ("|", ">") and not set(text) & set(",[]{}"))
    return text if text and is_plain and "\n" not in text else json.dumps(_value(node), ensure_ascii=False)


def _edited(text: str, edits: list[_Edit]) -> str:
    parts, at = [], 0
    for start, end, replacement in sorted(edits, key=lambda edit: edit[:2]):  # stable: what is added keeps its order
        if start < at:
            raise _CannotMergeError
        parts += [text[at:start], replacement]
        at = end
    return "".join([*parts, text[at:]])


def _value(node: Node) -> Any:
    return PlainValues().convert(node)


def _same(one: Node, other: Node) -> bool:
    return canonical(_value(one)) == canonical(_value(other))


def _all_nodes(root: Node) -> Iterator[Node]:
    """The node and those below it, keys included; aliased nodes are repeated."""
    yield root
    if isinstance(root, MappingNode):
        for key, value in root.value:
            yield key
            yield from _all_nodes(value)
    elif isinstance(root, SequenceNode):
        for item in root.value:
            yield from _all_nodes(item)
