"""The private names of Dagster behind a run launcher, apart because code locations get along without them."""

from __future__ import annotations

# What a worker process runs, as `dagster api execute_run` in a shell does, and its argument.
from dagster._cli.api import execute_run_command

# A launcher for dagster.yaml: what it is asked with, and where Dagster's own notes the runs that it started.
from dagster._core.launcher.base import LaunchRunContext
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import ConfigurableClassData
from dagster_shared.serdes import serialize_value

__all__ = [
    "GRPC_INFO_TAG",
    "ConfigurableClassData",
    "ExecuteRunArgs",
    "LaunchRunContext",
    "execute_run_command",
    "serialize_value",
]
