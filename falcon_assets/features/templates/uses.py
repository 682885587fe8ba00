"""Entities that were made from templates: they record template, version and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from falcon_assets.catalog.stored_tree import Stored
from falcon_assets.catalog.yaml_files.documents import Document
from falcon_assets.catalog.yaml_files.merging import canonical
from falcon_assets.errors import Problem
from falcon_assets.features.templates.packs import StoredTemplate
from falcon_assets.features.templates.rendering import secret_paths
from falcon_assets.features.templates.values import made_of, require_legal
from falcon_assets.operations.operation import Result


@dataclass(frozen=True)
class MadeEntity(Result):
    """An entity that was made from a template, and the version of it."""

    kind: str
    name: str
    version: int

    @classmethod
    def of(cls, document: Document) -> MadeEntity:
        return cls(document.data["kind"], document.data["name"], document.data["template"].get("version", 0))


def made_entities(stored: Stored) -> dict[str, list[Document]]:
    """The entities that were made from each template."""
    found: dict[str, list[Document]] = {}
    for document in stored.by_key.values():
        use = document.data.get("template")
        if isinstance(use, dict) and isinstance(use.get("name"), str):
            found.setdefault(use["name"], []).append(document)
    return found


def uses_of(made: Sequence[Document]) -> Iterator[list[Document]]:
    """Groups entities that were made together: those with the same parameters."""
    found: dict[str, list[Document]] = {}
    for document in made:
        found.setdefault(canonical(document.data["template"].get("parameters")), []).append(document)
    yield from found.values()


def made_again(one: StoredTemplate, those: Sequence[Document]) -> list[Document]:
    parameters = those[0].data["template"].get("parameters")
    values = dict(parameters) if isinstance(parameters, dict) else {}
    find = secret_paths(one.document, one.template)
    for document in those:
        values |= find(document.data)
    require_legal(one, values, lambda path: (those[0], ("template", "parameters", *path)))
    return made_of(one, values)


def left_over(one: StoredTemplate, old: Document) -> Problem:
    message = f"{one.name} does not make it any more: it stays, until falcon entity delete {old.data['name']}"
    return replace(old.problem((), message), is_warning=True)
