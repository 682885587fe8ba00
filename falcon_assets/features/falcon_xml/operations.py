"""Import of Apache Falcon's definitions: writes all of them or none."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from falcon_assets.catalog.additions import free_path, problems_of, require_changeable
from falcon_assets.catalog.yaml_files.definition_files import MAX_FILES, UnfitFileError, plain_content, shown_path
from falcon_assets.catalog.yaml_files.documents import Document, Files, read_file, read_files
from falcon_assets.catalog.yaml_files.file_changes import FileChange
from falcon_assets.catalog.yaml_files.journal import apply_changes, locked_tree
from falcon_assets.errors import FalconError, Position, Problem, count_of, sorted_problems
from falcon_assets.features.falcon_xml.conversion import Imported, convert
from falcon_assets.features.falcon_xml.elements import UnfitXmlError
from falcon_assets.features.falcon_xml.feed_zones import plain_document, zone_warnings
from falcon_assets.features.falcon_xml.optional_keys import OptionalPart
from falcon_assets.features.falcon_xml.rules import Warned
from falcon_assets.features.falcon_xml.yaml_text import YamlText
from falcon_assets.operations.audit import PlainRequest, audited
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation, Result
from falcon_assets.operations.reload import reload_code_locations
from falcon_assets.settings import Settings

_OPERATION = "import"
_MOST_ROUNDS = 20
"""Rounds of leaving out refused parts; each may reveal more."""


@dataclass(frozen=True)
class ImportedEntity:
    name: str
    kind: str
    file: str


@dataclass(frozen=True)
class ImportWarning:
    """A difference to Falcon's definition: its place in the XML, its name, and the remedy."""

    file: str
    line: int
    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.name}: {self.message}"


@dataclass(frozen=True)
class ImportResult(Result):
    """The result of an import.

    Attributes:
        entities: By kind and name.
        warnings: By file and line.
        written: The number of new entities; the others existed with the same definition.
        problems: Of ``falcon validate``, at lines of the XML; empty where definitions existed before.
        reload: Whether Dagster has loaded the change, in words; empty: it was not asked.
    """

    entities: tuple[ImportedEntity, ...]
    warnings: tuple[ImportWarning, ...]
    written: int
    problems: tuple[Problem, ...] = ()
    reload: str = ""
    keys = ("entities", "warnings=differences")

    @property
    def differences(self) -> list[ImportWarning]:
        return [*self.warnings, *map(as_warning, self.problems)]


class ImportXml(Operation):
    """Convert Falcon's cluster, datasource, feed and process XML to YAML definitions.

    PATH is a file, or a folder, of which all *.xml files are converted. What has no counterpart here, or is changed, is
    listed with its line and kept as a comment. Workflows of Oozie, Pig and Hive are replaced by programs that fail with
    an explanation. Either all files are written, or none.

    If DIR already holds definitions, the new ones are written only if `falcon validate` finds no problem in all of them
    together. If DIR holds none, they are written in any case; their problems are listed, and the exit code is 1.
    """

    command = "import xml"
    remote = False
    paths: Annotated[tuple[Path, ...], Given("PATH...")]
    into: Annotated[Path | None, Given(metavar="DIR")] = Field(
        None, description="Folder to write to (default: FALCON_ENTITY_DEFS, else entity_defs)."
    )

    def run(self, installation: Installation) -> ImportResult:
        """Changes of the installation's own definitions are audited."""
        settings = installation.settings
        folder = self.into or settings.entity_defs
        if not _is_live(folder, settings):
            return import_xml(self.paths, folder, settings)
        with audited(installation, _OPERATION, PlainRequest()) as audit:
            result = import_xml(self.paths, folder, settings)
            audit.about((one.kind, one.name) for one in result.entities)
            audit.result(bool(result.written))
        return result


class ImportRefusedError(FalconError):
    """The XML cannot be read, or would break existing definitions; nothing was written.

    ``problems`` are at lines of the XML where the XML causes them.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted_problems(problems)
        lines = [str(problem) for problem in self.problems]
        super().__init__("\n".join([*lines, f"{count_of(len(lines), 'problem')}: nothing was written"]))


class InvalidImportError(FalconError):
    """The written definitions have problems."""


def import_xml(paths: Sequence[Path], into: Path, settings: Settings | None = None) -> ImportResult:
    """Imports files of XML, and those below folders; entities that exist with the same definition stay unchanged.

    Invalid definitions are written only where there were none before.

    Args:
        paths: Files and folders.
        into: The folder of the definitions.
        settings: Decide whether the folder may be changed, and which webserver reloads it; None: nothing to check.

    Raises:
        ImportRefusedError: a file is not fit to be read, or existing definitions would become invalid.
        DefinitionStoreError: the folder cannot be changed.
    """
    imported, warnings = _converted(paths)
    is_live = settings is not None and _is_live(into, settings)
    if settings is not None and is_live:
        require_changeable(settings, "--into names another folder")
    with locked_tree(into):
        tree = _Tree(into, read_files(into), {_key(one) for one in imported})
        found = tree.made_valid(imported)
        new = [one for one in imported if not tree.is_there(one)]
        problems = tuple(problem for problem in found if new and not problem.is_warning)
        if problems and tree.files.contents:
            raise ImportRefusedError(problems)
        own = {one.source for one in new}
        feeds = tree.feeds(imported)
        for one in new:
            if one.kind == "process":
                one.found.warnings += zone_warnings(one.keys, feeds)
        warnings += [as_warning(one) for one in found if one.is_warning and one.position.file in own]
        tree.write(new, {} if settings is None else _note(settings))
    warnings += [ImportWarning(one.source, *_parts(warned)) for one in new for warned in one.found.warnings]
    entities = [ImportedEntity(one.name, one.kind, shown_path(tree.file(one))) for one in imported]
    return ImportResult(
        tuple(sorted(entities, key=lambda one: (one.kind, one.name))),
        tuple(sorted(dict.fromkeys(warnings), key=lambda one: (one.file, one.line, one.name))),
        len(new),
        problems,
        reload_code_locations(settings.webserver) if settings is not None and is_live and new and not problems else "",
    )


def _is_live(folder: Path, settings: Settings) -> bool:
    return folder.absolute() == settings.entity_defs


def _note(settings: Settings) -> dict[str, str]:
    return {"operation": _OPERATION, "actor": settings.user, "reason": "", "at": settings.now().isoformat()}


def as_warning(problem: Problem) -> ImportWarning:
    return ImportWarning(problem.position.file, problem.position.line, problem.key_path, problem.message)


def _parts(warned: Warned) -> tuple[int, str, str]:
    return warned.line, warned.name, warned.message


def _key(one: Imported) -> tuple[str, str]:
    return one.kind, one.name


def _converted(paths: Sequence[Path]) -> tuple[list[Imported], list[ImportWarning]]:
    """Returns all entities, and warnings for other files; ImportRefusedError for unfit files and duplicate names."""
    imported: dict[tuple[str, str], Imported] = {}
    ignored: list[ImportWarning] = []
    problems: list[Problem] = []
    for path in _xml_files(paths, problems):
        shown = shown_path(path)
        try:
            found = convert(plain_content(path), shown)
        except UnfitXmlError as error:
            problems.append(Problem(Position(shown, error.line), "", str(error)))
            continue
        except UnfitFileError as error:
            problems.append(Problem(Position(shown, 1), "", str(error)))
            continue
        if not isinstance(found, Imported):
            ignored += [ImportWarning(shown, *_parts(warned)) for warned in found]
            continue
        if not found.name:
            problems.append(Problem(Position(shown, found.keys["kind"].line), "name", f"the {found.kind} has no name"))
            continue
        first = imported.setdefault(_key(found), found)
        if first is not found:
            what = f"{found.kind} {found.name!r} is also in {first.source}: import one of them"
            problems.append(Problem(Position(shown, 1), "name", what))
    if not imported and not problems:
        said = [f"{one}" for one in ignored] or ["there is no *.xml file in the given paths"]
        problems = [Problem(Position(shown_path(paths[0]), 1), "", f"no definition of Apache Falcon: {said[0]}")]
    if problems:
        raise ImportRefusedError(problems)
    return list(imported.values()), ignored


def _xml_files(paths: Sequence[Path], problems: list[Problem]) -> Iterator[Path]:
    seen: set[Path] = set()
    for path in paths:
        found = [path]
        if path.is_dir():
            below = ((one, one.relative_to(path).parts) for one in path.rglob("*.xml"))
            found = sorted(one for one, parts in below if not any(part.startswith(".") for part in parts))
        for one in found:
            if one not in seen:
                seen.add(one)
                yield one
            if len(seen) > MAX_FILES:
                problems.append(Problem(Position(shown_path(path), 1), "", f"more than {MAX_FILES:,} files: split it"))
                return


class _Tree:
    """The existing definitions, and the files for new ones."""

    def __init__(self, root: Path, files: Files, keys: Collection[tuple[str, str]]) -> None:
        self.root, self.files = root, files
        self._there: dict[tuple[str, str], Document] = {}
        for document in files.documents:
            data = document.data if isinstance(document.data, dict) else {}
            key = (str(data.get("kind")), str(data.get("name")))
            if key in keys:
                self._there.setdefault(key, document)
        self._new: dict[tuple[str, str], Path] = {}

    def feeds(self, imported: Sequence[Imported]) -> dict[str, Mapping[str, Any]]:
        """Returns the documents of existing and imported feeds by name."""
        there = (document.data for document in self.files.documents if isinstance(document.data, dict))
        found = {str(data.get("name")): data for data in there if data.get("kind") == "feed"}
        return found | {one.name: plain_document(one.keys) for one in imported if one.kind == "feed"}

    def file(self, one: Imported) -> Path:
        if _key(one) in self._there:
            return self._there[_key(one)].path
        if _key(one) not in self._new:
            self._new[_key(one)] = free_path(self.root, one.kind, one.name, self._new.values())
        return self._new[_key(one)]

    def is_there(self, one: Imported) -> bool:
        """Returns whether the entity exists with this definition; ImportRefusedError where it has another one."""
        document = self._there.get(_key(one))
        if document is None:
            return False
        files = Files()
        read_file(document.path, one.text().text.encode(), files)
        if [document.data] == [found.data for found in files.documents]:
            return True
        message = f"{one.kind} {one.name!r} is already defined differently at {document.position()}"
        rule = "remove it there, or import into another folder"
        raise ImportRefusedError([Problem(Position(one.source, one.keys["kind"].line), "name", f"{message}: {rule}")])

    def made_valid(self, imported: list[Imported]) -> tuple[Problem, ...]:
        """Leaves out refused optional parts; returns problems and warnings of the rest, at lines of the XML."""
        workflows = [path for one in imported for path in one.found.files]
        sources = {shown_path(self.file(one)): one for one in imported}
        found: list[Problem] = []
        for _ in range(_MOST_ROUNDS):
            made = {shown: one.text() for shown, one in sources.items()}
            found, left_out = [], list[tuple[Imported, OptionalPart, Problem]]()
            for problem in problems_of(self.root, self._with(imported, made), workflows):
                one = sources.get(problem.position.file)
                if one is None:
                    found.append(problem)
                elif not problem.is_warning and (part := one.optional(problem.key_path)):
                    left_out.append((one, part, problem))
                else:
                    line = made[problem.position.file].origin(problem.position.line)
                    found.append(replace(problem, position=Position(one.source, line), snippet=""))
            if not left_out:
                break
            for one, part, problem in left_out:  # all of them were found before the first is gone
                one.leave_out(part, problem.key_path, problem.message)
        return sorted_problems(found)

    def _with(self, imported: list[Imported], made: Mapping[str, YamlText]) -> Files:
        gone = {id(document) for document in self._there.values()}
        left = [document for document in self.files.documents if id(document) not in gone]
        files = Files(left, list(self.files.problems), set(self.files.unread_names))
        for one in imported:
            path = self.file(one)
            read_file(path, made[shown_path(path)].text.encode(), files)
        return files

    def write(self, new: list[Imported], note: dict[str, str]) -> None:
        """Writes all files or none; an existing workflow stays."""
        changes = [FileChange(self.file(one), None, one.text().text.encode()) for one in new]
        for one in new:
            for name, text in one.found.files.items():
                if (self.root / name).exists():
                    one.found.warn(one.keys["workflow"].line, "process/workflow", f"{name} exists, and is not replaced")
                else:
                    changes.append(FileChange(self.root / name, None, text.encode()))
        if changes:
            apply_changes(self.root, changes, note)
