"""Operations that read entities, without their definitions in YAML."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from falcon_assets.features.entities.dependencies import Dependencies, entity_dependencies
from falcon_assets.features.entities.listing import FIELDS, Entity, list_entities, show_entity
from falcon_assets.features.entities.lookup import FIELDS as LOOKUP_FIELDS
from falcon_assets.features.entities.lookup import PathOwner, lookup
from falcon_assets.features.entities.summary import EntitySummary, summarize_entities
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation
from falcon_assets.operations.paging import ListOperation, Page

Kind: TypeAlias = Literal["cluster", "feed", "process"]
Scheduled: TypeAlias = Literal["feed", "process"]


class OfOneEntity(Operation):
    """Fields of what is about one entity."""

    name: Annotated[str, Given("NAME")]
    kind: Kind | None = Field(None, description="Which one, where several have that name.")


class ShowEntity(OfOneEntity):
    """Print the definition of NAME as it is stored, with its comments; values of storage options as stars."""

    command = "entity show"

    def run(self, installation: Installation) -> Entity:
        return show_entity(installation, self.name, self.kind)


class ShowEntityStatus(ShowEntity):
    """Say whether NAME runs by itself: SUBMITTED, RUNNING or SUSPENDED; a cluster is always SUBMITTED."""

    command = "entity status"


class EntityDependencies(OfOneEntity):
    """Show what NAME needs, and what needs NAME, as trees."""

    command = "entity dependency"

    def run(self, installation: Installation) -> Dependencies:
        return Dependencies(*entity_dependencies(installation, self.name, self.kind))


class ListEntities(ListOperation):
    """List clusters, feeds and processes: what runs by itself, since when, by a command or as declared.

    Of several filters with one field any may fit, of different fields all must:
    --filter status=RUNNING --filter tag=owner=analytics
    """

    command = "entity list"
    fields = FIELDS
    kind: Kind | None = Field(None, description="Only entities of that kind.")
    text: str | None = Field(None, description="Only those that have TEXT in name, description or tags.")

    def run(self, installation: Installation) -> Page[Entity]:
        return list_entities(installation, self.query_with(kind=self.kind), self.text)


class SummarizeEntities(ListOperation):
    """Show feeds and processes with the states of their latest instances on each cluster, the latest first.

    Of several filters with one field any may fit, of different fields all must: --filter pipeline=sales
    """

    command = "entity summary"
    fields = FIELDS
    kind: Annotated[Scheduled | None, Given(flags=("--kind", "--type"))] = Field(
        None, description="Only entities of that kind."
    )
    cluster: str | None = Field(None, description="Only entities, and instances, on that cluster.")
    number: Annotated[int, Given(flags=("-n",), shows_default=True)] = Field(
        7, ge=1, le=1000, description="So many instances."
    )

    def run(self, installation: Installation) -> Page[EntitySummary]:
        return summarize_entities(installation, self.query_with(kind=self.kind), self.number, self.cluster)


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text


class LookUpPath(ListOperation):
    """Say which feed, and which of its instances, PATH belongs to; it may be a file in it."""

    command = "entity lookup"
    fields = LOOKUP_FIELDS
    path: Annotated[str, AfterValidator(_not_empty)] = Field(
        description="A path on a cluster (/raw/2013/01), of this machine, or a URL."
    )

    def run(self, installation: Installation) -> Page[PathOwner]:
        return lookup(installation, self.path, self.query)
