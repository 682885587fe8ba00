"""YAML documents of definition files, which know the positions of their values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from falcon_assets.base.texts import without_credentials
from falcon_assets.catalog.yaml_files.definition_files import definition_files, shown_path, text_of
from falcon_assets.catalog.yaml_files.journal import read_between_changes
from falcon_assets.catalog.yaml_files.secrets import (
    hide_secrets,
    masked_line,
    may_hold_secrets,
    secret_properties,
    secret_values,
)
from falcon_assets.catalog.yaml_files.yaml_nodes import TooManyDocumentsError, child, compose_documents
from falcon_assets.catalog.yaml_files.yaml_values import PlainValues
from falcon_assets.errors import Position, Problem

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
                yield value, f'YAML ends the value at the comma: write it in quotes, {name}: "{value.value}"'
                break
    mapping.value = pairs


KeyPath: TypeAlias = tuple[str | int, ...]

MOST_PROBLEMS = 100
"""Per document: locating each of them takes longer the larger the document is."""

_NAMES = re.compile(r"\bname[\"']?\s*:\s*[\"']?([A-Za-z][\w-]*)")


@dataclass(frozen=True)
class Document:
    """One YAML document: its plain value, and the path of its file, to show and to open."""

    file: str
    lines: list[str] = field(repr=False)
    root: Node = field(repr=False)
    data: Any
    path: Path

    def node(self, path: KeyPath) -> Node | None:
        """None: there is none."""
        node: Node | None = self.root
        for step in path:
            found = child(node, step) if node is not None else None
            node = found[1] if found else None
        return node

    def position(self, path: KeyPath = (), *, at_key: bool = False) -> Position:
        """Returns the position of the value at ``path`` (or of its key); if missing, of its nearest parent."""
        node, mark = self.root, self.root.start_mark
        for index, step in enumerate(path):
            found = child(node, step)
            if found is None:
                break
            key, node = found
            wants_key = at_key and index == len(path) - 1
            mark = key.start_mark if key is not None and (wants_key or not _is_inline(node)) else node.start_mark
        return Position(self.file, mark.line + 1, mark.column + 1)

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> Problem:
        """Returns a problem of the value at ``path``, with its line; secrets in the line are masked."""
        position = self.position(path, at_key=at_key)
        return Problem(position, key_path_text(path), without_credentials(message), self._snippet(position))

    def problem_at(self, node: Node, message: str) -> Problem:
        position = Position(self.file, node.start_mark.line + 1, node.start_mark.column + 1)
        return Problem(position, key_path_text(_path_to(self.root, node)), message, self._snippet(position))

    def _snippet(self, position: Position) -> str:
        line = self.lines[position.line - 1] if position.line <= len(self.lines) else ""
        return without_credentials(hide_secrets(line, position.line - 1, self._secrets))

    @cached_property
    def _secrets(self) -> tuple[ScalarNode, ...]:
        return (*secret_values(self.root), *secret_properties(self.root))


@dataclass
class Files:
    """All definition files of a folder.

    Attributes:
        documents: In the order of the files' paths and within each file.
        problems: Unreadable files, syntax errors, and YAML that definitions may not use.
        unread_names: Names that seem to be declared in the parts that could not be read.
    """

    documents: list[Document] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unread_names: set[str] = field(default_factory=set)
    contents: dict[Path, bytes] = field(default_factory=dict)


def read_files(root: Path, only: str | None = None) -> Files:
    """Reads every definition file below ``root``, except hidden files and folders, between changes by commands.

    ``only`` is the file of a position: no other one is parsed.

    Raises:
        DefinitionStoreError: a change that was interrupted cannot be finished.
    """
    return read_between_changes(root, lambda: _read_files(root, only))


def _read_files(root: Path, only: str | None) -> Files:
    files = Files()

    def report(path: Path, message: str) -> None:
        files.problems.append(Problem(Position(shown_path(path), 1), "", message))

    for path, raw in definition_files(root, report):
        if only is None or shown_path(path) == only:
            read_file(path, raw, files)
    return files


def more_problems(number: int) -> str:
    return f"the document has more problems than are listed: {number:,} others"


def key_path_text(path: KeyPath) -> str:
    """``clusters[0].retention.limit``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def read_file(path: Path, raw: bytes, files: Files) -> None:
    """Adds the documents of one file, and its problems, to ``files``."""
    shown = shown_path(path)
    files.contents[path] = raw
    try:
        text = text_of(raw)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"the file is not UTF-8: byte 0x{raw[error.start]:02x} is not legal there"
        files.problems.append(Problem(Position(shown, line), "", message))
        files.unread_names.update(_NAMES.findall(raw.decode("utf-8", errors="replace")))
        return
    lines = text.splitlines()
    try:
        for root in compose_documents(text):
            _add_document(shown, path, lines, root, files)
    except TooManyDocumentsError as error:
        files.problems.append(Problem(Position(shown, 1), "", str(error)))
        files.unread_names.update(_NAMES.findall(text))
    except yaml.YAMLError as error:
        files.problems.append(_syntax_problem(shown, text, lines, error))
        files.unread_names.update(_NAMES.findall(text))


def _add_document(shown: str, path: Path, lines: list[str], root: Node, files: Files) -> None:
    whole = Document(shown, lines, root, None, path)
    files.problems.extend(whole.problem_at(*one) for one in join_unquoted(root))
    values = PlainValues()
    document = Document(shown, lines, root, values.convert(root), path)
    listed, more = values.problems[:MOST_PROBLEMS], len(values.problems) - MOST_PROBLEMS
    files.problems.extend(document.problem_at(*one) for one in listed)
    if more > 0:
        files.problems.append(document.problem((), more_problems(more)))
    if values.usable:
        files.documents.append(document)
    else:
        files.unread_names.update(_NAMES.findall("\n".join(lines)))


def _syntax_problem(shown: str, text: str, lines: list[str], error: yaml.YAMLError) -> Problem:
    mark = getattr(error, "problem_mark", None)
    begun = getattr(error, "context_mark", None)
    if mark is not None and begun is not None and mark.line >= len(lines):  # where it was looked for in vain says less
        mark = begun
    rule = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    line = mark.line if mark else text.count("\n", 0, getattr(error, "position", 0) or 0)
    column = mark.column if mark else 0
    secret = may_hold_secrets(text)
    if secret:
        rule = re.sub(r"'([^']*)'", lambda found: "'...'" if re.search(r"\w", found[1]) else found[0], str(rule))
    snippet = masked_line(lines, line) if line < len(lines) else ""
    return Problem(Position(shown, line + 1, column + 1), "", f"not YAML: {rule}", snippet)


def _is_inline(node: Node) -> bool:
    """Whether a caret under the value itself helps more than one under its key."""
    if isinstance(node, ScalarNode):
        return bool(node.value or node.style)
    return isinstance(node, CollectionNode) and bool(node.flow_style)


def _path_to(root: Node, wanted: Node) -> KeyPath:
    seen: set[int] = set()
    pending: list[tuple[KeyPath, Node]] = [((), root)]
    while pending:
        path, node = pending.pop()
        if node is wanted:
            return path
        if id(node) in seen or not isinstance(node, CollectionNode):
            continue
        seen.add(id(node))
        if isinstance(node, MappingNode):
            for key, value in node.value:
                name = key.value if isinstance(key, ScalarNode) else "?"
                if key is wanted:
                    return (*path, name)
                pending.append(((*path, name), value))
        else:
            pending.extend(((*path, index), item) for index, item in enumerate(node.value))
    return ()
