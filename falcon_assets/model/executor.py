"""Executors: the Sparks of a cluster, among which its work is distributed."""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from falcon_assets.errors import ExpressionError
from falcon_assets.model.base import Declaration, EntityName, NonEmpty
from falcon_assets.model.frequency import Frequency, TimeUnit

_ENDPOINT = re.compile(r"local|local\[(\d+|\*)\]|spark://[^\s/:]+:\d+(,[^\s/:]+:\d+)*|yarn|k8s://\S+|sc://\S+")
_Count = Annotated[int, Field(ge=1, le=100_000, strict=True)]

PlaceKind = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,38}$")]
"""A kind of places where data lies: ``file``, ``hive``, ``iceberg``, or the type of a datasource."""
Capability: TypeAlias = tuple[PlaceKind, PlaceKind]
"""The kind of place that data is moved from, and the kind that it is moved to."""

DEFAULT_EXECUTOR = "default"
"""The name of ``interfaces.execute`` where it is the only executor."""


def _known_execute(endpoint: str) -> str:
    if not _ENDPOINT.fullmatch(endpoint):
        raise ExpressionError(
            f"{endpoint!r} is not an execute endpoint: write local[N], spark://host:port, yarn, k8s://... or sc://host:port"
        )
    return endpoint


Endpoint = Annotated[str, AfterValidator(_known_execute)]


def is_endpoint(text: object) -> bool:
    """Whether it is legal as an endpoint."""
    return isinstance(text, str) and _ENDPOINT.fullmatch(text) is not None


class ExecuteInterface(Declaration):
    """Where Spark runs."""

    endpoint: Endpoint
    """``local[N]``, ``spark://host:port``, ``yarn``, ``k8s://...`` or ``sc://host:port`` (Spark Connect)."""

    def tasks_at_once(self, cores: int) -> int | None:
        """How many tasks run side by side, where the endpoint says it: ``local[*]`` on a machine of ``cores``."""
        found = _ENDPOINT.fullmatch(self.endpoint)
        if found is None or not self.endpoint.startswith("local"):
            return None
        threads = found[1] or "1"
        return cores if threads == "*" else int(threads)


class Quota(Declaration):
    """How much of an executor is used at once."""

    jobs: _Count | None = None
    """How many instances run on it at once; omitted: no limit."""
    cores: _Count | None = None
    """How many cores the runs on it have at once, counted as for [queues](../guides/queues.md); omitted: no limit. A
    run that needs more runs alone. Sessions on ``spark://`` get no more, unless ``spark.cores.max`` is declared."""


class Provision(Declaration):
    """How an executor is started on the machine of Dagster's code server, when work waits for it."""

    kind: Literal["connect", "standalone"]
    """``connect``: a Connect server at ``sc://127.0.0.1:PORT``; ``standalone``: a master at ``spark://127.0.0.1:PORT``,
    and a worker with the cores of ``quota``, or of the machine."""
    idle: Frequency = Frequency(15, TimeUnit.MINUTES)
    """It is stopped when nothing has run on it for so long, in real time."""


class ClusterExecutor(Declaration):
    """One of several Sparks that compute for a cluster."""

    name: EntityName
    """Unique on the cluster."""
    endpoint: Endpoint
    """As ``interfaces.execute.endpoint``."""
    location: NonEmpty | None = None
    """Where it is, such as a site; omitted: the colo of the cluster."""
    capabilities: tuple[Capability, ...] | None = Field(default=None, min_length=1)
    """Pairs of kinds of places between which it can move data, such as ``[[file, file], [file, iceberg]]``; omitted:
    all that the libraries installed here can. A process needs the pairs of its inputs and outputs."""
    quota: Quota = Quota()
    """How much of it is used at once; omitted: no limit."""
    queue: NonEmpty | None = None
    """The [queue](../guides/queues.md) whose processes it is for; omitted: it is for all."""
    ui: Annotated[str, StringConstraints(pattern=r"^https?://[^\s@]+$")] | None = None
    """The web page of Spark's master, of YARN's ResourceManager or of a Connect server, which is asked for free cores
    and waiting applications; omitted: port 8080 of the masters, and what ``yarn-site.xml`` says."""

    provision: Provision | None = None
    """Starts it when work waits for it, and stops it when it is idle; omitted: somebody else does."""

    @model_validator(mode="after")
    def _here(self) -> ClusterExecutor:
        if self.provision is not None:
            scheme = "sc" if self.provision.kind == "connect" else "spark"
            if not re.fullmatch(rf"{scheme}://127\.0\.0\.1:\d+", self.endpoint):
                wanted = f"endpoint: {scheme}://127.0.0.1:PORT"
                raise ValueError(f"provision: kind {self.provision.kind} starts it on this machine: it needs {wanted}")
        return self

    @property
    def takes_cores(self) -> bool:
        """Whether a session takes cores of its own from what others have, and waits where there are none."""
        return self.endpoint.startswith(("spark://", "yarn", "k8s://"))
