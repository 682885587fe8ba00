"""Executors: where the work of a cluster is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from falcon_assets.errors import WorkflowError
from falcon_assets.model.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Executor(Protocol):
    """Services of a cluster for engines and copies; nothing starts before it is asked for, so no JVM without Spark."""

    @property
    def cluster(self) -> Cluster: ...

    @property
    def name(self) -> str:
        """Its name among the executors of the cluster; "": there are none to choose from."""

    @property
    def home(self) -> Path | None:
        """``FALCON_HOME``, with the listener for what sessions and programs read and write; None: no capture."""

    @property
    def endpoint(self) -> str:
        """Where programs are submitted."""

    @property
    def properties(self) -> Mapping[str, str]:
        """Settings of all sessions and programs; they hold secrets."""

    @property
    def shares_folders(self) -> bool:
        """Whether what computes here sees the cluster's working location as this process does."""

    def require_reachable(self) -> None:
        """Raises WorkflowError, within seconds, where nothing answers at the endpoint."""

    def session(self) -> SparkSession:
        """The warm Spark session, started on first use; raises WorkflowError where it does not start."""

    def interrupt(self) -> None:
        """Ends everything that is being computed, in all threads."""


@dataclass(frozen=True)
class InProcessExecutor:
    """Fulfils :class:`Executor` for engines that need no Spark: they compute in the process of the run."""

    cluster: Cluster
    name: str = ""
    home: None = None
    endpoint: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    shares_folders: bool = True

    def require_reachable(self) -> None:
        """Nothing has to answer."""

    def session(self) -> NoReturn:
        raise WorkflowError("this engine says that it needs no Spark, and asks for a session")

    def interrupt(self) -> None:
        """Nothing to end: an engine asks :func:`~falcon_assets.base.cancellation.current_cancellation`."""
