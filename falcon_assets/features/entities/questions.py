"""Operations that read entities, without their definitions in YAML."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from falcon_assets.features.entities.dependencies import Dependencies, entity_dependencies
from falcon_assets.features.entities.listing import FIELDS, Entity, list_entities, show_entity
from falcon_assets.features.entities.lookup import FIELDS as LOOKUP_FIELDS
from falcon_assets.features.entities.lookup import PathOwner, lookup
from falcon_assets.features.entities.summary import EntitySummary, summarize_entities
from falcon_assets.model.entity import Kind
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation
from falcon_assets.operations.paging import ListOperation, Page

Scheduled: TypeAlias = Literal["feed", "process"]


class OfOneEntity(Operation):
    """Fields of what is about one entity."""

    name: Annotated[str, Given("NAME")]
    kind: Kind | None = Field(None, description="Kind of the entity: needed if several kinds share the name.")


class ShowEntity(OfOneEntity):
    """Print the stored definition of NAME, with its comments.

    Values of storage options, credentials and options of drivers are masked.
    """

    command = "entity show"
    page = "entity"

    def run(self, installation: Installation) -> Entity:
        return show_entity(installation, self.name, self.kind)


class ShowEntityStatus(ShowEntity):
    """Show whether NAME is SUBMITTED, RUNNING or SUSPENDED.

    RUNNING entities run by themselves. A cluster or datasource is always SUBMITTED.
    """

    command = "entity status"
    page = "entity"


class EntityDependencies(OfOneEntity):
    """Show which entities NAME depends on, and which depend on it, as trees."""

    command = "entity dependency"
    page = "entity"

    def run(self, installation: Installation) -> Dependencies:
        return Dependencies(*entity_dependencies(installation, self.name, self.kind))


class ListEntities(ListOperation):
    """List clusters, datasources, feeds and processes with their status.

    Shows which of them are scheduled, since when, and whether a command or the definition says so. Filters on one field
    match any of their values; filters on different fields must all match: --filter status=RUNNING --filter
    tag=owner=analytics
    """

    command = "entity list"
    page = "entities"
    fields = FIELDS
    kind: Kind | None = Field(None, description="Only entities of this kind.")
    text: str | None = Field(None, description="Only entities with TEXT in name, description or tags.")

    def run(self, installation: Installation) -> Page[Entity]:
        return list_entities(installation, self.query_with(kind=self.kind), self.text)


class SummarizeEntities(ListOperation):
    """Show feeds and processes with the states of their latest instances.

    Lists each cluster separately, the latest instance first. Filters on one field match any of their values; filters on
    different fields must all match: --filter pipeline=sales
    """

    command = "entity summary"
    fields = FIELDS
    kind: Annotated[Scheduled | None, Given(flags=("--kind", "--type"))] = Field(
        None, description="Only entities of this kind."
    )
    cluster: str | None = Field(None, description="Only entities and instances on this cluster.")
    number: Annotated[int, Given(flags=("-n",), shows_default=True)] = Field(
        7, ge=1, le=1000, description="Number of instances to show."
    )

    def run(self, installation: Installation) -> Page[EntitySummary]:
        return summarize_entities(installation, self.query_with(kind=self.kind), self.number, self.cluster)


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text


class LookUpPath(ListOperation):
    """Show the feed and the instance that PATH belongs to.

    PATH is the folder of an instance, or a file in it.
    """

    command = "entity lookup"
    fields = LOOKUP_FIELDS
    path: Annotated[str, AfterValidator(_not_empty)] = Field(
        description="Path on a cluster (/raw/2013/01), path on this machine, or URL."
    )

    def run(self, installation: Installation) -> Page[PathOwner]:
        return lookup(installation, self.path, self.query)
