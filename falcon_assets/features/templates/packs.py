"""Packs of templates: that of the product, those of installed packages, and folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError, create_model

from falcon_assets.catalog.validation import unknown_word, validation_problems
from falcon_assets.catalog.yaml_files.definition_files import definition_files, shown_path
from falcon_assets.catalog.yaml_files.documents import Document, Files, read_file
from falcon_assets.errors import InvalidDefinitionsError, Position, Problem, UnknownEntityError
from falcon_assets.features.templates.definitions import Pack, Template
from falcon_assets.features.templates.rendering import body_problems
from falcon_assets.model.base import Declaration
from falcon_assets.model.expression import nearest
from falcon_assets.model.shared import Acl
from falcon_assets.settings import Settings

OWN = Path(__file__).parent / "pack"
"""The pack of the product."""
PACK_FILE = "pack.yaml"
_GROUP = "falcon_assets.packs"
_KINDS: dict[str, type[Declaration]] = {"pack": Pack, "template": Template}
ModelT = TypeVar("ModelT", bound=Declaration)


@dataclass(frozen=True)
class StoredPack:
    """A pack; ``is_folder``: commands can change it, as it is in the folder of packs."""

    pack: Pack
    folder: Path
    is_folder: bool
    kind = "pack"

    @property
    def name(self) -> str:
        return self.pack.name

    @property
    def acl(self) -> Acl | None:
        return self.pack.acl


@dataclass(frozen=True)
class StoredTemplate:
    pack: StoredPack
    template: Template
    document: Document

    @property
    def name(self) -> str:
        return f"{self.pack.name}/{self.template.name}"


@dataclass
class Packs:
    """All packs and templates, by name; what has problems is left out, and its problems are here."""

    packs: dict[str, StoredPack] = field(default_factory=dict)
    templates: dict[str, StoredTemplate] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def template(self, name: str) -> StoredTemplate:
        """Returns the template ``PACK/NAME``, or the only one of that NAME.

        Raises:
            UnknownEntityError: there is none, or there are several.
            InvalidDefinitionsError: there is one, and it has problems.
        """
        found = [one for full, one in self.templates.items() if name in (full, one.template.name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownEntityError(f"there is {' and '.join(one.name for one in found)}: write which one")
        wrong = [one for one in self.problems if Path(one.position.file).stem == name.rpartition("/")[2]]
        if wrong:
            raise InvalidDefinitionsError(wrong)
        close = nearest(name, [*self.templates, *(one.template.name for one in self.templates.values())])
        raise UnknownEntityError(f"there is no template {name!r}{close}; falcon template list has all")


def read_packs(settings: Settings) -> Packs:
    """Reads all packs; raises nothing because of one of them."""
    found = Packs()
    _read(OWN, found, is_folder=False)
    for point in sorted(entry_points(group=_GROUP), key=lambda one: one.name):
        try:
            spec = find_spec(point.value)
        except (ImportError, ValueError):
            spec = None
        if spec is None or not spec.submodule_search_locations:
            message = f"there is no package {point.value!r}, which the entry point {point.name!r} of {_GROUP} names"
            found.problems.append(Problem(Position(point.name, 1), "", message))
        else:
            _read(Path(next(iter(spec.submodule_search_locations))), found, is_folder=False)
    folders = sorted(settings.packs.iterdir()) if settings.packs.is_dir() else []
    for folder in folders:
        if folder.is_dir() and not folder.name.startswith("."):
            _read(folder, found, is_folder=True)
    return found


def _read(folder: Path, into: Packs, *, is_folder: bool) -> None:
    files = Files()

    def report(path: Path, message: str) -> None:
        files.problems.append(Problem(Position(shown_path(path), 1), "", message))

    for path, raw in definition_files(folder, report):
        read_file(path, raw, files)
    into.problems += files.problems
    packs = [one for one in files.documents if _kind(one) == "pack"]
    declared = [(pack, one) for one in packs if (pack := parsed(one, Pack, into.problems))]
    if len(declared) != 1:
        if not packs:
            into.problems.append(
                Problem(Position(shown_path(folder), 1), "", f"it is no pack: {PACK_FILE} must have kind: pack")
            )
        into.problems += [one.problem(("kind",), "a folder is one pack: move it to its own") for _, one in declared[1:]]
        return
    pack, document = declared[0]
    if pack.name in into.packs:
        other = shown_path(into.packs[pack.name].folder)
        into.problems.append(document.problem(("name",), f"pack {pack.name!r} is in {other} already"))
        return
    stored = into.packs[pack.name] = StoredPack(pack, folder, is_folder)
    for one in files.documents:
        if _kind(one) == "pack":
            continue
        if template := parsed_template(one, into.problems):
            name = f"{pack.name}/{template.name}"
            if name in into.templates:
                first = into.templates[name].document.position(("name",))
                into.problems.append(one.problem(("name",), f"template {name!r} is already defined at {first}"))
            else:
                into.templates[name] = StoredTemplate(stored, template, one)


def parsed_template(document: Document, problems: list[Problem]) -> Template | None:
    """Returns the template of a document without problems; adds those that it has."""
    if _kind(document) != "template":
        problems.append(document.problem(("kind",), unknown_word("kind", str(_kind(document)), tuple(_KINDS))))
        return None
    template = parsed(document, Template, problems)
    found = [*body_problems(document, template), *_wrong_defaults(document, template)] if template else []
    problems += found
    return None if found else template


def parsed(document: Document, model: type[ModelT], problems: list[Problem]) -> ModelT | None:
    """Returns what a document declares; None: it has problems, which are added."""
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        problems += validation_problems(document, model, error)
        return None


def _wrong_defaults(document: Document, template: Template) -> Iterator[Problem]:
    for name, one in template.parameters.items():
        if one.default is not None:
            model = create_model("Default", value=(one.field[0], ...))
            try:
                model.model_validate({"value": one.default})
            except ValidationError:
                yield document.problem(("parameters", name, "default"), f"is not a legal {one.type} for this parameter")


def _kind(document: Document) -> object:
    return document.data.get("kind") if isinstance(document.data, Mapping) else None
