"""Clusters: where data lives and where it is computed."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, StrictBool, StrictInt, StringConstraints, model_validator

from falcon_assets.base.texts import without_credentials
from falcon_assets.errors import ExpressionError
from falcon_assets.model.base import Declaration, EntityName, NonEmpty
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.executor import DEFAULT_EXECUTOR, ClusterExecutor, ExecuteInterface, is_endpoint
from falcon_assets.model.notification import Notification
from falcon_assets.model.path_template import LegalFolder, LegalPath, is_within
from falcon_assets.model.reference import Reference, WithReferences
from falcon_assets.model.shared import Acl, Properties, Tags, TemplateUse
from falcon_assets.model.store_url import is_mounted

_MESSAGING = re.compile(
    r"kafka://(?P<brokers>[^\s/@,:]+:\d+(,[^\s/@,:]+:\d+)*)/(?P<topic>[\w.-]{1,249})"
    r"|amqps?://(?P<host>[^\s/@:]+)(:(?P<port>\d+))?/(?P<vhost>[^\s/]+)/(?P<exchange>[^\s/]+)"
    r"|https?://[^\s/@]+(/\S*)?"
)

_CORES = "spark.cores.max"


def _known_messaging(endpoint: str) -> str:
    if not _MESSAGING.fullmatch(endpoint):
        raise ExpressionError(
            f"{without_credentials(endpoint)!r} is not a messaging endpoint: write kafka://host:port/topic, "
            "amqp://host/vhost/exchange, amqps://... or https://...; user and password are options"
        )
    return endpoint


_PlainOption = Annotated[Reference | StrictBool | StrictInt | str, Field(union_mode="left_to_right")]
StorageOption = Annotated[
    Reference | StrictBool | StrictInt | str | dict[str, _PlainOption | dict[str, _PlainOption]],
    Field(union_mode="left_to_right"),
]
"""An option of a file system; a mapping below ``client_kwargs``, ``config_kwargs`` and the like."""


class StorageInterface(Declaration):
    """A file system, by URL."""

    endpoint: LegalPath
    """Any fsspec URL (``file://``, ``s3://``, ``abfs://``, ``gs://``, ``hdfs://``), or a path below ``FALCON_HOME``."""


class WriteInterface(StorageInterface):
    """The file system that data is written to, by URL, or several volumes."""

    model_config = ConfigDict(json_schema_extra=lambda schema: schema["required"].remove("endpoint"))

    endpoints: tuple[LegalPath, ...] = ()
    """Several folders, on disks of their own, instead of ``endpoint``, which is the first of them: an instance lies on
    one of these [volumes](../guides/volumes.md), and a new one on that with the most free space."""
    max_usage: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]?%$")] | None = None
    """How full its disk may be, such as ``85%``: where it is fuller, kept versions, archives and outputs that are kept
    aside go, the oldest first. Omitted: they go by age and number only."""

    @model_validator(mode="before")
    @classmethod
    def _first_endpoint(cls, declared: Any) -> Any:
        """Fills ``endpoint`` in."""
        match declared:
            case {"endpoints": [first, *_]} if isinstance(first, str) and declared.get("endpoint", first) == first:
                return {**declared, "endpoint": first}
        return declared

    @model_validator(mode="after")
    def _one_or_several(self) -> WriteInterface:
        if self.endpoints and self.endpoint != self.endpoints[0]:
            raise ValueError("endpoint and endpoints exclude each other: write all volumes into endpoints")
        if len(set(self.endpoints)) < len(self.endpoints):
            raise ValueError("endpoints names a volume twice")
        return self

    @property
    def volumes(self) -> tuple[str, ...]:
        """All endpoints, the first of which is ``endpoint``."""
        return self.endpoints or (self.endpoint,)

    @property
    def has_working(self) -> bool:
        """Whether the working location lies there: not on a store that is not mounted, or on one volume of several."""
        return is_mounted(self.endpoint) and len(self.volumes) == 1

    @property
    def max_percent(self) -> int | None:
        """``max_usage`` as a number."""
        return None if self.max_usage is None else int(self.max_usage[:-1])


class RegistryInterface(Declaration):
    """A catalog of tables, by URL."""

    endpoint: NonEmpty
    """The URL of the catalog, in one of these forms."""
    storage_options: dict[str, _PlainOption] = Field(default_factory=dict)
    """For Iceberg's REST services, handed to PyIceberg: ``credential`` or ``token``, ``oauth2-server-uri``, ``scope``
    and so on; secrets as ``{env: NAME}``, ``{file: PATH}`` or ``{encrypted: ...}``, which are read when used and
    never printed."""


class MessagingInterface(Declaration):
    """A broker that every transition of the cluster's instances is published to, as CloudEvents."""

    endpoint: Annotated[str, AfterValidator(_known_messaging)]
    """``kafka://host:port[,host:port]/topic``, ``amqp://host[:port]/vhost/exchange`` (or ``amqps://``; ``%2F`` is the
    vhost ``/``) or ``https://...``."""
    options: dict[str, _PlainOption] = Field(default_factory=dict)
    """Kafka: settings of librdkafka (``sasl.password``); AMQP: ``username`` and ``password``; HTTP: headers.
    Secrets as ``{env: NAME}``, ``{file: PATH}`` or ``{encrypted: ...}``, which are read when used and never printed."""
    on: tuple[EventKind, ...] = ()
    """The [transitions](cloudevents.md#transitions) that are published; omitted: all."""
    entities: tuple[EntityName, ...] = ()
    """The feeds and processes whose instances are published; omitted: all."""

    @property
    def parts(self) -> dict[str, str]:
        """The named parts of the endpoint that are there."""
        found = _MESSAGING.fullmatch(self.endpoint)
        return {name: value for name, value in found.groupdict().items() if value} if found else {}


class Interfaces(Declaration):
    """How a cluster is reached."""

    model_config = ConfigDict(json_schema_extra=lambda schema: schema["required"].remove("execute"))

    write: WriteInterface
    """Where its data lives and is written."""
    readonly: StorageInterface | None = None
    """Where replication reads from; ``write`` when omitted."""
    execute: ExecuteInterface
    """Where its processes run. May be left out of a cluster with ``executors``, the first of which it is then: where
    everything runs that no coordinator starts."""
    registry: RegistryInterface | None = None
    """The catalog of table feeds: ``thrift://host:port`` (a Hive Metastore), ``iceberg+postgresql://user@host/db#name``
    (an Iceberg catalog in a database) or ``iceberg+https://host/path#warehouse`` (an Iceberg REST service)."""
    messaging: MessagingInterface | None = None
    """Where transitions of instances are published: a broker, or an HTTP service."""

    def storage(self, *, readonly: bool = False) -> StorageInterface:
        """Where the data is written, or what it is only read from."""
        return (self.readonly if readonly else None) or self.write


class ClusterLocations(Declaration):
    """Folders below the write endpoint that belong to this package."""

    staging: LegalFolder = "/.falcon/staging"
    """Where outputs are written before they are published; must be on the file system of the data."""
    working: LegalFolder = "/.falcon/working"
    """Scratch space of workflows and their logs. Where the data is on several volumes, or on a store that is not
    mounted, it is ``working/CLUSTER`` below ``FALCON_HOME`` instead."""
    flows: LegalFolder = "/flows"
    """Where data of [flows](../guides/flows.md) lies that they name no place for, a folder for each."""

    @model_validator(mode="after")
    def _apart(self) -> ClusterLocations:
        if is_within(self.working, self.staging) or is_within(self.staging, self.working):
            raise ValueError(f"staging {self.staging!r} and working {self.working!r} must not be inside of each other")
        return self


class Cluster(WithReferences):
    """A cluster: storage, compute, and the colo that it belongs to."""

    kind: Literal["cluster"]
    """Says that this document is a cluster."""
    name: EntityName
    """Unique among clusters; the first part of the asset keys."""
    colo: NonEmpty = "default"
    """Groups clusters; ``FALCON_COLO`` limits a code location to one colo."""
    description: str = ""
    """Free text, shown in the Dagster UI."""
    tags: Tags = Field(default_factory=dict)
    """Free ``name: "value"`` pairs for search."""
    interfaces: Interfaces
    """How the cluster is reached: where data lies and where Spark runs."""
    executors: tuple[ClusterExecutor, ...] = ()
    """Several Sparks that share the work of the cluster; omitted: ``interfaces.execute`` does all of it."""
    locations: ClusterLocations = ClusterLocations()
    """Where outputs are staged and workflows work; omitted: below ``/.falcon``."""
    storage_options: dict[str, StorageOption] = Field(default_factory=dict)
    """Handed to fsspec; secrets as ``{env: NAME}``, ``{file: PATH}`` or ``{encrypted: ...}``, which are read when
    used and never printed. ``client_kwargs: {endpoint_url: ...}`` and other ``*_kwargs`` hold further options."""
    acl: Acl | None = None
    """The owner of the cluster, and permissions."""
    template: TemplateUse | None = None
    """The template that it was made from; written by ``falcon template submit``."""
    notification: Notification | None = None
    """Who is notified when an executor does not answer any more, or does again; omitted: ``FALCON_NOTIFICATION_TO``."""
    properties: Properties = Field(default_factory=dict)
    """``spark.*`` configure the Spark session; all of them are variables of paths and workflows."""

    @model_validator(mode="before")
    @classmethod
    def _first_executor(cls, declared: Any) -> Any:
        """Fills ``interfaces.execute`` in."""
        match declared:
            case {"interfaces": {**interfaces}, "executors": [{**first}, *_]} if "execute" not in interfaces:
                endpoint = first.get("endpoint")
                execute = {"endpoint": endpoint if is_endpoint(endpoint) else "local"}  # the executor itself is wrong
                return {**declared, "interfaces": {**interfaces, "execute": execute}}
        return declared

    @property
    def all_executors(self) -> tuple[ClusterExecutor, ...]:
        """Where none are declared, ``interfaces.execute`` under the name ``default``."""
        return self.executors or (ClusterExecutor(name=DEFAULT_EXECUTOR, endpoint=self.interfaces.execute.endpoint),)

    @property
    def declared_endpoint(self) -> str:
        """The key, for messages, that says where it executes."""
        return "the endpoint of the executor" if self.executors else "interfaces.execute.endpoint"

    @property
    def ui(self) -> str | None:
        """The declared page of where it executes."""
        here = self.interfaces.execute.endpoint
        return next((one.ui for one in self.executors if one.endpoint == here and one.ui), None)

    def on(self, executor: str) -> Cluster:
        """The cluster with that executor for its ``interfaces.execute``; itself, where it has none of that name."""
        found = next((one for one in self.executors if one.name == executor), None)
        if found is None:
            return self
        execute = ExecuteInterface(endpoint=found.endpoint)
        limited = (
            {_CORES: str(found.quota.cores)} if found.quota.cores and found.endpoint.startswith("spark://") else {}
        )
        changed = {
            "interfaces": self.interfaces.model_copy(update={"execute": execute}),
            "properties": {**limited, **self.properties},
        }
        return self.model_copy(update=changed)

    @property
    def variables(self) -> dict[str, str]:
        """Variables for ``${...}`` in paths and properties on this cluster."""
        return {**self.properties, "cluster.name": self.name, "cluster.colo": self.colo}
