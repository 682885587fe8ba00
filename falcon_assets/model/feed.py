"""Feeds: time-partitioned data sets."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, PrivateAttr, StrictBool, StringConstraints, model_validator

from falcon_assets.model.base import Declaration, EntityName, NonEmpty
from falcon_assets.model.cluster import StorageOption
from falcon_assets.model.completeness import Completeness
from falcon_assets.model.frequency import Frequency, Step
from falcon_assets.model.notification import Notification
from falcon_assets.model.path_template import LegalFileName, PathTemplate
from falcon_assets.model.process import ProcessSla, Retry
from falcon_assets.model.quality_rules import AnyCheck
from falcon_assets.model.reference import WithReferences
from falcon_assets.model.shared import Acl, Properties, Tags, TemplateUse, TimeZoneName, Validity
from falcon_assets.model.table_uri import TableUri
from falcon_assets.model.transfer import Exports, Import

FeedFormat = Literal["parquet", "orc", "json", "csv", "text", "xml", "avro", "binaryFile"]
LifecycleStatus = Literal["initial", "test", "validated", "critical"]


class LateArrival(Declaration):
    """How long data of an instance may still change."""

    cut_off: Frequency
    """How long after its nominal time an instance may still change."""


class FeedSla(Declaration):
    """When an instance should be there, counted from its nominal time."""

    low: Frequency
    """Worth a warning when it is not there by then."""
    high: Frequency
    """Missed when it is not there by then; not shorter than ``low``."""

    @model_validator(mode="after")
    def _ordered(self) -> FeedSla:
        if self.low.length > self.high.length:
            raise ValueError(f"low {self.low} must not be longer than high {self.high}")
        return self


class Locations(Declaration):
    """Path templates below the cluster's write endpoint, or whole URLs: what these name lies there."""

    data: PathTemplate | None = None
    """The instance itself."""
    stats: PathTemplate | None = None
    """Statistics about the instance, which retention takes along; without a time variable about the feed: they stay."""
    meta: PathTemplate | None = None
    """Metadata, the same way."""
    storage_options: dict[str, StorageOption] | None = None
    """Options of the stores of those that are whole URLs, written as a cluster's; omitted: the cluster's."""


def _readable(uri: str) -> str:
    PathTemplate.parse(uri)
    TableUri.parse(uri)
    return uri


class Table(Declaration):
    """Catalog storage."""

    uri: Annotated[str, StringConstraints(pattern=r"^catalog:[^:#\s]+:[^:#\s]+(#[^#\s]+)?$"), AfterValidator(_readable)]
    """``catalog:database:table#key=value;key=value``, with all partition keys of the table; values may hold ``${YEAR}``
    and the like, and ``*`` is every value: then all those partitions together are an instance. Of a snapshot feed it is
    the whole table: without ``#`` where it has no keys, else each of them ``*``."""
    create: StrictBool = False
    """Whether a process that writes the feed makes a table that is not there, with the columns of its output."""
    merge_schema: StrictBool = False
    """Whether columns of an output that the table does not have are added to it; else the output does not fit."""


class Retention(Declaration):
    """How long instances are kept on a cluster."""

    limit: Frequency
    """Age, counted from the nominal time, after which an instance goes; not shorter than the cut-off."""
    action: Literal["delete", "archive"] = "delete"
    """``delete``: the instance is removed; ``archive``: it is moved to ``archive_to``."""
    archive_to: PathTemplate | None = None
    """Where archived instances go, a whole URL perhaps; with ``action: archive`` only, and required there. ``stats``
    and ``meta`` go beside it, with ``.stats`` and ``.meta`` at the end of the path."""
    archive_cluster: EntityName | None = None
    """The cluster that ``archive_to`` lies on, or whose ``storage_options`` open its URL; omitted: the cluster archived
    from, and the ``storage_options`` of its ``locations``."""
    archive_limit: Frequency | None = None
    """Age, counted from the nominal time, after which an archived instance is removed, too; longer than ``limit``.
    Omitted: it stays, unless its disk gets fuller than ``max_usage``."""
    keep_last: Annotated[int, Field(ge=1, strict=True)] | None = None
    """The newest n instances that are there stay, however old they are."""
    minimum_age: Frequency | None = None
    """How long an instance stays after its data landed, however old its nominal time is."""
    future: Literal["keep", "delete"] = "keep"
    """The treatment of instances dated after now; ``delete``: the action, as with those that are too old."""

    @model_validator(mode="after")
    def _archive_needs_a_place(self) -> Retention:
        if (self.action == "archive") != (self.archive_to is not None):
            raise ValueError("archive_to is required with action: archive, and allowed only there")
        if self.archive_cluster is not None and self.action != "archive":
            raise ValueError("archive_cluster is allowed with action: archive only")
        if self.archive_limit is not None and self.action != "archive":
            raise ValueError("archive_limit is allowed with action: archive only")
        if self.archive_limit is not None and self.archive_limit.length <= self.limit.length:
            raise ValueError(f"archive_limit, {self.archive_limit}, must be longer than limit, {self.limit}")
        return self


class VersionRetention(Declaration):
    """Which versions of an instance stay beside the one that replaced them."""

    keep: Annotated[int, Field(ge=1, strict=True)]
    """The number of versions of each instance that stay, those that were replaced last."""
    for_: Annotated[Frequency | None, Field(alias="for")] = None
    """How long they stay after they were replaced; omitted: until more than ``keep`` are there."""


class RetentionStage(Declaration):
    """When retention looks for instances that are too old."""

    frequency: Frequency
    """Time from one pass of retention to the next."""


class Lifecycle(Declaration):
    """Stages in the life of a feed, as Falcon's ``lifecycle`` tag."""

    retention: RetentionStage
    """When retention runs, instead of every 6 hours (limits under 24 hours) or every 24 hours."""


_UNITS = {"KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


class Compaction(Declaration):
    """Writes each instance once more, sorted, in few files, on all clusters but targets of replication."""

    sort: tuple[NonEmpty, ...] = ()
    """Columns, the first counts most; null comes first. Omitted: rows stay in the order of files."""
    target_file_size: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,5}(KB|MB|GB)$")] = "256MB"
    """About the size of each new file: ``256MB``, ``1GB``."""
    when: Literal["complete"] = "complete"
    """``complete``: as soon as the instance is available."""
    late_files: Annotated[int, Field(ge=0, strict=True)] = 0
    """An instance is compacted again when more new files than that have come since."""
    replaces: StrictBool = False
    """true: replaced files are removed at once, even if the feed keeps ``versions``."""
    parallel: Annotated[int, Field(ge=1, le=100, strict=True)] = 1
    """How many instances are written at once on a cluster."""
    retry: Retry = Retry()
    """How failed ones are tried again; omitted: three times, ten minutes apart."""
    sla: ProcessSla | None = None
    """When the compaction of an instance should start and end; omitted: nobody is warned."""

    @property
    def file_bytes(self) -> int:
        """The size of each new file."""
        return int(self.target_file_size[:-2]) * _UNITS[self.target_file_size[-2:]]


class Rollup(Declaration):
    """The feeds whose instances make those of a feed: all whose time lies in its period."""

    of: Annotated[tuple[EntityName, ...], Field(min_length=1)]
    """The members: feeds on the same clusters, roll-ups too. Instances are compared by wall clock, a member's in the
    member's ``timezone``, the period in its own."""
    optional: tuple[EntityName, ...] = ()
    """The members that are not waited for; if their data comes later, that is a new version."""

    _feeds: tuple[Any, ...] = PrivateAttr(())

    @property
    def feeds(self) -> tuple[Any, ...]:
        """The members themselves, in the order of ``of``; empty before all definitions are read."""
        return self._feeds

    def with_feeds(self, feeds: tuple[Any, ...]) -> Rollup:
        """The same, once the members are read."""
        found = self.model_copy()
        found._feeds = feeds
        return found

    @model_validator(mode="after")
    def _each_once(self) -> Rollup:
        if len(set(self.of)) < len(self.of):
            raise ValueError("names a feed twice")
        if unknown := [name for name in self.optional if name not in self.of]:
            raise ValueError(f"optional names {', '.join(unknown)}, which is not among of")
        if set(self.optional) == set(self.of):
            raise ValueError("one member at least must not be optional: an instance would be complete without any data")
        return self


class CopyThrottle(Declaration):
    """How fast instances are copied to a cluster."""

    bytes_per_second: Annotated[int, Field(ge=1, strict=True)]
    """By all tasks and all instances of a run together."""


class FeedCluster(Declaration):
    """Keys of a feed for one cluster."""

    name: EntityName
    """Name of a cluster."""
    type: Literal["source", "target"] | None = None
    """Role in replication; omitted: the feed is not replicated from or to here."""
    validity: Validity
    """When the feed has instances on this cluster."""
    retention: Retention | None = None
    """How long instances are kept; omitted: for ever."""
    lifecycle: Lifecycle | None = None
    """Overrides the feed's lifecycle."""
    partition: NonEmpty | None = None
    """Which sub-partition belongs to this cluster, for replication; may hold ``${cluster.colo}`` and ``*``."""
    delay: Frequency | None = None
    """How long replication waits after the nominal time."""
    throttle: CopyThrottle | None = None
    """How fast replication copies to this cluster, a target; omitted: as fast as it can."""
    sla: FeedSla | None = None
    """Overrides the feed's."""
    locations: Locations | None = None
    """Overrides the feed's locations one by one."""
    table: Table | None = None
    """Overrides the feed's table."""
    path_timezone: TimeZoneName | None = None
    """Overrides the feed's."""
    import_: Annotated[Import | None, Field(alias="import")] = None
    """Makes the instances on this cluster from a datasource; omitted: they land, or a process or replication makes
    them."""
    export: Exports | None = None
    """Delivers the instances on this cluster to datasources: one target, or a list of them."""


class Feed(WithReferences):
    """A feed: a data set with one instance per step of its frequency."""

    kind: Literal["feed"]
    """Says that this document is a feed."""
    name: EntityName
    """Unique among feeds; the last part of the asset keys."""
    description: str = ""
    """Free text, shown as the asset's description."""
    tags: Tags = Field(default_factory=dict)
    """Free ``name: "value"`` pairs for search; they become tags of the assets."""
    groups: tuple[EntityName, ...] = ()
    """The first is the asset group."""
    frequency: Step
    """Step from one instance to the next, a century at most."""
    timezone: TimeZoneName = "UTC"
    """Steps of days and months follow the calendar of this zone."""
    path_timezone: TimeZoneName | None = None
    """The zone whose clock paths and tables show in ``${YEAR}`` to ``${MINUTE}``; omitted: UTC for minutes and hours,
    ``timezone`` for days and months. Apache Falcon filled all of them in UTC."""
    partitions: tuple[NonEmpty, ...] = ()
    """Names of the sub-partitions below an instance path, in order (``/US/2013``: country, year); they are columns
    when it is read."""
    availability_flag: Annotated[str, StringConstraints(pattern=r"^[^/\s]+$"), LegalFileName] | None = None
    """Name of the file that says "complete"; omitted: an instance is available when its path exists."""
    completeness: Completeness | None = None
    """The share of the sent records that has to be there; omitted: records are not counted."""
    late_arrival: LateArrival | None = None
    """How long data may still change; omitted: nothing of this feed counts as late."""
    sla: FeedSla | None = None
    """When an instance should be there; omitted: nobody is warned."""
    format: FeedFormat = "parquet"
    """A Spark data source; ``binaryFile`` can only be read, ``avro`` wants its package in ``spark.jars.packages``."""
    options: dict[NonEmpty, str] = Field(default_factory=dict)
    """Options of the Spark data source, for reading and for writing."""
    schema_: Annotated[str | None, Field(alias="schema")] = None
    """Spark DDL (``year int, carrier string``); declared means enforced on read."""
    checks: tuple[AnyCheck, ...] = ()
    """What must be true of the data of each version; else it is invalid."""
    on_error: Literal["publish", "hold"] = "publish"
    """``hold``: what a process computed is checked before it is published, and kept aside, unpublished, where a check
    with ``severity: error`` fails; the instance of the process fails then."""
    profile: StrictBool = False
    """true: figures of each column of each version are kept: nulls, distinct values, min, max, mean, quantiles."""
    locations: Locations | None = None
    """Storage in files; a feed has ``locations`` or a ``table``."""
    table: Table | None = None
    """Storage in a catalog."""
    rollup: Rollup | None = None
    """Makes its instances of those of other feeds: the feed has no data of its own."""
    lifecycle: Lifecycle | None = None
    """When retention runs; omitted: as its limits ask for."""
    compact: Compaction | None = None
    """How instances are compacted; omitted: they stay as they are written."""
    snapshot: StrictBool = False
    """true: ``data`` has no time variable. What lies there is replaced in place, and is the instance of every time up
    to when it was refreshed."""
    versions: VersionRetention | None = None
    """The retention of replaced versions, which can be restored; omitted: they are removed."""
    lifecycle_status: LifecycleStatus = "initial"
    """Of each version, unless ``falcon lineage status`` says another; ``critical`` protects what it was made from."""
    clusters: Annotated[tuple[FeedCluster, ...], Field(min_length=1)]
    """The clusters that the feed is on, one at least."""
    notification: Notification | None = None
    """The receivers of events of its instances; omitted: as ``FALCON_NOTIFICATION_TO`` says."""
    acl: Acl | None = None
    """The owner of the feed and its data, and permissions."""
    properties: Properties = Field(default_factory=dict)
    """Free ``name: "value"`` pairs; paths may name them as ``${name}``, below the cluster's own."""
    template: TemplateUse | None = None
    """The template that it was made from; written by ``falcon template submit``."""
    schedule: StrictBool = False
    """false: submitted only; nothing runs by itself."""

    @property
    def can_be_invalid(self) -> bool:
        """Whether checks of it, or of a member at any depth, are errors where they fail."""
        members = self.rollup.feeds if self.rollup else ()
        return any(one.severity == "error" for one in self.checks) or any(one.can_be_invalid for one in members)

    @property
    def holds(self) -> bool:
        """Whether outputs of processes are checked before they are published."""
        return self.on_error == "hold" and bool(self.checks)

    def on(self, cluster: str) -> FeedCluster | None:
        """Returns the entry for that cluster, None where the feed is not on it."""
        return next((entry for entry in self.clusters if entry.name == cluster), None)

    def locations_on(self, cluster: str) -> Locations:
        """The locations on that cluster: its own where declared, else the feed's."""
        entry = self.on(cluster)
        own = (entry.locations if entry else None) or Locations()
        common = self.locations or Locations()
        options = common.storage_options if own.storage_options is None else own.storage_options
        return Locations(
            data=own.data or common.data,
            stats=own.stats or common.stats,
            meta=own.meta or common.meta,
            storage_options=options,
        )

    def path_zone_on(self, cluster: str) -> str:
        """The zone whose clock the paths on that cluster show."""
        entry = self.on(cluster)
        declared = (entry.path_timezone if entry else None) or self.path_timezone
        return declared or self.calendar_zone

    @property
    def calendar_zone(self) -> str:
        """The zone whose clock its instances are named after, of which no two have the same time."""
        return "UTC" if self.frequency.is_absolute else self.timezone

    def sla_on(self, cluster: str) -> FeedSla | None:
        """When an instance should be on that cluster: as declared for it, else for the feed."""
        entry = self.on(cluster)
        return (entry.sla if entry else None) or self.sla

    @property
    def is_taken_by_record(self) -> bool:
        """Whether an instance is there only once it is recorded, however complete it looks in its store."""
        return self.completeness is not None or self.rollup is not None

    def table_on(self, cluster: str) -> Table | None:
        """The table on that cluster: its own where declared, else the feed's; None for file-system storage."""
        entry = self.on(cluster)
        return (entry.table if entry else None) or self.table
