"""YAML text with comments, each line with the line of the XML that it is from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, Union

from falcon_assets.errors import printable

Value: TypeAlias = Union[str, int, bool, "Keys", "list[Node]"]
Keys: TypeAlias = "dict[str, Node]"


@dataclass
class Node:
    """A value with its line in the XML, and the comments above it."""

    value: Value
    line: int
    comments: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class YamlText:
    """A text, and for each of its lines the line of the XML."""

    text: str
    origins: tuple[int, ...]

    def origin(self, line: int) -> int:
        """Lines count from 1."""
        return self.origins[min(max(line, 1), len(self.origins)) - 1]


_Line: TypeAlias = tuple[str, int]
_INLINE_WIDTH = 100
_INLINE_KEYS = 5
_PLAIN = re.compile(r"[A-Za-z/][\w./()=+-]*( [\w.()=+-]+)*|\d{4}-\d\d-\d\dT\d\d:\d\dZ", re.ASCII)
_NOT_TEXT = re.compile(r"true|false|null|yes|no|on|off|y|n", re.IGNORECASE)


def yaml_text(keys: Mapping[str, Node], head: Iterable[str], tail: Iterable[str]) -> YamlText:
    """Renders a document; ``head`` and ``tail`` are comments above and below it."""
    lines: list[_Line] = [(line, 1) for line in comment_lines(head)]
    lines += _block(keys)
    lines += [(line, 1) for line in comment_lines(tail)]
    return YamlText("".join(f"{text}\n" for text, _ in lines), tuple(origin for _, origin in lines))


def comment_lines(comments: Iterable[str]) -> Iterator[str]:
    """Yields comments as lines with ``#``; no content can end a comment early."""
    for comment in comments:
        lines = [line.expandtabs(4).rstrip() for line in comment.splitlines()]
        while lines and not lines[0]:
            lines.pop(0)
        while lines and not lines[-1]:
            lines.pop()
        margin = min((len(line) - len(line.lstrip()) for line in lines if line), default=0)
        for line in lines:
            yield f"# {printable(line[margin:])}".rstrip()


def scalar(value: str | int | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and not _NOT_TEXT.fullmatch(value):
        return value
    return '"' + "".join(map(_character, value)) + '"'


def _character(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _block(keys: Mapping[str, Node]) -> Iterator[_Line]:
    for key, node in keys.items():
        for line in comment_lines(node.comments):
            yield line, node.line
        inline = _inline(node)
        if (inline is not None and len(inline) <= _INLINE_WIDTH) or not isinstance(node.value, (dict, list)):
            yield f"{scalar(key)}: {inline}", node.line
        else:
            yield f"{scalar(key)}:", node.line
            lines = _block(node.value) if isinstance(node.value, dict) else _items(node.value)
            yield from ((f"  {line}", origin) for line, origin in lines)


def _items(items: list[Node]) -> Iterator[_Line]:
    for node in items:
        comments = list(node.comments)
        if isinstance(node.value, dict) and node.value:
            first = next(iter(node.value.values()))
            comments += first.comments
            first.comments = []
        for line in comment_lines(comments):
            yield line, node.line
        inline = _inline(node)
        if (inline is not None and len(inline) <= _INLINE_WIDTH) or not isinstance(node.value, dict):
            yield f"- {inline}", node.line
        else:
            for at, (line, origin) in enumerate(_block(node.value)):
                yield f"{'  ' if at else '- '}{line}", origin


def _inline(node: Node) -> str | None:
    """Returns None where the value needs several lines."""
    value = node.value
    if isinstance(value, list):
        parts = [_inline(one) for one in value]
        if any(
            part is None or one.comments or isinstance(one.value, dict) for part, one in zip(parts, value, strict=True)
        ):
            return None
        return f"[{', '.join(part for part in parts if part is not None)}]"
    if isinstance(value, dict):
        if len(value) > _INLINE_KEYS:
            return None
        pairs = [(scalar(key), _inline(one), one) for key, one in value.items()]
        if any(part is None or one.comments or isinstance(one.value, list) for _, part, one in pairs):
            return None
        return "{" + ", ".join(f"{key}: {part}" for key, part, _ in pairs) + "}"
    return scalar(value)
