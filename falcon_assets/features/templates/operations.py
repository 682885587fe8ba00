"""Operations on templates: look at them, add them to packs, make entities of them, and bring these up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from falcon_assets.catalog.stored_tree import Stored, read_tree
from falcon_assets.catalog.yaml_files.documents import Document
from falcon_assets.catalog.yaml_files.yaml_text import as_documents
from falcon_assets.errors import Problem
from falcon_assets.features.entities.changes import Plan, plan_put, plan_submit
from falcon_assets.features.entities.changing import change
from falcon_assets.features.entities.results import OperationResult, Request
from falcon_assets.features.templates.packs import (
    StoredPack,
    StoredTemplate,
    read_packs,
)
from falcon_assets.features.templates.uses import MadeEntity, left_over, made_again, made_entities, uses_of
from falcon_assets.features.templates.values import as_tree, given_values, made_of
from falcon_assets.model.access import may_read
from falcon_assets.operations.acting import acting, require_read
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Operation, Result
from falcon_assets.operations.paging import ListOperation, Page, select


@dataclass(frozen=True)
class ListedTemplate(Result):
    """A template; ``entities``: how many were made from it."""

    name: str
    version: int
    description: str
    owner: str
    entities: int


@dataclass(frozen=True)
class ListedTemplates(Page[ListedTemplate]):
    """``problems``: of templates that are left out."""

    problems: Sequence[Problem] = ()


FIELDS = {
    "name": lambda one: (one.name,),
    "pack": lambda one: (one.name.partition("/")[0],),
    "owner": lambda one: (one.owner,),
}


class ListTemplates(ListOperation):
    """List the templates that you may use: of the product, of installed packages, and of the folder FALCON_PACKS."""

    command = "template list"
    page = "templates"
    fields = FIELDS

    def run(self, installation: Installation) -> ListedTemplates:
        settings = installation.settings
        who, found, made = acting(settings), read_packs(settings), made_entities(read_tree(settings.entity_defs))
        usable = [one for one in found.templates.values() if may_read(one.pack.acl, who)]
        rows = [
            ListedTemplate(
                one.name, one.template.version, one.template.description, _owner(one.pack), len(made.get(one.name, ()))
            )
            for one in usable
        ]
        page = select(rows, self.query, FIELDS)
        return ListedTemplates(page.items, page.total, page.next, found.problems)


def _owner(pack: StoredPack) -> str:
    return pack.acl.owner if pack.acl else ""


@dataclass(frozen=True)
class ParameterDetails(Result):
    name: str
    type: str
    description: str
    required: bool
    default: Any
    secret: bool


@dataclass(frozen=True)
class TemplateDetails(Result):
    """A template; ``schema`` is the JSON Schema of its parameters."""

    name: str
    version: int
    description: str
    owner: str
    file: str
    parameters: Sequence[ParameterDetails]
    entities: Sequence[MadeEntity]
    schema: Mapping[str, Any]


class OfTemplate(Operation):
    """Fields of commands on one template."""

    template: Annotated[str, Given("TEMPLATE")] = Field(description="PACK/NAME, or the NAME alone if only one has it.")

    def found(self, installation: Installation, actor: str | None = None) -> StoredTemplate:
        """Raises UnknownEntityError, InvalidDefinitionsError where it has problems, and DeniedError."""
        one = read_packs(installation.settings).template(self.template)
        require_read(acting(installation.settings, actor), [one.pack])
        return one


class ShowTemplate(OfTemplate):
    """Show TEMPLATE: what it makes, its parameters, and the entities that were made from it.

    With --json, its parameters are also a JSON Schema.
    """

    command = "template show"
    page = "template"

    def run(self, installation: Installation) -> TemplateDetails:
        one = self.found(installation)
        parameters = [
            ParameterDetails(
                name,
                "secret" if said.secret else said.type,
                said.description,
                said.default is None and not said.optional,
                said.default,
                said.secret,
            )
            for name, said in one.template.parameters.items()
        ]
        made = [*map(MadeEntity.of, made_entities(read_tree(installation.settings.entity_defs)).get(one.name, ()))]
        about = (one.name, one.template.version, one.template.description, _owner(one.pack), one.document.file)
        return TemplateDetails(*about, parameters, made, one.template.model_of_parameters().model_json_schema())


class WithParameters(OfTemplate):
    """Fields of commands that take parameters."""

    parameters: Annotated[dict[str, str], Given(flags=("-p", "--parameter"), metavar="KEY=VALUE")] = Field(
        default_factory=dict, description="A parameter; may be repeated; lists as 'a,b'. Overrides --file."
    )
    file: Annotated[Path | None, Given(flags=("-f", "--file"), metavar="FILE")] = Field(
        None, description="A YAML file with parameters."
    )

    def made(self, one: StoredTemplate) -> list[Document]:
        """Raises InvalidDefinitionsError with all problems of the parameters."""
        return made_of(one, given_values(one, self.parameters, self.file))


@dataclass(frozen=True)
class Rendered(Result):
    definitions: str


class RenderTemplate(WithParameters):
    """Print the entities that TEMPLATE makes with these parameters; nothing is submitted."""

    command = "template render"

    def run(self, installation: Installation) -> Rendered:
        return Rendered(as_documents(one.data for one in self.made(self.found(installation))))


class SubmitTemplate(Change, WithParameters):
    """Make entities from TEMPLATE, and submit them.

    The entities record the template, its version and the parameters, without secrets. Entities that exist with the same
    definition stay unchanged. Nothing is written unless the whole tree of definitions is valid afterwards.
    """

    command = "template submit"
    update: bool = Field(False, description="Replace the definitions of entities that exist already.")
    dry_run: bool = Field(False, description="Show what would change as a diff; change nothing.")

    def run(self, installation: Installation) -> OperationResult:
        def plan(stored: Stored, request: Request) -> Plan:
            given = as_tree(stored.root, self.made(self.found(installation, request.actor)))
            return plan_put(stored, given) if self.update else plan_submit(stored, given, otherwise="--update")

        request = Request(actor=self.actor, reason=self.reason, dry_run=self.dry_run)
        return change(installation, self.command, request, plan)


class UpdateFromTemplate(Change, OfTemplate):
    """Update the entities that were made from TEMPLATE to its present version.

    Each is made again with its recorded parameters, and the secrets of its present definition. Changes by hand are
    lost: --dry-run shows them. Entities that the template no longer makes are named, and stay.
    """

    command = "template update"
    dry_run: bool = Field(False, description="Show what would change as a diff; change nothing.")

    def run(self, installation: Installation) -> OperationResult:
        def plan(stored: Stored, request: Request) -> Plan:
            one = self.found(installation, request.actor)
            documents, gone = list[Document](), list[Problem]()
            for those in uses_of(made_entities(stored).get(one.name, ())):
                again = made_again(one, those)
                keys = {(new.data["kind"], new.data["name"]) for new in again}
                documents += again
                gone += [left_over(one, old) for old in those if (old.data["kind"], old.data["name"]) not in keys]
            if not documents:
                return Plan((), warnings=tuple(gone))
            planned = plan_put(stored, as_tree(stored.root, documents))
            return replace(planned, warnings=(*planned.warnings, *gone))

        request = Request(actor=self.actor, reason=self.reason, dry_run=self.dry_run)
        return change(installation, self.command, request, plan)
