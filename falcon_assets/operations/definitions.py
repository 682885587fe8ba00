"""Operations on the definitions themselves, which need no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from falcon_assets.catalog.json_schema import entity_schema
from falcon_assets.catalog.store import load_entities
from falcon_assets.catalog.yaml_files.definition_files import is_definition_file
from falcon_assets.errors import InvalidDefinitionsError, Problem
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation, Result


@dataclass(frozen=True)
class Validation(Result):
    """``entities`` are numbers by kind, none where there are problems; warnings are among ``problems``."""

    entities: Mapping[str, int]
    problems: Sequence[Problem]
    keys = ("valid", "entities", "problems")

    @property
    def valid(self) -> bool:
        return all(one.is_warning for one in self.problems)

    @property
    def failed(self) -> bool:
        return not self.valid


class ValidateDefinitions(Operation):
    """Check all entity definitions below DIR (default: FALCON_ENTITY_DEFS, else entity_defs).

    FILE is one of the definitions: with it all are checked that it belongs to, because they refer to each other. Those
    are the default folder's, where it lies in there, else those of its own folder.
    The files of workflows are parsed, too: statements, parameters and views of SQL, Python and its function; and so
    are the schemas of feeds. Nothing of that starts Spark.
    Prints every problem with its file, line and key, and then exits with 1. The code location fails to load with the
    same text. Warnings are printed too: what works and surprises. The code location loads with them, and the exit code
    is 0.
    """

    command = "validate"
    place: Annotated[Path | None, Given("[DIR|FILE]")] = None
    strict: bool = Field(
        False, description="Warnings are problems, but for SQL that only the parser does not understand."
    )

    def run(self, installation: Installation) -> Validation:
        """Raises MissingDefinitionsError where there are none."""
        try:
            store = load_entities(self._folder(installation), strict=self.strict, programs=True)
        except InvalidDefinitionsError as error:
            return Validation({}, error.problems)
        there = {"cluster": store.clusters, "feed": store.feeds, "process": store.processes}
        return Validation({kind: len(those) for kind, those in there.items()}, store.warnings)

    def _folder(self, installation: Installation) -> Path:
        """The folder of the definitions that ``place`` names, or belongs to."""
        place = self.place
        if place is not None and not (place.is_file() and is_definition_file(place)):
            return place
        default = installation.settings.entity_defs
        return default if place is None or place.resolve().is_relative_to(default.resolve()) else place.parent


class PrintSchema(Operation):
    """Print the JSON Schema of any entity definition, or of those of one KIND.

    Editors complete and check YAML with it. Write it to a file:

    \b
        falcon schema > entity_defs/.schema.json

    and name it in the first line of each definition file, which the YAML extensions of VS Code, Neovim, Emacs and
    JetBrains' editors understand (the path is relative to the file):

    \b
        # yaml-language-server: $schema=../.schema.json

    or for all files at once in VS Code's settings:

    \b
        "yaml.schemas": {"entity_defs/.schema.json": "entity_defs/**/*.yaml"}
    """  # noqa: D301 - click knows the character

    command = "schema"
    kind: Annotated[Literal["cluster", "feed", "process"] | None, Given("[cluster|feed|process]")] = None

    def run(self, installation: Installation) -> dict[str, Any]:
        return entity_schema(self.kind)
