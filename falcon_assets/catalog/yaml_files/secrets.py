"""Hides values below ``storage_options``, credentials and receivers of notifications, even in source lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import TypeAlias

from yaml.error import Mark
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from falcon_assets.model.reference import NAMES
from falcon_assets.model.secret_values import CREDENTIAL, DRIVER, SECRET_KEY, is_secret

NOTIFICATION_KEY = "notification"
_EVENTS_KEY = "on"
_PROPERTIES, _OPTIONS = "properties", "options"
_LOOKS_LIKE_IT = re.compile(
    r"option|notif|secret|passw|passphrase|token|credential|driver|(access|account|api|private)[._-]?key|pwd|apikey",
    re.IGNORECASE,
)

_LINE_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
Span: TypeAlias = tuple[int, int]
"""Start and end, exclusive."""
_OPENS = re.compile(
    r"[\w.-]*(?:storage.?option|notif|secret|passw|passphrase|token|credential"
    r"|(?:access|account|api|private)[._-]?key|\bpwd|\bapikey)[\w.-]*[\"']?\s*:|(?<![\w.-])driver[\"']?\s*:",
    re.IGNORECASE,
)
"""A key below which everything may be secret."""
_KEY = re.compile(r"[\s-]*[A-Za-z_][\w.-]*:(?=\s|$)")
_QUOTED = re.compile(r"'[^'\n]*'|\"(?:\\.|[^\"\\\n])*\"")
_NO_SPACE = re.compile(r"\S")


def is_secret_key(key: str) -> bool:
    """Whether the key is ``storage_options`` or ``credential``, or a misspelling of one."""
    spelled = key.lower()
    return bool(
        get_close_matches(spelled, [SECRET_KEY], cutoff=0.6) or get_close_matches(spelled, [CREDENTIAL], 1, 0.8)
    )


def may_hold_secrets(text: str) -> bool:
    """Whether an unparsed text may have storage options, or properties that are secret by their names."""
    return bool(_LOOKS_LIKE_IT.search(text))


def masked_line(lines: Sequence[str], number: int) -> str:
    """Returns line ``number`` (from 0) of a text that could not be parsed, with stars where a secret may be.

    Without a parser the indentation decides what is below ``storage_options``, ``notification`` or a key that is secret
    by its name. Below an unclosed quote or bracket everything that follows may be secret.
    """
    line = lines[number]
    for above in range(number, -1, -1):
        if above < number and lines[above].startswith("---"):
            return line
        opener = _OPENS.search(lines[above])
        if opener and not _is_over(opener, lines[above + 1 : number + 1]):
            key = _KEY.match(line)
            start = opener.end() if above == number else key.end() if key else _depth(line)
            return line[:start] + _NO_SPACE.sub("*", line[start:])
    return line


def _is_over(opener: re.Match[str], after: Sequence[str]) -> bool:
    below = list(takewhile(lambda one: not one.strip() or _depth(one) > opener.start(), after))
    return len(below) < len(after) and not _is_open("\n".join([opener.string[opener.end() :], *below]))


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" -"))


def _is_open(text: str) -> bool:
    plain = _QUOTED.sub("", text)
    return (
        any(plain.count(one) for one in "'\"")
        or plain.count("{") > plain.count("}")
        or plain.count("[") > plain.count("]")
    )


def spans_of(text: str, nodes: Iterable[ScalarNode]) -> list[Span]:
    """Returns the spans of values in the text, the last first, without empty ones and without blanks after blocks."""
    starts = [0, *(found.end() for found in _LINE_BREAK.finditer(text))]

    def place(mark: Mark) -> int:
        return min(starts[mark.line] + mark.column, len(text)) if mark.line < len(starts) else len(text)

    found = {(place(node.start_mark), place(node.end_mark)) for node in nodes}
    spans = ((start, start + len(text[start:end].rstrip())) for start, end in found)
    return sorted((one for one in spans if one[0] < one[1]), reverse=True)


def hide_secrets(line: str, number: int, secrets: Iterable[ScalarNode]) -> str:
    characters = list(line)
    for node in secrets:
        start, end = node.start_mark, node.end_mark
        if start.line <= number <= end.line:
            first = start.column if number == start.line else 0
            last = end.column if number == end.line else len(characters)
            characters[first:last] = "*" * len(characters[first:last])
    return "".join(characters)


def secret_values(root: Node, *, names: bool = True, legal: bool = False) -> Iterator[ScalarNode]:
    """Yields the values in a document that must not be shown.

    ``names``: including those of ``{env: NAME}`` and ``{file: PATH}``. ``legal``: the document has no problems, so the
    ``options`` of a feed are no misspelt storage options, and only those are secret that are so by their names.
    """
    options = root if legal and _is_a(root, "feed") else None
    datasource = root if _is_a(root, "datasource") else None
    for node in _nodes(root):
        for key, value in node.value if isinstance(node, MappingNode) else ():
            if node is options and key.value == _OPTIONS:
                yield from _named(key, value, _OPTIONS)
                continue
            for secret in (value,) if node is datasource and _is_driver(key) else _secret_nodes(key, value):
                found = [leaf for leaf in _nodes(secret) if isinstance(leaf, ScalarNode)]
                shown = set() if names else {id(name) for name in _variables(secret)}
                yield from (leaf for leaf in found if id(leaf) not in shown)


def secret_properties(root: Node) -> Iterator[ScalarNode]:
    """Yields the values of properties that are secret by their names; references are not."""
    for node in _nodes(root):
        for key, value in node.value if isinstance(node, MappingNode) else ():
            yield from _named(key, value, _PROPERTIES)


def _named(key: Node, value: Node, wanted: str) -> Iterator[ScalarNode]:
    if isinstance(key, ScalarNode) and key.value == wanted and isinstance(value, MappingNode):
        for name, inner in value.value:
            if isinstance(name, ScalarNode) and isinstance(inner, ScalarNode) and is_secret(name.value):
                yield inner


def _is_a(root: Node, kind: str) -> bool:
    said = root.value if isinstance(root, MappingNode) else ()
    return any(key.value == "kind" and value.value == kind for key, value in said)


def _is_driver(key: Node) -> bool:
    return isinstance(key, ScalarNode) and bool(get_close_matches(key.value.lower(), [DRIVER], cutoff=0.8))


def _names_receivers(key: str) -> bool:
    """Whether the key is ``notification``, or a misspelling; ``locations`` has most of its letters."""
    return key.startswith("notif") or bool(get_close_matches(key, [NOTIFICATION_KEY], cutoff=0.8))


def _secret_nodes(key: Node, value: Node) -> Iterator[Node]:
    if isinstance(key, ScalarNode) and is_secret_key(key.value):
        yield value
    elif isinstance(key, ScalarNode) and _names_receivers(key.value.lower()):
        if isinstance(value, MappingNode):  # the events of a notification are none
            yield from (inner for name, inner in value.value if name.value != _EVENTS_KEY)
        else:
            yield value


def _variables(root: Node) -> Iterator[Node]:
    for node in _nodes(root):
        if isinstance(node, MappingNode) and len(node.value) == 1 and node.value[0][0].value in NAMES:
            yield node.value[0][1]


def _nodes(root: Node) -> Iterator[Node]:
    seen: set[int] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, SequenceNode):
            pending.extend(node.value)
        elif isinstance(node, MappingNode):
            pending.extend(value for _, value in node.value)
