"""Datasources: databases, services, file servers and brokers that data is imported from and exported to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from falcon_assets.base.texts import without_credentials
from falcon_assets.errors import ExpressionError
from falcon_assets.model.base import Declaration, EntityName, NonEmpty
from falcon_assets.model.reference import Reference, WithReferences
from falcon_assets.model.shared import Acl, Tags, TemplateUse

_Rate = Annotated[int, Field(ge=1, strict=True)]


def _without_login(endpoint: str) -> str:
    if without_credentials(endpoint) != endpoint:
        raise ExpressionError(
            f"{without_credentials(endpoint)!r} must not have a password: write user and password as credential"
        )
    return endpoint


class Credential(Declaration):
    """The user, and how it is authenticated; secrets by ``{env: NAME}``, ``{file: PATH}`` or ``{encrypted: ...}``."""

    user: NonEmpty | Reference | None = None
    """The name of the user."""
    password: Reference | None = None
    """The password; of an HTTP service with a ``user``, that of its basic authentication."""
    token: Reference | None = None
    """A bearer token of an HTTP service, instead of user and password."""
    private_key: Reference | None = None
    """The text of a private key of an SFTP server, instead of a password."""


class DatasourceInterface(Declaration):
    """How a datasource is reached, for reading or for writing."""

    endpoint: Annotated[NonEmpty, AfterValidator(_without_login)]
    """A URL in the form of the datasource's type, without user and password: ``postgresql://host:5432/shop``."""
    credential: Annotated[Credential | None, Field(repr=False)] = None
    """Omitted: the credential of the other interface, if it has one."""


class DatasourceInterfaces(Declaration):
    """The interfaces of a datasource, one at least."""

    readonly: DatasourceInterface | None = None
    """What imports read from; omitted: ``write``."""
    write: DatasourceInterface | None = None
    """What exports write to; omitted: nothing is written."""

    @model_validator(mode="after")
    def _one_at_least(self) -> DatasourceInterfaces:
        if self.readonly is None and self.write is None:
            raise ValueError("needs readonly, write, or both")
        return self


class DatasourceThrottle(Declaration):
    """How much may be asked of a datasource, by all workers of a run together."""

    connections: Annotated[int, Field(ge=1, le=1000, strict=True)] = 4
    """How many connections a run has at once."""
    rows_per_second: _Rate | None = None
    """How many rows a run reads or writes in a second; omitted: no limit."""
    bytes_per_second: _Rate | None = None
    """How many bytes of files a run reads or writes in a second; omitted: no limit."""


class Datasource(WithReferences):
    """A datasource: where data is imported from, or exported to."""

    kind: Literal["datasource"]
    """Says that this document is a datasource."""
    name: EntityName
    """Unique among datasources."""
    description: str = ""
    """Free text."""
    tags: Tags = Field(default_factory=dict)
    """Free ``name: "value"`` pairs for search."""
    type: NonEmpty
    """What it is: ``postgresql``, ``mysql``, ``sqlite`` or another of the [types](../guides/datasources.md)."""
    interfaces: DatasourceInterfaces
    """How it is reached."""
    driver: dict[NonEmpty, Reference | str] = Field(default_factory=dict, repr=False)
    """Options of its driver, by its type; secrets as ``{env: NAME}``, ``{file: PATH}`` or ``{encrypted: ...}``."""
    colo: NonEmpty = "default"
    """Where it is, as ``colo`` of a cluster."""
    throttle: DatasourceThrottle = DatasourceThrottle()
    """How much may be asked of it; omitted: four connections at once."""
    acl: Acl | None = None
    """The owner of the datasource, and permissions."""
    template: TemplateUse | None = None
    """The template that it was made from; written by ``falcon template submit``."""

    def interface(self, *, write: bool) -> DatasourceInterface | None:
        """What is written to, or read from; None: nothing is written there."""
        found = self.interfaces
        return found.write if write else found.readonly or found.write

    def credential(self, *, write: bool) -> Credential:
        """That of the interface, else that of the other one."""
        found = self.interfaces
        own, other = (found.write, found.readonly) if write else (found.readonly, found.write)
        credentials = (one.credential for one in (own, other) if one is not None)
        return next(filter(None, credentials), Credential())
