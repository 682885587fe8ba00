"""Operations that read instances: lists, and the details of one."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from falcon_assets.errors import QueryError
from falcon_assets.instances.views.grid import GRID_FIELDS, MOST_STEPS, InstanceGrid, instance_grid
from falcon_assets.instances.views.listing import (
    InstanceCounts,
    instance_status,
    latest,
    list_instances,
    summarize_instances,
)
from falcon_assets.instances.views.query import CODES, FIELDS, ORDERS, InstancePage, InstanceQuery
from falcon_assets.model.frequency import Frequency
from falcon_assets.model.instant import Instant
from falcon_assets.operations.installation import Installation
from falcon_assets.operations.operation import Given, Operation
from falcon_assets.operations.paging import LongList, Page

Type: TypeAlias = Literal["process", "feed"]
TYPE = "process: instances of processes and of other work (replications, imports ...); feed: instances of feeds."


class WhichInstances(Operation):
    """Fields that say which instances."""

    start: Instant | None = Field(None, description="First instance (YYYY-MM-DDTHH:MMZ); without --end, only this one.")
    end: Instant | None = Field(None, description="Last instance, inclusive (YYYY-MM-DDTHH:MMZ).")
    cluster: str | None = Field(None, description="Only on this cluster.")
    colo: str | None = Field(None, description="Only on clusters of this colo.")

    @property
    def query(self) -> InstanceQuery:
        given = {one.name for one in fields(InstanceQuery)} & type(self).model_fields.keys()
        return InstanceQuery(**{name: getattr(self, name) for name in given})


class OfType(WhichInstances):
    type: Annotated[Type, Given(shows_default=True)] = Field("process", description=TYPE)


class InstanceList(LongList, WhichInstances):
    fields = FIELDS
    orders = ORDERS
    sort: str = next(iter(ORDERS))
    uncounted: bool = Field(
        False, description="Leave out `total`; of millions of instances a page takes much longer with it."
    )

    def run(self, installation: Installation) -> InstancePage:
        return list_instances(installation, self.query)


class ListInstances(InstanceList, OfType):
    """List the due instances of NAME, or of all processes, replications, compactions, imports and exports.

    If NAME is a feed, lists its replications, compactions, imports and exports. Due instances that are not launched are
    WAITING; the reason is shown.

    With --type feed, lists the instances of feeds: AVAILABLE, EVICTED, or MISSING (due, but not there).

    Filters on one field match any of their values; filters on different fields must all match: --filter state=FAILED
    """

    command = "instance list"
    page = "instances/list"
    name: Annotated[str | None, Given("[NAME]")] = None
    reasons: Annotated[tuple[str, ...], Given(flags=("--reason",), metavar="CODE", values=CODES)] = Field(
        (), description="Only instances with this reason code; repeat to match any of several."
    )


class InstanceStatus(InstanceList, OfType):
    """Show the instances of NAME from --start to --end, or the latest ten.

    --start alone shows that one instance, which may be in the future.
    """

    command = "instance status"
    page = "instances/list"
    name: Annotated[str, Given("NAME")]

    def run(self, installation: Installation) -> InstancePage:
        return instance_status(installation, latest(self.query))


class ListRunning(InstanceList):
    """List the instances of NAME, or of everything, that are running now."""

    command = "instance running"
    name: Annotated[str | None, Given("[NAME]")] = None

    @model_validator(mode="after")
    def _only_running(self) -> Self:
        if any(field == "state" and value.upper() != "RUNNING" for field, value in self.filters):
            raise QueryError("what is listed here is RUNNING: leave --filter state out")
        return self

    def run(self, installation: Installation) -> InstancePage:
        return list_instances(installation, replace(self.query, filters=(*self.filters, ("state", "RUNNING"))))


class SearchInstances(InstanceList, OfType):
    """List instances of processes, replications, compactions, imports and exports with TEXT in their name.

    With --type feed, lists instances of feeds.
    """

    command = "instance search"
    text: Annotated[str, Given("TEXT")]


class SummarizeInstances(OfType):
    """Count the due instances of NAME, or of everything, by state."""

    command = "instance summary"
    name: Annotated[str | None, Given("[NAME]")] = None

    def run(self, installation: Installation) -> Page[InstanceCounts]:
        found = summarize_instances(installation, self.query)
        return Page(found, len(found), None)


class ShowGrid(LongList, OfType):
    """Show instances as a grid: entities by time.

    Each cell is a step, the newest is at the right: ● succeeded or available, ✖ failed or missing, ◔ timed out,
    ⊘ killed, ▶ running, ◆ ready, ○ waiting, ‖ suspended, » skipped, ▫ evicted. If several instances are in one cell,
    the state that matters most is shown. As in `falcon instance summary`, reruns that wait do not count yet.

    Shows the time from --start on, or up to --end (default: now). With a filter on a state, only entities with such an
    instance in that time are shown.
    """

    command = "instance grid"
    page = "instances"
    fields = GRID_FIELDS
    orders = dict.fromkeys(("entity",))
    sort: str = "entity"
    name: Annotated[str | None, Given("[NAME]")] = None
    text: str | None = Field(None, description="Only entities with TEXT in their name.")
    step: Annotated[Frequency, Given(metavar="DURATION", shows_default=True)] = Field(
        Frequency.parse("hours(1)"),
        description="Time of one cell, such as 'minutes(5)' or 'days(1)'; of 'months(1)': 31 days.",
    )
    steps: Annotated[int, Given(shows_default=True)] = Field(
        48, ge=1, le=MOST_STEPS, description="Number of cells in a row."
    )

    def run(self, installation: Installation) -> InstanceGrid:
        length = self.step.length
        last = self.end or installation.settings.now()
        start = self.start or last - ((last - _MIDNIGHT) % length) - (self.steps - 1) * length
        steps = self.steps if self.end is None or self.start is None else (self.end - self.start) // length + 1
        return instance_grid(installation, self.query, start, length, steps)


_MIDNIGHT = datetime(2001, 1, 1, tzinfo=UTC)
"""Steps begin at full hours, days and (a Monday) weeks."""
