"""Entities together with the documents that declare them: the input of the checks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from yaml.nodes import SequenceNode

from falcon_assets.catalog.made_feeds import MadeDocument, plans_of
from falcon_assets.catalog.validation import unknown_word, validation_problems
from falcon_assets.catalog.yaml_files.definition_files import definition_files
from falcon_assets.catalog.yaml_files.documents import Document, Files, KeyPath
from falcon_assets.errors import Problem
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.datasource import Datasource
from falcon_assets.model.entity import KINDS, Entity
from falcon_assets.model.feed import Feed, FeedCluster
from falcon_assets.model.flow import Flow
from falcon_assets.model.process import Process
from falcon_assets.model.transfer import Export, Import
from falcon_assets.planning.flows.plans import FlowPlan

EntityT = TypeVar("EntityT", Cluster, Feed, Process, Datasource, Flow)


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
        plans: Of the flows that can be planned.
        files_to_come: Workflows that are about to be written with the definitions, relative to ``root``.
    """

    root: Path
    clusters: dict[str, Declared[Cluster]]
    feeds: dict[str, Declared[Feed]]
    processes: dict[str, Declared[Process]]
    datasources: dict[str, Declared[Datasource]]
    flows: dict[str, Declared[Flow]]
    plans: Mapping[str, FlowPlan]
    again: tuple[tuple[Document, Document], ...]
    unparsed: frozenset[tuple[str, str]]
    files_to_come: frozenset[str] = frozenset()

    def is_unparsed(self, kind: str, name: str) -> bool:
        """Whether there may be such an entity that could not be parsed: other checks then report nothing about it."""
        return (kind, name) in self.unparsed or ("", name) in self.unparsed

    def all(
        self,
    ) -> Iterator[Declared[Cluster] | Declared[Datasource] | Declared[Flow] | Declared[Feed] | Declared[Process]]:
        yield from self.clusters.values()
        yield from self.datasources.values()
        yield from self.flows.values()
        yield from self.clustered()

    @property
    def made(self) -> dict[str, MadeDocument]:
        """The documents of feeds that flows are made of, by name."""
        found = ((name, one.document) for name, one in self.feeds.items())
        return {name: document for name, document in found if isinstance(document, MadeDocument)}

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
    """Returns the entities of all documents, the feeds that flows are made of too, and the problems within each."""
    found = _ParsedDocuments(list(files.problems), {("", name) for name in files.unread_names})
    for document in files.documents:
        found.add(document)
    known = found.known
    clusters, datasources, flows = (
        {name: one.entity for name, one in known[kind].items()} for kind in ("cluster", "datasource", "flow")
    )
    plans = dict(plans_of(flows, clusters, datasources))
    for name, plan in plans.items():
        for made in plan.feeds:
            found.add(MadeDocument.of(known["flow"][name].document, made))
    definitions = Definitions(
        root,
        clusters=known["cluster"],
        feeds=known["feed"],
        processes=known["process"],
        datasources=known["datasource"],
        flows=known["flow"],
        plans=plans,
        again=tuple(found.again),
        unparsed=frozenset(found.unparsed),
    )
    return definitions, found.problems


@dataclass
class _ParsedDocuments:
    problems: list[Problem]
    unparsed: set[tuple[str, str]]
    known: dict[str, dict[str, Declared[Any]]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    again: list[tuple[Document, Document]] = field(default_factory=list)

    def add(self, document: Document) -> None:
        kind, entity, own_problems = _parse(document)
        self.problems.extend(own_problems)
        if entity is None:
            self.unparsed.add((kind, _name(document)))
            return
        first = self.known[kind].setdefault(entity.name, Declared(entity, document)).document
        if first is not document:
            self.again.append((document, first))


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
