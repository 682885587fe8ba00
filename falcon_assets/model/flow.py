"""Flows: what is to be moved, from where to where and when; how is found out."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictBool, StringConstraints, model_validator

from falcon_assets.model.base import Declaration, EntityName, NonEmpty
from falcon_assets.model.cron_schedule import CronSchedule
from falcon_assets.model.feed import FeedFormat, FeedSla, Retention
from falcon_assets.model.frequency import Frequency, Step, TimeUnit
from falcon_assets.model.notification import Notification
from falcon_assets.model.path_template import LegalFileName
from falcon_assets.model.reference import EncryptedValue, WithReferences
from falcon_assets.model.shared import Acl, Properties, Tags, TemplateUse, TimeZoneName, Validity
from falcon_assets.model.transfer import ExportOptions, ImportOptions

_ONCE = Frequency(1, TimeUnit.MINUTES)
"""The step of a flow that runs once; its validity ends before the second instance."""


class FlowDataset(Declaration):
    """What lies at a place; exactly one of the keys."""

    table: NonEmpty | None = None
    """A table of a database, or a resource of an HTTP service (``v1/orders``); on a cluster a table of its registry,
    ``catalog:database:table#key=value`` as in a feed's ``table``."""
    query: NonEmpty | None = None
    """A query of a database, as in ``import``."""
    path: NonEmpty | None = None
    """On a cluster a folder for each instance, with ``${YEAR}`` and so on, as in a feed's ``locations``; on a file
    server a folder, a file or a pattern."""
    topic: NonEmpty | None = None
    """A topic of a broker."""

    @model_validator(mode="after")
    def _one(self) -> FlowDataset:
        if sum(one is not None for one in (self.table, self.query, self.path, self.topic)) != 1:
            raise ValueError("needs exactly one of table, query, path and topic")
        return self


class FlowEnd(Declaration):
    """A place that data is moved from or to: ``datasource`` or ``cluster``."""

    datasource: EntityName | None = None
    """Name of a datasource."""
    cluster: EntityName | None = None
    """Name of a cluster."""
    dataset: FlowDataset | None = None
    """What lies there; of a cluster that data is moved to it may be omitted: then the place is chosen, below
    ``locations.flows`` of the cluster."""

    @property
    def place(self) -> str:
        """The name of the datasource or cluster."""
        return self.datasource or self.cluster or ""

    @model_validator(mode="after")
    def _is_one_place(self) -> FlowEnd:
        if (self.datasource is None) == (self.cluster is None):
            raise ValueError("needs datasource or cluster")
        if self.dataset is None:
            if self.datasource is not None:
                raise ValueError(f"needs dataset: what of datasource {self.datasource!r}")
        elif self.cluster is not None and (self.dataset.query or self.dataset.topic):
            raise ValueError("a dataset on a cluster has a path, or a table")
        return self


class FlowSource(FlowEnd):
    """Where data is moved from."""

    import_: Annotated[ImportOptions | None, Field(alias="import")] = None
    """How a datasource is read, as in ``import`` of a feed's cluster, without its ``source``; omitted: all of it, each
    time."""

    @model_validator(mode="after")
    def _fits(self) -> FlowSource:
        if self.dataset is None:
            raise ValueError(f"needs dataset: what on cluster {self.cluster!r}")
        if self.cluster is not None and self.import_ is not None:
            raise ValueError("import is for datasources")
        return self


class FlowDestination(FlowEnd):
    """Where data is moved to."""

    export: ExportOptions | None = None
    """How a datasource is written, as in ``export`` of a feed's cluster, without its ``target``."""
    retention: Retention | None = None
    """How long instances are kept on this cluster; omitted: as the flow's ``retention`` says."""

    @model_validator(mode="after")
    def _fits(self) -> FlowDestination:
        if self.datasource is not None and self.dataset is not None and self.dataset.table is None:
            raise ValueError("the dataset of a datasource that data is moved to has a table")
        if self.cluster is not None and self.export is not None:
            raise ValueError("export is for datasources")
        if self.datasource is not None and self.retention is not None:
            raise ValueError("retention is for clusters")
        return self


def _not_encrypted(notification: Notification) -> Notification:
    if any(isinstance(one.url, EncryptedValue) for one in notification.to):
        why = "an encrypted value is for one place, and the feeds of the flow need it, too"
        raise ValueError(f"{why}: write {{env: NAME}} or {{file: PATH}}")
    return notification


class Flow(WithReferences):
    """A flow: data that goes from one place to others; the feeds, imports, copies and exports for it are found."""

    kind: Literal["flow"]
    """Says that this document is a flow."""
    name: EntityName
    """Unique among flows; the feed that is made for it has the same name."""
    group: EntityName | None = None
    """The asset group; omitted: none."""
    description: str = ""
    """Free text, shown in the Dagster UI."""
    tags: Tags = Field(default_factory=dict)
    """Free ``name: "value"`` pairs for search; they become tags of the assets, beside ``falcon/flow``."""
    source: FlowSource
    """Where data is moved from."""
    destinations: Annotated[tuple[FlowDestination, ...], Field(min_length=1)]
    """Where data is moved to, one place at least."""
    frequency: Step | None = None
    """Step from one instance to the next; or ``schedule``, or ``once``."""
    schedule: CronSchedule | None = None
    """A cron line instead, on the clock of ``timezone``: ``30 2 * * *``."""
    once: StrictBool = False
    """true: there is one instance, at the start of ``validity``. Paths have all of ``${YEAR}`` to ``${MINUTE}``."""
    timezone: TimeZoneName = "UTC"
    """``schedule``, and steps of days and months, follow the calendar of this zone."""
    validity: Validity | None = None
    """When there are instances; with ``schedule`` the first is its first time from ``start`` on. Omitted: ``falcon flow
    submit`` writes it, from the next time on and for ever."""
    run_immediately: StrictBool = False
    """true: the validity that ``falcon flow submit`` writes begins with the last time before, so that it runs at once;
    with ``frequency`` and ``once`` that is the case anyway."""
    catch_up: Literal[True, "skip"] = True
    """``true``: instances that were missed run later, one by one; ``skip``: of them only the newest runs."""
    format: FeedFormat = "parquet"
    """The format of files on clusters."""
    options: dict[NonEmpty, str] = Field(default_factory=dict)
    """Options of Spark's data source for reading and writing them."""
    schema_: Annotated[str | None, Field(alias="schema")] = None
    """Spark DDL, enforced when they are read."""
    availability_flag: Annotated[str, StringConstraints(pattern=r"^[^/\s]+$"), LegalFileName] | None = "_SUCCESS"
    """Name of the file that says that an instance on a cluster is complete; null: it is when its path exists."""
    retention: Retention | None = None
    """How long instances are kept on clusters, but for destinations that say it themselves; omitted: for ever."""
    sla: FeedSla | None = None
    """When an instance should be on each cluster, and when its imports and exports should have started (``low``) and
    ended (``high``)."""
    queue: EntityName | None = None
    """A queue of the location (``FALCON_QUEUES``) for its imports and exports; omitted: none."""
    notification: Annotated[Notification, AfterValidator(_not_encrypted)] | None = None
    """The receivers of events of its imports, copies and exports, and of its data; omitted: as
    ``FALCON_NOTIFICATION_TO`` says."""
    acl: Acl | None = None
    """The owner of the flow and its data, and permissions."""
    properties: Properties = Field(default_factory=dict)
    """As those of a feed: variables of paths, and options of replication."""
    template: TemplateUse | None = None
    """The template that it was made from; written by ``falcon template submit``."""

    @property
    def step(self) -> Frequency:
        """From one instance to the next."""
        if self.schedule is not None:
            return self.schedule.frequency
        return self.frequency or _ONCE

    @model_validator(mode="after")
    def _fits(self) -> Flow:
        if sum([self.frequency is not None, self.schedule is not None, self.once]) != 1:
            raise ValueError("needs exactly one of frequency, schedule and once: true")
        if self.schedule is not None and not self.schedule.fits(self.timezone):
            raise ValueError(
                f"schedule {self.schedule.text!r} has no even step in {self.timezone}, where clocks are changed: "
                "write timezone: UTC, or a frequency"
            )
        taken = [(one.datasource, one.cluster) for one in self.destinations]
        for number, one in enumerate(self.destinations):
            if taken[number] in taken[:number]:
                raise ValueError(f"destinations name {one.place!r} twice: make another flow")
            if one.cluster is not None and one.cluster == self.source.cluster:
                raise ValueError(f"cluster {one.cluster!r} is source and destination")
        declared = self.source.import_
        if self.catch_up == "skip" and declared is not None and declared.incremental is not None:
            raise ValueError("changes are read instance by instance, so none can be skipped: write catch_up: true")
        return self
