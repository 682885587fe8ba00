"""Captures the reads and writes of an instance in a session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

from py4j.java_gateway import JavaPackage
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from falcon_assets.compute.spark.capture.listener_jar import INSTANCE, NOBODY
from falcon_assets.compute.spark.failures import SPARK_ERRORS, condition_of, explain
from falcon_assets.planning.captured import Captured, parse_captured

_WAIT_MILLISECONDS = 10_000
_NOT_LOADED = "Spark runs without the listener"

_ROW = StructType([StructField("instance", StringType())])
"""As text it would be another call."""


@contextmanager
def capturing(child: SparkSession) -> Iterator[Callable[[], Captured]]:
    """Captures the reads and writes of an instance's session in this context; yields a function that returns them.

    Those of threads and sessions that a workflow starts belong to it, too. They are not marked: if several instances
    are captured at a time, each of them receives such reads and writes as possibly its own.
    """
    instance = uuid4().hex
    child.conf.set(INSTANCE, instance)
    if not isinstance(child, SparkSession):  # Connect's is a class of its own
        yield lambda: captured_by_server(child, instance)
        return
    context = child.sparkContext
    context.setLocalProperty(INSTANCE, instance)
    if (listener := _listener(context)) is not None:
        listener.begin(instance)
    try:
        yield lambda: _captured_here(context, instance)
    finally:
        child.conf.set(INSTANCE, NOBODY)
        if listener is not None:
            with suppress(*SPARK_ERRORS, OSError):  # as below
                listener.forget(instance)
        with suppress(*SPARK_ERRORS, OSError, AttributeError):  # it may be gone
            context.setLocalProperty(INSTANCE, None)  # type: ignore[arg-type]  # PySpark hands it on: no value


def listen(session: SparkSession) -> None:
    """Adds the listener to the session's context and its children, if this process's JVM has it."""
    listener = _listener(session.sparkContext)
    if listener is not None:
        listener.install(session._jsparkSession)  # its children, too


def captured_by_server(session: SparkSession, instance: str) -> Captured:
    try:
        row = session.createDataFrame([(instance,)], _ROW)  # no job
        call = sf.call_function("falcon_captured", sf.lit(instance), sf.lit(_WAIT_MILLISECONDS))
        return _parsed(row.select(call).collect()[0][0])
    except SPARK_ERRORS as error:
        is_missing = condition_of(error).startswith("UNRESOLVED_ROUTINE")
        return Captured(problem=_NOT_LOADED if is_missing else explain(error))


def _captured_here(context: Any, instance: str) -> Captured:
    listener = _listener(context)
    if listener is None:
        return Captured(problem=_NOT_LOADED)
    try:
        said = listener.of(instance, _WAIT_MILLISECONDS)
    except SPARK_ERRORS as error:
        return Captured(problem=explain(error))
    return _parsed(said)


def _listener(context: Any) -> Any:
    found = context._jvm.org.apache.spark.sql.falcon.Capture
    return None if isinstance(found, JavaPackage) else found


def _parsed(text: str) -> Captured:
    try:
        return parse_captured(text)
    except ValueError as error:
        return Captured(problem=str(error))
