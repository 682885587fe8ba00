"""Operations on the definitions themselves, which need no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from falcon_assets.catalog.store import load_entities
from falcon_assets.catalog.yaml_files.definition_files import is_definition_file
from falcon_assets.errors import InvalidDefinitionsError, Problem
from falcon_assets.model.entity import KINDS, Entity, Kind
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
    """Check all entity definitions below DIR, and print every problem.

    The default of DIR is FALCON_ENTITY_DEFS, else entity_defs. With FILE, checks all definitions of the folder that it
    belongs to, because they refer to each other: the default folder if FILE is in it, else the folder of FILE.

    Workflow files are parsed, too (SQL syntax, Python syntax and the function, parameters, views), and so are the
    schemas of feeds. Spark is not started.

    Each problem is printed with its file, line and key. The exit code is 1 where there is a problem; the code location
    then fails to load with the same text. Warnings are printed, too; with warnings alone the exit code is 0, and the
    code location loads.
    """

    command = "validate"
    remote = False
    place: Annotated[Path | None, Given("[DIR|FILE]")] = None
    strict: bool = Field(
        False, description="Treat warnings as problems, except for SQL that only the parser does not understand."
    )

    def run(self, installation: Installation) -> Validation:
        """Raises MissingDefinitionsError where there are none."""
        try:
            store = load_entities(self._folder(installation), strict=self.strict, programs=True)
        except InvalidDefinitionsError as error:
            return Validation({}, error.problems)
        return Validation({kind: len(those) for kind, those in store.by_kind.items()}, store.warnings)

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
    kind: Annotated[Kind | None, Given(f"[{'|'.join(KINDS)}]")] = None

    def run(self, installation: Installation) -> dict[str, Any]:
        """Returns the JSON Schema (draft 2020-12) of one document; of any kind: discriminated by ``kind``."""
        any_kind = Annotated[Entity, Field(discriminator="kind")]
        schema = TypeAdapter[Any](KINDS[self.kind] if self.kind else any_kind).json_schema()
        title = f"Definition of a {self.kind}" if self.kind else "Definition of an entity"
        described: dict[str, Any] = _markdown({**schema, "title": title})
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **described}


def _markdown(value: Any) -> Any:
    """Replaces the double backquotes of docstrings in descriptions by Markdown's."""
    if isinstance(value, dict):
        return {
            key: item.replace("``", "`") if key == "description" and isinstance(item, str) else _markdown(item)
            for key, item in value.items()
        }
    return [_markdown(item) for item in value] if isinstance(value, list) else value
