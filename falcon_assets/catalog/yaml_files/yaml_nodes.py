"""YAML text to nodes with positions, and nodes to plain values, by the rules of YAML's core schema.

Only ``true``/``false``, whole numbers, decimals and ``null`` are more than text: ``yes``, ``on``, ``2013-01-01`` and
``2013-01-01T00:00Z`` stay unchanged. No object is ever constructed from a tag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

if TYPE_CHECKING:

    class _Parser:
        def __init__(self, stream: str) -> None: ...
        def check_node(self) -> bool: ...
        def get_node(self) -> Node: ...
        def dispose(self) -> None: ...

else:
    try:
        from yaml.cyaml import CParser as _Parser
    except ImportError:

        class _Parser(Reader, Scanner, Parser, Composer):
            def __init__(self, stream: str) -> None:
                Reader.__init__(self, stream)
                Scanner.__init__(self)
                Parser.__init__(self)
                Composer.__init__(self)


MAX_DEPTH = 64
"""Deeper nesting is an error; no legal definition approaches it, and the C parser recurses on the machine's stack."""

TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"

MAX_DOCUMENTS = 5_000

_PREFIX = "tag:yaml.org,2002:"
STR, INT, FLOAT, BOOL, NULL, MAP, SEQ = (
    _PREFIX + name for name in ("str", "int", "float", "bool", "null", "map", "seq")
)
_SCALARS = {
    NULL: re.compile(r"|~|null|Null|NULL"),
    BOOL: re.compile(r"true|True|TRUE|false|False|FALSE"),
    INT: re.compile(r"[-+]?[0-9]{1,18}|0o[0-7]{1,18}|0x[0-9a-fA-F]{1,15}"),
    FLOAT: re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"),
}
_MAY_BE_MORE_THAN_TEXT = frozenset("~ntfNTF+-.0123456789")


class TooDeepError(yaml.YAMLError): ...


class TooManyDocumentsError(yaml.YAMLError): ...


class _Loader(_Parser):
    """Composes nodes, resolves plain scalars by the core schema, and limits the nesting."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.depth = 0

    def resolve(self, kind: type[Node], value: str, implicit: tuple[bool, bool]) -> str:
        if kind is ScalarNode:
            return _core_tag(value) if implicit[0] else STR
        return MAP if kind is MappingNode else SEQ

    def descend_resolver(self, parent: Node | None, index: Any) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooDeepError(TOO_DEEP)

    def ascend_resolver(self) -> None:
        self.depth -= 1


def compose_documents(text: str) -> Iterator[Node]:
    """Yields the root node of every document, empty ones left out.

    Raises:
        yaml.YAMLError: after the documents before the mistake.
    """
    loader = _Loader(text)
    found = 0
    try:
        while loader.check_node():
            found += 1
            if found > MAX_DOCUMENTS:
                raise TooManyDocumentsError(f"the file has more than {MAX_DOCUMENTS:,} documents: split it")
            node = loader.get_node()
            if not (node.tag == NULL and node.value == ""):
                yield node
    except yaml.MarkedYAMLError as error:
        # The C scanner looks ahead: some versions of it stop at a limit of their own before ours is seen.
        if "nesting" in (error.problem or ""):
            raise TooDeepError(TOO_DEEP) from error
        raise
    finally:
        loader.dispose()


@lru_cache(maxsize=10_000)
def _core_tag(value: str) -> str:
    if not value:
        return NULL
    if value[0] in _MAY_BE_MORE_THAN_TEXT:
        for tag, pattern in _SCALARS.items():
            if pattern.fullmatch(value):
                return tag
    return STR


def scalar_value(node: ScalarNode) -> Any:
    """Returns the plain value of a scalar.

    Raises:
        ValueError: the text does not fit its explicit tag (``!!int abc``), or the tag is not of the core schema.
    """
    text: str = node.value
    tag: str = node.tag
    if tag == STR:
        return text
    if tag not in _SCALARS:
        raise ValueError(f"the tag {short_tag(tag)} is not supported; leave it out")
    if not _SCALARS[tag].fullmatch(text):
        raise ValueError(f"the value does not fit its tag {short_tag(tag)}")
    if tag == NULL:
        return None
    if tag == BOOL:
        return text.lower() == "true"
    if tag == FLOAT:
        return float(re.sub(r"\.(inf|nan)", r"\1", text.lower()))
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def short_tag(tag: str) -> str:
    return "!!" + tag[len(_PREFIX) :] if tag.startswith(_PREFIX) else tag


def is_merge(key: Node) -> bool:
    return isinstance(key, ScalarNode) and key.value == "<<" and not key.style


def child(node: Node, step: str | int) -> tuple[Node | None, Node] | None:
    """Returns key (None in a list) and value node below ``node``, including merged mappings; None: there is none."""
    if isinstance(node, SequenceNode):
        items: list[Node] = node.value
        return (None, items[step]) if isinstance(step, int) and step < len(items) else None
    if not isinstance(node, MappingNode):
        return None
    for key, value in node.value:
        if isinstance(key, ScalarNode) and key.value == step and not is_merge(key):
            return key, value
    for key, value in node.value:
        if is_merge(key):
            sources = value.value if isinstance(value, SequenceNode) else [value]
            for source in sources:
                found = child(source, step)
                if found is not None:
                    return found
    return None


def node_of(value: Any, at: Callable[[tuple[str | int, ...]], Node], path: tuple[str | int, ...] = ()) -> Node:
    """Returns a plain value as a node; ``at`` says at whose place each part of it is shown."""
    place = at(path)
    marks = (place.start_mark, place.end_mark)
    if isinstance(value, Mapping):
        pairs = []
        for key, inner in value.items():
            node = node_of(inner, at, (*path, key))
            pairs.append((ScalarNode(STR, key, node.start_mark, node.end_mark), node))
        return MappingNode(MAP, pairs, *marks, True)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return SequenceNode(SEQ, [node_of(one, at, (*path, index)) for index, one in enumerate(value)], *marks, True)
    if value is None:
        return ScalarNode(NULL, "null", *marks)
    tag = next((tag for kind, tag in _TAGS if isinstance(value, kind)), STR)
    return ScalarNode(tag, plain_text(value), *marks, '"' if tag == STR else None)


def plain_text(value: Any) -> str:
    """Returns the text of a plain value."""
    return str(value).lower() if isinstance(value, bool) else str(value)


_TAGS = ((bool, BOOL), (int, INT), (float, FLOAT))
