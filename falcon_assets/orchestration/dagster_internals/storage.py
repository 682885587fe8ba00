"""The private names of Dagster behind a storage class, apart because they load SQLAlchemy.

Code locations get along without: importing them here would cost each half a second of its start.
"""

from __future__ import annotations

# A storage class for dagster.yaml: its base class, its configuration protocol, the type of a page of keys, and what is
# known about sensors and schedules; and where it is kept what runs print.
from dagster._core.scheduler.instigation import InstigatorState, InstigatorTick
from dagster._core.storage.base_storage import DagsterStorage
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager
from dagster._core.types.pagination import PaginatedResults
from dagster._serdes import ConfigurableClass, ConfigurableClassData

__all__ = [
    "ConfigurableClass",
    "ConfigurableClassData",
    "DagsterStorage",
    "InstigatorState",
    "InstigatorTick",
    "LocalComputeLogManager",
    "PaginatedResults",
]
