"""Operations on the definitions of flows, and on their plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from falcon_assets.catalog.additions import problems_of
from falcon_assets.catalog.declared import Declared, parse_documents
from falcon_assets.catalog.stored_tree import Stored, key_of, read_tree
from falcon_assets.catalog.yaml_files.documents import Files
from falcon_assets.catalog.yaml_files.yaml_text import as_documents
from falcon_assets.errors import DefinitionStoreError, InvalidDefinitionsError, Problem, UsageError
from falcon_assets.features.entities.changes import Plan, plan_submit, plan_update, require_definitions
from falcon_assets.features.entities.changing import change, delete, with_names
from falcon_assets.features.entities.given import read_given, stored_definition, stored_keys
from falcon_assets.features.entities.results import OperationResult, Request
from falcon_assets.features.entities.status import entity_states
from falcon_assets.features.flows.drawing import drawing
from falcon_assets.features.flows.submitted import with_validity
from falcon_assets.model.access import may_read
from falcon_assets.model.flow import Flow, FlowEnd
from falcon_assets.operations.acting import acting, require_read
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Change, Given, Operation, Result
from falcon_assets.operations.paging import ListOperation, Page, select
from falcon_assets.operations.request_origin import ORIGIN
from falcon_assets.planning.flows.plans import FlowPlan, FlowPlanner, key_of_end

WAITING = "WAITING"
"""The status of a flow that cannot be made."""


class GivenFlows(Operation):
    """Fields of commands that take definitions."""

    names: Annotated[tuple[str, ...], Given("FILE|FOLDER|NAME...")] = Field((), description="Names of flows.")
    definitions: Annotated[str, Given(programs_only=True)] = Field("", description="Definitions in YAML.")
    needs = "names or definitions"

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.names or self.definitions):
            raise UsageError(f"{self.command.split()[-1]} needs {self.needs}")
        return self

    @property
    def request(self) -> Request:
        takes_files = ORIGIN.get().takes_files
        return Request(self.names, "flow", definitions=self.definitions, takes_files=takes_files)


class ChangeFlows(Change, GivenFlows):
    """Fields of commands that change flows."""

    dry_run: bool = Field(False, description="Show what would change as a diff; change nothing.")

    @property
    def request(self) -> Request:
        return replace(super().request, actor=self.actor, reason=self.reason, dry_run=self.dry_run)


class SubmitFlows(ChangeFlows):
    """Add the flows in files and folders to the definitions, and other entities there with them.

    A flow without `validity` gets one, from its next time on and for ever; with `run_immediately` from the time before.
    A flow for which there is no way waits, and the answer says for what. Nothing is written unless the whole tree of
    definitions is valid afterwards.
    """

    command = "flow submit"

    def run(self, installation: Installation) -> OperationResult:
        def plan(stored: Stored, given: Stored) -> Plan:
            begun = with_validity(stored, given, installation.settings.now())
            return plan_submit(stored, begun, otherwise="falcon flow update")

        return change(installation, self.command, self.request, lambda there, request: with_names(there, request, plan))


class UpdateFlows(ChangeFlows):
    """Replace the definitions of existing flows by those in files and folders.

    Without `validity` it stays as it is. The feeds of the flow change with it: instances that run keep the plan that
    they started with, later ones have the new one. Nothing is written unless the whole tree of definitions is valid
    afterwards.
    """

    command = "flow update"

    def run(self, installation: Installation) -> OperationResult:
        def plan(stored: Stored, given: Stored) -> Plan:
            return plan_update(stored, with_validity(stored, given, installation.settings.now()))

        return change(installation, self.command, self.request, lambda there, request: with_names(there, request, plan))


class DeleteFlows(Change):
    """Delete flows, and with them the feeds that they are made of; data and history stay."""

    command = "flow delete"
    names: Annotated[tuple[str, ...], Given("NAME...")] = Field(min_length=1, description="Names of flows.")
    dry_run: bool = Field(False, description="Show what would change as a diff; change nothing.")
    needs = "names"

    def run(self, installation: Installation) -> OperationResult:
        request = Request(self.names, "flow", self.actor, self.reason, self.dry_run, takes_files=False)
        return delete(installation, request)


class OfFlow(Operation):
    """Fields of commands on one flow."""

    name: Annotated[str, Given("NAME")] = Field(description="Name of a flow.")

    def found(self, installation: Installation) -> Flow:
        """Raises UnknownEntityError, and DeniedError where the user may not read it."""
        flow = installation.all_entities.flow(self.name)
        require_read(acting(installation.settings), [flow])
        return flow


def plan_of(installation: Installation, flow: Flow) -> FlowPlan:
    """Returns the plan that is in force."""
    store = installation.all_entities
    assert flow.validity is not None
    return FlowPlanner(store.everywhere, store.datasources).plan(flow, flow.validity)


@dataclass(frozen=True)
class ListedFlow(Result):
    """A flow; ``status`` is WAITING, or that of its feeds; ``message`` why it waits."""

    name: str
    group: str
    source: str
    destinations: tuple[str, ...]
    every: str
    status: str
    message: str
    owner: str


FIELDS = {
    "name": lambda one: (one.name,),
    "group": lambda one: (one.group,) if one.group else (),
    "source": lambda one: (one.source,),
    "destination": lambda one: one.destinations,
    "status": lambda one: (one.status,),
    "owner": lambda one: (one.owner,) if one.owner else (),
}


class ListFlows(ListOperation):
    """List flows, with their status: RUNNING, SUSPENDED, or WAITING where there is no way to make them."""

    command = "flow list"
    page = "flows"
    fields = FIELDS

    def run(self, installation: Installation) -> Page[ListedFlow]:
        store, who = installation.all_entities, acting(installation.settings)
        planner = FlowPlanner(store.everywhere, store.datasources)
        statuses = {one.name: one.status for one in entity_states(installation, "feed")} if store.flows else {}
        rows = []
        for flow in store.flows.values():
            if may_read(flow.acl, who) and flow.validity is not None:
                plan = planner.plan(flow, flow.validity)
                rows.append(_listed(flow, plan, [statuses.get(one.name, "SUBMITTED") for one in plan.feeds]))
        return select(rows, self.query, FIELDS)


def _listed(flow: Flow, plan: FlowPlan, statuses: Sequence[str]) -> ListedFlow:
    every = flow.schedule.text if flow.schedule else str(flow.frequency or "once")
    status = WAITING if plan.route is None else min(statuses, key=["SUSPENDED", "SUBMITTED", "RUNNING"].index)
    destinations = tuple(map(_named, flow.destinations))
    owner = flow.acl.owner if flow.acl else ""
    message = "; ".join(plan.waits)
    return ListedFlow(flow.name, flow.group or "", _named(flow.source), destinations, every, status, message, owner)


def _named(end: FlowEnd) -> str:
    return " ".join(key_of_end(end))


@dataclass(frozen=True)
class ShownFlow(Result):
    """A flow as it is written, and the feeds that it is made of."""

    name: str
    definition: str
    feeds: tuple[str, ...]
    waits: tuple[str, ...]


class ShowFlow(OfFlow):
    """Print the stored definition of the flow NAME, with its comments, and the feeds that it is made of."""

    command = "flow show"
    page = "flow"

    def run(self, installation: Installation) -> ShownFlow:
        plan = plan_of(installation, self.found(installation))
        text = stored_definition(installation, self.name, "flow")
        return ShownFlow(self.name, text, tuple(one.name for one in plan.feeds), plan.waits)


@dataclass(frozen=True)
class CompiledFlow(Result):
    """The plan of a flow: a drawing, the feeds that it is made of as YAML, and why it waits."""

    name: str
    drawing: str
    definitions: str
    waits: tuple[str, ...]


@dataclass(frozen=True)
class CompiledFlows(Result):
    items: tuple[CompiledFlow, ...]
    warnings: tuple[Problem, ...]

    @property
    def failed(self) -> bool:
        """Whether one of them waits."""
        return any(one.waits for one in self.items)


class CompileFlows(GivenFlows):
    """Print how flows would be made, as a drawing, and the feeds that make them; nothing is submitted.

    The flows are in files and folders, with or without other entities, or are submitted already.
    """

    command = "flow compile"

    def run(self, installation: Installation) -> CompiledFlows:
        settings = installation.settings
        stored = read_tree(settings.entity_defs)
        given, names = read_given(stored, self.request)
        if given.files.contents or given.files.problems:
            given = with_validity(stored, given, settings.now())
            require_definitions(given)
        new = {key: one for one in given.files.documents if (key := key_of(one))}
        files = Files(
            [*(one for one in stored.files.documents if key_of(one) not in new), *new.values()],
            list(stored.files.problems),
            set(stored.files.unread_names),
        )
        problems = problems_of(stored.root, files)
        if not all(one.is_warning for one in problems):
            raise InvalidDefinitionsError(problems)
        definitions = parse_documents(stored.root, files)[0]
        wanted = [*dict.fromkeys([*stored_keys(stored, names, "flow"), *(key for key in new if key[0] == "flow")])]
        if not wanted:
            where = ", ".join(str(Path(one)) for one in self.names) or "what was given"
            raise DefinitionStoreError(f"there is no flow in {where}")
        found = [definitions.flows[name] for _, name in wanted]
        require_read(acting(settings), [one.entity for one in found])
        of_flows = {one.document.file for one in found}
        warnings = tuple(one for one in problems if one.position.file in of_flows and "waits: " not in one.message)
        return CompiledFlows(tuple(_compiled(found, definitions.plans)), warnings)


def _compiled(flows: Iterable[Declared[Flow]], plans: Mapping[str, FlowPlan]) -> Iterable[CompiledFlow]:
    for one in flows:
        plan = plans[one.entity.name]
        drawn = drawing(key_of_end(one.entity.source), plan.route) if plan.route else ""
        definitions = as_documents(made.data for made in plan.feeds)
        yield CompiledFlow(one.entity.name, drawn, definitions, plan.waits)
