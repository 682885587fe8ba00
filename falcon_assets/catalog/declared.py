"""Entities together with the documents that declare them: the input of the checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError
from yaml.nodes import SequenceNode

from falcon_assets.catalog.validation import unknown_word, validation_problems
from falcon_assets.catalog.yaml_files.definition_files import definition_files
from falcon_assets.catalog.yaml_files.documents import Document, Files, KeyPath
from falcon_assets.errors import Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.entity import KINDS, Entity
from falcon_assets.model.feed import Feed, FeedCluster
from falcon_assets.model.process import Process
from falcon_assets.model.transfer import Export, Import

EntityT = TypeVar("EntityT", Cluster, Feed, Process, Datasource)


@dataclass(frozen=True)
class Declared(Generic[EntityT]):
    entity: EntityT
    document: Document

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> Problem:
        return self.document.problem(path, message, at_key=at_key)

    def warning(self, path: KeyPath, message: str) -> Problem:
        return replace(self.document.problem(path, message), is_warning=True)


@dataclass(frozen=True)
class Definitions:
    """All entities that could be parsed, by name; of two with one name, the first.

    Attributes:
        again: Entities whose name was already taken, each with the first of that name.
        unparsed: Kind and name of entities that could not be parsed; kind "": unknown.
        files_to_come: Workflows that are about to be written with the definitions, relative to ``root``.
    """

    root: Path
    clusters: dict[str, Declared[Cluster]]
    feeds: dict[str, Declared[Feed]]
    processes: dict[str, Declared[Process]]
    datasources: dict[str, Declared[Datasource]]
    again: tuple[tuple[Document, Document], ...]
    unparsed: frozenset[tuple[str, str]]
    files_to_come: frozenset[str] = frozenset()

    def is_unparsed(self, kind: str, name: str) -> bool:
        """Whether there may be such an entity that could not be parsed: other checks then report nothing about it."""
        return (kind, name) in self.unparsed or ("", name) in self.unparsed

    def all(self) -> Iterator[Declared[Cluster] | Declared[Datasource] | Declared[Feed] | Declared[Process]]:
        yield from self.clusters.values()
        yield from self.datasources.values()
        yield from self.clustered()

    def clustered(self) -> Iterator[Declared[Feed] | Declared[Process]]:
        yield from self.feeds.values()
        yield from self.processes.values()

    def feed_clusters(self, feed: Declared[Feed]) -> Iterator[tuple[int, FeedCluster, Cluster]]:
        for index, entry in enumerate(feed.entity.clusters):
            if entry.name in self.clusters:
                yield index, entry, self.clusters[entry.name].entity


def transfers_of(feed: Declared[Feed]) -> Iterator[tuple[KeyPath, Import | Export]]:
    """Yields the imports and exports of a feed, with their keys."""
    for index, entry in enumerate(feed.entity.clusters):
        if entry.import_:
            yield ("clusters", index, "import"), entry.import_
        path: KeyPath = ("clusters", index, "export")
        is_listed = isinstance(feed.document.node(path), SequenceNode)
        for number, export in enumerate(entry.export or ()):
            yield (*path, number) if is_listed else path, export


def cluster_names(entity: Feed | Process) -> list[str]:
    if isinstance(entity, Feed):
        return [entry.name for entry in entity.clusters]
    return [entry.name for entry in entity.clusters]


def parse_documents(root: Path, files: Files) -> tuple[Definitions, list[Problem]]:
    """Returns the entities of all documents, and the problems within each document."""
    problems = list(files.problems)
    clusters: dict[str, Declared[Cluster]] = {}
    feeds: dict[str, Declared[Feed]] = {}
    processes: dict[str, Declared[Process]] = {}
    datasources: dict[str, Declared[Datasource]] = {}
    again: list[tuple[Document, Document]] = []
    unparsed = {("", name) for name in files.unread_names}
    for document in files.documents:
        kind, entity, own_problems = _parse(document)
        problems.extend(own_problems)
        if isinstance(entity, Cluster):
            first = clusters.setdefault(entity.name, Declared(entity, document)).document
        elif isinstance(entity, Feed):
            first = feeds.setdefault(entity.name, Declared(entity, document)).document
        elif isinstance(entity, Process):
            first = processes.setdefault(entity.name, Declared(entity, document)).document
        elif isinstance(entity, Datasource):
            first = datasources.setdefault(entity.name, Declared(entity, document)).document
        else:
            unparsed.add((kind, _name(document)))
            continue
        if first is not document:
            again.append((document, first))
    return Definitions(root, clusters, feeds, processes, datasources, tuple(again), frozenset(unparsed)), problems


def _parse(document: Document) -> tuple[str, Entity | None, list[Problem]]:
    legal = tuple(KINDS)
    if not isinstance(document.data, dict):
        return "", None, [document.problem((), f"a document must be a mapping with a kind: {', '.join(legal)}")]
    kind = document.data.get("kind")
    if kind is None:
        return "", None, [document.problem(("kind",), f"required key is missing: write {', '.join(legal)}")]
    if not isinstance(kind, str):
        return "", None, [document.problem(("kind",), f"must be one of {', '.join(legal)}")]
    if kind not in KINDS:
        return "", None, [document.problem(("kind",), unknown_word("kind", kind, legal))]
    model = KINDS[kind]
    try:
        return kind, model.model_validate(document.data), []
    except ValidationError as error:
        return kind, None, list(validation_problems(document, model, error))


def _name(document: Document) -> str:
    return str(document.data.get("name", "")) if isinstance(document.data, dict) else ""


_DOCUMENTS = re.compile(rb"^---.*$", re.MULTILINE)
_KEY = re.compile(rb"""^(kind|name)[ \t]*:[ \t]*["']?([A-Za-z][\w-]*)""", re.MULTILINE)


def declared_names(root: Path) -> Iterator[tuple[str, str]]:
    """Yields kind and name of entities in the usual notation; parses and checks nothing."""
    for _, content in definition_files(root, lambda _path, _why: None):
        for document in _DOCUMENTS.split(content):
            found = {key.decode(): value.decode() for key, value in _KEY.findall(document)}
            if len(found) == 2:
                yield found["kind"], found["name"]
