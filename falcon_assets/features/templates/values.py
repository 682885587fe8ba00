"""Values of the parameters of a template: given as texts or in a file, checked, and put into its entities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from pydantic import ValidationError

from falcon_assets.catalog.stored_tree import Stored
from falcon_assets.catalog.validation import validation_problems
from falcon_assets.catalog.yaml_files.definition_files import UnfitFileError, plain_content, shown_path
from falcon_assets.catalog.yaml_files.documents import Document, Files, KeyPath, key_path_text, read_file
from falcon_assets.catalog.yaml_files.yaml_nodes import compose_documents
from falcon_assets.catalog.yaml_files.yaml_text import as_document, as_documents
from falcon_assets.catalog.yaml_files.yaml_values import PlainValues
from falcon_assets.errors import InvalidDefinitionsError, Position, Problem
from falcon_assets.features.templates.definitions import LISTS, TEXTS, Parameter
from falcon_assets.features.templates.packs import StoredTemplate
from falcon_assets.features.templates.rendering import rendered

Place: TypeAlias = Callable[[KeyPath], tuple[Document, KeyPath]]
"""Where a value stands: in which file, and at which key there."""


@dataclass(frozen=True)
class GivenValues(Document):
    """Values of parameters, wherever they come from: problems are where they stand."""

    place: Place

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> Problem:
        document, there = self.place(path)
        return replace(document.problem(there, message, at_key=at_key), key_path=key_path_text(path))


def given_values(one: StoredTemplate, texts: Mapping[str, str], file: Path | None) -> dict[str, Any]:
    """Returns plain values of parameters: those of the file, and ``texts`` before them.

    Raises:
        InvalidDefinitionsError: with all problems: those of a file with its lines, others where the template declares
            the parameter.
    """
    document = _file(file) if file else None
    found = {**(document.data if document else {})}
    declared = one.template.parameters
    found |= {name: _plain(text, declared.get(name)) for name, text in texts.items()}

    def place(path: KeyPath) -> tuple[Document, KeyPath]:
        if document is None or (path and path[0] in texts):
            return one.document, ("parameters", *path[:1])
        return document, path

    require_legal(one, found, place)
    return found


def require_legal(one: StoredTemplate, values: Mapping[str, Any], place: Place) -> None:
    """Raises InvalidDefinitionsError with the problems of values."""
    text = as_document(values, flow=False)
    (root,) = compose_documents(text)
    document = GivenValues("", text.splitlines(), root, dict(values), Path(), place)
    secrets = [name for name, parameter in one.template.parameters.items() if parameter.secret]
    if plain := [name for name in secrets if name in values and not isinstance(values[name], dict)]:
        message = "must be {env: NAME}, {file: PATH} or {encrypted: ...}, not the secret itself"
        raise InvalidDefinitionsError(replace(document.problem((name,), message), snippet="") for name in plain)
    model = one.template.model_of_parameters()
    try:
        model.model_validate(values)
    except ValidationError as error:
        raise InvalidDefinitionsError(validation_problems(document, model, error)) from error


def _file(path: Path) -> Document:
    files = Files()
    try:
        read_file(path, plain_content(path), files)
    except UnfitFileError as error:
        raise InvalidDefinitionsError([Problem(Position(shown_path(path), 1), "", str(error))]) from error
    if files.problems:
        raise InvalidDefinitionsError(files.problems)
    if len(files.documents) != 1 or not isinstance(files.documents[0].data, dict):
        message = "must be one document with a mapping: parameter: value"
        raise InvalidDefinitionsError([Problem(Position(shown_path(path), 1), "", message)])
    return files.documents[0]


def _plain(text: str, parameter: Parameter | None) -> Any:
    if parameter is None or (parameter.type in TEXTS and not parameter.secret):
        return text
    try:
        nodes = list(compose_documents(text))
    except yaml.YAMLError:
        return text
    value = PlainValues().convert(nodes[0]) if len(nodes) == 1 else text
    if parameter.type in LISTS and isinstance(value, str):
        return [name.strip() for name in value.split(",")]
    return value


def made_of(one: StoredTemplate, values: Mapping[str, Any]) -> list[Document]:
    """Returns the entities that a template makes of checked values; they say that they are made from it.

    Raises:
        InvalidDefinitionsError: a text needs a parameter that has no value.
    """
    declared = one.template.parameters
    recorded = {name: value for name, value in values.items() if not declared[name].secret}
    use = {"name": one.name, "version": one.template.version, **({"parameters": recorded} if recorded else {})}
    whole = {**{name: parameter.default for name, parameter in declared.items()}, **values}
    return rendered(one.document, whole, use)


def as_tree(root: Path, documents: Sequence[Document]) -> Stored:
    """Entities of templates as definitions that somebody gives: problems have the lines of the templates."""
    by_path: dict[Path, list[Document]] = {}
    for document in documents:
        by_path.setdefault(document.path, []).append(document)
    contents = {path: as_documents(one.data for one in those).encode() for path, those in by_path.items()}
    return Stored(root, Files([*documents], contents=contents))
