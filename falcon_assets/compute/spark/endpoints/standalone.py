"""Spark's standalone clusters: sessions that live in this process, with executors of a master."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.endpoints.server_watch import ServerWatch
from falcon_assets.compute.spark.failures import SPARK_ERRORS


def is_standalone(endpoint: str) -> bool:
    return endpoint.startswith("spark://")


def silence_of_masters(endpoint: str, seconds: float) -> str:
    """Returns why no master of a standalone cluster accepts a connection in time; "": one does."""
    reasons = []
    for host, port in masters(endpoint):
        try:
            socket.create_connection((host, port), timeout=seconds).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return ""
    return "; ".join(reasons)


def watch_cluster(session: SparkSession, endpoint: str, has_workers: Callable[[], bool]) -> ServerWatch:
    """Ends the session's jobs when it has no executor, and no master or no worker would give it one for ever."""
    can_work = partial(_can_work, session, endpoint, has_workers)
    return ServerWatch(can_work, f"the Spark master at {endpoint}", _cancel)


def masters(endpoint: str) -> Iterator[tuple[str, int]]:
    """Yields host and port of every master (``spark://h1:7077,h2:7077`` is one cluster with a standby)."""
    for master in endpoint.removeprefix("spark://").split(","):
        host, port = master.rsplit(":", 1)
        yield host, int(port)


def _can_work(session: Any, endpoint: str, has_workers: Callable[[], bool], seconds: float) -> bool:
    try:
        executors = session.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    except (Py4JError, AttributeError, OSError):
        return True  # the session is stopped, or its JVM is gone: others say so
    if len(executors) > 1:  # the driver is one of them
        return True
    return not silence_of_masters(endpoint, seconds) and has_workers()


def _cancel(session: Any) -> None:
    with suppress(*SPARK_ERRORS, AttributeError, OSError):
        session.sparkContext.cancelAllJobs()
