"""Processes: work that turns instances of input feeds into instances of output feeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Union

from pydantic import Field, StrictBool, StringConstraints, model_validator

from falcon_assets.model.base import Declaration, EntityName, NonEmpty
from falcon_assets.model.expression import InstanceExpression
from falcon_assets.model.expression_functions import Kind
from falcon_assets.model.frequency import Frequency, Step, TimeUnit
from falcon_assets.model.notification import Notification
from falcon_assets.model.reference import WithReferences
from falcon_assets.model.shared import Acl, Properties, Tags, TemplateUse, TimeZoneName, Validity
from falcon_assets.model.workflow import Workflow, engines

if TYPE_CHECKING:
    AnyWorkflow = Workflow
else:
    AnyWorkflow = Annotated[Union[engines()], Field(discriminator="engine")]  # noqa: UP007 - of as many as there are


class ProcessCluster(Declaration):
    """A cluster that the process runs on; each has its own instances."""

    name: EntityName
    """Name of a cluster."""
    validity: Validity
    """When the process has instances on this cluster."""


class ProcessSla(Declaration):
    """When an instance should start and end, counted from its nominal time."""

    should_start_in: Frequency
    """Worth a warning when it has not started by then."""
    should_end_in: Frequency
    """Missed when it has not succeeded by then; not shorter than ``should_start_in``."""

    @model_validator(mode="after")
    def _ordered(self) -> ProcessSla:
        if self.should_start_in.length > self.should_end_in.length:
            raise ValueError(
                f"should_start_in {self.should_start_in} must not be longer than should_end_in {self.should_end_in}"
            )
        return self


class MembersRead(Declaration):
    """Ways to tell apart what a roll-up is made of; at least one of the keys."""

    column: Annotated[str | None, StringConstraints(pattern=r"^[A-Za-z_]\w*$")] = None
    """Name of a column with the feed that each row is from; in a roll-up of roll-ups, the innermost feed."""
    views: StrictBool = False
    """true: each such feed is an additional input, named ``INPUT__FEED``: a view, a DataFrame, or paths."""

    @model_validator(mode="after")
    def _one_at_least(self) -> MembersRead:
        if self.column is None and not self.views:
            raise ValueError("needs column, or views: true")
        return self


class Input(Declaration):
    """A window of feed instances that an instance reads, both ends included."""

    name: EntityName
    """Name of the view, the argument or the variable that the workflow sees."""
    feed: EntityName
    """Name of the feed that is read."""
    start: InstanceExpression
    """First instance of the window: the last at or before this time, or ``latest(n)`` or ``future(n,limit)``."""
    end: InstanceExpression
    """The last instance of the window, written like ``start``; or ``latest(n)`` after a time."""
    optional: StrictBool = False
    """true: instances that are not available are left out instead of waited for."""
    newer_than: Literal["last_run"] | None = None
    """``last_run``: of a snapshot feed; waits for a version newer than the one that the process used last."""
    quality: Literal["require", "ignore"] | None = None
    """``require``: instances wait until their input data is valid; ``ignore``: they do not wait, and their outputs of
    invalid data are marked. Omitted: ``require`` if the feed, or a member of a roll-up, has checks of ``severity:
    error``."""
    partition: NonEmpty | None = None
    """Only this sub-partition of each instance, ``*`` for any (``*/US``); may hold ``${...}``."""
    members: MembersRead | None = None
    """Of a roll-up: how members are told apart; omitted: all are read as one."""

    @model_validator(mode="after")
    def _ends_fit(self) -> Input:
        kinds = [end.call.name if end.call.kind is Kind.INSTANCES else "time" for end in (self.start, self.end)]
        if kinds[0] != kinds[1] and kinds != ["time", "latest"]:
            raise ValueError(
                f"start {self.start.text!r} and end {self.end.text!r} must both be times, "
                "both latest(n), both future(n,limit), or a time and latest(n)"
            )
        return self

    @property
    def is_of_times(self) -> bool:
        """Whether both ends are times: the window does not depend on what is available."""
        return self.start.call.kind is Kind.TIME is self.end.call.kind


class Output(Declaration):
    """The feed instance that an instance writes."""

    name: EntityName
    """The name in the workflow; inputs and outputs share one set of names."""
    feed: EntityName
    """Name of the feed that is written; no other process writes it."""
    instance: InstanceExpression
    """The instance that is written: the last at or before this time."""

    @model_validator(mode="after")
    def _is_a_time(self) -> Output:
        if self.instance.call.kind is not Kind.TIME:
            raise ValueError(f"instance {self.instance.text!r} must be a time, for example now(0,0)")
        return self


class Retry(Declaration):
    """Further attempts after a failure."""

    policy: Literal["periodic", "exp-backoff", "final"] = "periodic"
    """``periodic``: every ``delay``; ``exp-backoff``: ``delay`` doubles each time; ``final``: no retry."""
    delay: Frequency = Frequency(10, TimeUnit.MINUTES)
    """Time from a failure to the first retry."""
    attempts: Annotated[int, Field(ge=0, le=100, strict=True)] = 3
    """How often it is tried again after the first failure."""
    on_timeout: StrictBool = False
    """Whether an instance that timed out is tried again too."""


class LateInput(Declaration):
    """An input whose late change matters."""

    input: EntityName
    """Name of one of the inputs of the process."""
    workflow: AnyWorkflow | None = None
    """Runs instead of the normal workflow; omitted: the normal workflow."""


class LateProcess(Declaration):
    """The reaction to an input that changed after it was consumed."""

    policy: Literal["backoff", "exp-backoff", "final"]
    """When to check: ``backoff``: every ``delay``; ``exp-backoff``: at doubling delays; ``final``: once, at the
    cut-off."""
    delay: Frequency = Frequency(1, TimeUnit.HOURS)
    """Time between two checks; the first one, with ``exp-backoff``."""
    inputs: Annotated[tuple[LateInput, ...], Field(min_length=1)]
    """The inputs whose late changes matter, one at least; their feeds declare a cut-off."""


class Process(WithReferences):
    """A process: one run of its workflow per step of its frequency."""

    kind: Literal["process"]
    """Says that this document is a process."""
    name: EntityName
    """Unique among processes."""
    description: str = ""
    """Free text, shown in the Dagster UI."""
    tags: Tags = Field(default_factory=dict)
    """Free ``name: "value"`` pairs for search; they become tags of its assets."""
    pipelines: Annotated[tuple[EntityName, ...], Field(min_length=1)] = ("default",)
    """The pipelines that the process belongs to; the coordinator of the first one launches it."""
    clusters: Annotated[tuple[ProcessCluster, ...], Field(min_length=1)]
    """The clusters that the process runs on, one at least; all of its feeds must be there."""
    parallel: Annotated[int, Field(ge=1, le=1000, strict=True)] = 1
    """How many instances may run at once, per cluster; one at a time where several write one output instance."""
    queue: EntityName | None = None
    """A queue of the location (``FALCON_QUEUES``), which limits how many instances of all its processes run at once;
    they belong to one pipeline. Omitted: only ``parallel`` limits them."""
    order: Literal["FIFO", "LIFO", "LAST_ONLY"] = "FIFO"
    """Which ready instance runs first: the oldest with ``FIFO``, else the newest; ``LAST_ONLY`` drops all but the
    newest."""
    timeout: Frequency | None = None
    """How long an instance may wait for inputs; omitted: 6 x ``frequency``, 30 minutes at least."""
    frequency: Step
    """Step from one instance to the next, a century at most."""
    timezone: TimeZoneName = "UTC"
    """Steps of days and months, and all expressions, follow the calendar of this zone."""
    sla: ProcessSla | None = None
    """When an instance should start and end; omitted: nobody is warned."""
    inputs: tuple[Input, ...] = ()
    """Omitted: the process waits for its nominal time only."""
    outputs: tuple[Output, ...] = ()
    """The feeds that an instance writes; omitted: it is run for its effect, and an asset of its own stands for that."""
    workflow: AnyWorkflow
    """The program that an instance runs."""
    retry: Retry = Retry()
    """How failed instances are tried again; omitted: three times, ten minutes apart."""
    late_process: LateProcess | None = None
    """The reaction to an input that changed after it was consumed; omitted: none."""
    strict_lineage: StrictBool = False
    """true: an instance that reads what is no input, or writes what is no output, fails before it is published."""
    properties: Properties = Field(default_factory=dict)
    """Variables of the workflow, and ``spark.*`` settings of its session or program; values may hold ``${...}``."""
    notification: Notification | None = None
    """The receivers of events of its instances; omitted: as ``FALCON_NOTIFICATION_TO`` says."""
    acl: Acl | None = None
    """The owner of the process and of what it writes, and permissions; ``user()`` is the owner."""
    template: TemplateUse | None = None
    """The template that it was made from; written by ``falcon template submit``."""
    schedule: StrictBool = False
    """false: submitted only; nothing runs by itself."""

    def on(self, cluster: str) -> ProcessCluster | None:
        """Returns the entry for that cluster, None where the process does not run on it."""
        return next((entry for entry in self.clusters if entry.name == cluster), None)
