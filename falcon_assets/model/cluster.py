"""Clusters: where data lives and where it is computed."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt, model_validator

from falcon_assets.base.texts import without_credentials
from falcon_assets.errors import ExpressionError
from falcon_assets.model.base import Declaration, EntityName, NonEmpty
from falcon_assets.model.event_kind import EventKind
from falcon_assets.model.path_template import LegalFolder, LegalPath, is_within
from falcon_assets.model.reference import Reference, WithReferences
from falcon_assets.model.shared import Acl, Properties, Tags, TemplateUse

_MESSAGING = re.compile(
    r"kafka://(?P<brokers>[^\s/@,:]+:\d+(,[^\s/@,:]+:\d+)*)/(?P<topic>[\w.-]{1,249})"
    r"|amqps?://(?P<host>[^\s/@:]+)(:(?P<port>\d+))?/(?P<vhost>[^\s/]+)/(?P<exchange>[^\s/]+)"
    r"|https?://[^\s/@]+(/\S*)?"
)
_EXECUTE = re.compile(r"local|local\[(\d+|\*)\]|spark://[^\s/:]+:\d+(,[^\s/:]+:\d+)*|yarn|k8s://\S+|sc://\S+")


def _known_execute(endpoint: str) -> str:
    if not _EXECUTE.fullmatch(endpoint):
        raise ExpressionError(
            f"{endpoint!r} is not an execute endpoint: write local[N], spark://host:port, yarn, k8s://... or sc://host:port"
        )
    return endpoint


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


class ExecuteInterface(Declaration):
    """Where Spark runs."""

    endpoint: Annotated[str, AfterValidator(_known_execute)]
    """``local[N]``, ``spark://host:port``, ``yarn``, ``k8s://...`` or ``sc://host:port`` (Spark Connect)."""

    def tasks_at_once(self, cores: int) -> int | None:
        """How many tasks run side by side, where the endpoint says it: ``local[*]`` on a machine of ``cores``."""
        found = _EXECUTE.fullmatch(self.endpoint)
        if found is None or not self.endpoint.startswith("local"):
            return None
        threads = found[1] or "1"
        return cores if threads == "*" else int(threads)


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

    write: StorageInterface
    """Where its data lives and is written."""
    readonly: StorageInterface | None = None
    """Where replication reads from; ``write`` when omitted."""
    execute: ExecuteInterface
    """Where its processes run."""
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
    """Scratch space of workflows and their logs."""
    flows: LegalFolder = "/flows"
    """Where data of flows lies that they name no place for, a folder for each."""

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
    locations: ClusterLocations = ClusterLocations()
    """Where outputs are staged and workflows work; omitted: below ``/.falcon``."""
    storage_options: dict[str, StorageOption] = Field(default_factory=dict)
    """Handed to fsspec; secrets as ``{env: NAME}``, ``{file: PATH}`` or ``{encrypted: ...}``, which are read when
    used and never printed. ``client_kwargs: {endpoint_url: ...}`` and other ``*_kwargs`` hold further options."""
    acl: Acl | None = None
    """The owner of the cluster, and permissions."""
    template: TemplateUse | None = None
    """The template that it was made from; written by ``falcon template submit``."""
    properties: Properties = Field(default_factory=dict)
    """``spark.*`` configure the Spark session; all of them are variables of paths and workflows."""

    @property
    def variables(self) -> dict[str, str]:
        """Variables for ``${...}`` in paths and properties on this cluster."""
        return {**self.properties, "cluster.name": self.name, "cluster.colo": self.colo}
