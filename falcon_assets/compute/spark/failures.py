"""Spark's exceptions as sentences, without JVM stacks and query plans."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from falcon_assets.base.texts import hidden, is_long, recorded

SPARK_ERRORS = (PySparkException, Py4JError)

_STATE = re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL)
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_RPC = re.compile(r'^<_\w+ of RPC that .*?\bdetails = "(.*?)"$', re.DOTALL | re.MULTILINE)
_CAPTURED = re.compile(r"^pyspark\.errors\.exceptions\.\w+\.\w+: (?=\[)")
_CAUSE = re.compile(r"^Caused by: [\w.$]+: (.+)$", re.MULTILINE)
_ABORTED = re.compile(
    r"^Job aborted due to stage failure: (?:.*?(?=\[[A-Z][A-Z0-9_.]+\] )"
    r"|Task \d+ in stage .*?\(TID \d+\)(?: \([^)]*\))?: (?:[\w.$]+: )?)",
    re.DOTALL,
)
_UNANSWERED = re.compile(r"An error occurred while calling \S+")
_AVRO_RELEASES = ("4.0.0", "4.0.1", "4.0.2", "4.1.1", "4.2.0")
"""Versions of ``spark-avro_2.13`` for Spark 4 in Maven Central, oldest first."""
_NO_CONNECTOR = re.compile(
    r"S3AFileSystem not found|GoogleHadoopFileSystem not found|No FileSystem for scheme \"?(s3a|gs)\b"
)
_SHUT_DOWN = "SparkContext was shut down"
_OUT_OF_MEMORY = 52
_ENDS_WITHIN_SECONDS = 5.0
_HINTS = (
    (
        re.compile(r"Java heap space|GC overhead limit exceeded|OutOfMemoryError"),
        "Spark ran out of memory: raise spark.driver.memory or spark.executor.memory",
    ),
    (
        re.compile(r"No space left on device"),
        "a disk is full: if no file is named, it is the disk of spark.local.dir (/tmp by default)",
    ),
    (
        _NO_CONNECTOR,
        "this Spark has no connector for the object store: add its jars by spark.jars.packages or on its machines "
        "(s3a: hadoop-aws of its version of Hadoop with the AWS SDK; gs: see the guide Object stores), or use a Spark "
        "that shares a folder with this machine, which needs no connector",
    ),
    (
        re.compile(r"Relative path in absolute URI"),
        "Hadoop cannot open files with a colon in their name: rename the file",
    ),
)


def is_of_spark(error: BaseException) -> bool:
    """Whether PySpark raised it; Py4J retries on a dead JVM, and then reports only a refused connection."""
    return isinstance(error, SPARK_ERRORS) or (
        isinstance(error, ConnectionError)
        and any("/py4j/" in frame.filename for frame in traceback.extract_tb(error.__traceback__))
    )


def condition_of(error: BaseException) -> str:
    """Returns Spark's error condition (``PATH_NOT_FOUND``); "": it has none."""
    return (error.getCondition() or "") if isinstance(error, PySparkException) else ""


def lacks_connector(error: BaseException) -> bool:
    return any(map(_NO_CONNECTOR.search, _messages(error)))


def explain(error: BaseException) -> str:
    if condition_of(error) == "AVRO_DATA_SOURCE_NOT_ENABLED":
        return (
            "Spark's Avro support is not on the class path: add the property spark.jars.packages: "
            f'"org.apache.spark:spark-avro_2.13:{avro_release(pyspark.__version__)}" to the cluster'
        )
    messages = _asked(error)
    if messages is None or _lost_the_jvm(error):
        return f"Spark's JVM has died: {memory_hint(_exit_code()) or 'the log of the run may say why'}"
    if any(_SHUT_DOWN in message for message in messages) and (hint := memory_hint(_exit_code())):
        return f"Spark's JVM has died: {hint}"
    said = list(dict.fromkeys(filter(None, map(_sentence, messages))))
    if len(said) > 1:  # the outermost says where, the innermost says why
        said = [f"{said[0].rstrip('.')}: {said[-1]}"]
    text = said[0] if said else type(error).__name__
    return text + "".join(f" ({hint})" for pattern, hint in _HINTS if pattern.search(text))


def avro_release(spark: str) -> str:
    """Returns the ``spark-avro`` for a Spark: of its version, else the newest before it (4.3.0 works with 4.2.0's)."""
    fits = [one for one in _AVRO_RELEASES if _numbers(one) <= _numbers(spark)]
    return fits[-1] if fits else spark


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _lost_the_jvm(error: BaseException) -> bool:
    """Whether a call failed for lack of an answer; for the call in progress Py4J reports only its name."""
    return isinstance(error, (ConnectionError, Py4JNetworkError)) or (
        isinstance(error, Py4JError) and _UNANSWERED.fullmatch(str(error)) is not None
    )


def memory_hint(code: int | None) -> str:
    """Returns what the exit code of a JVM (negative: a signal) implies about memory; "": nothing."""
    if code == _OUT_OF_MEMORY:
        return "it ran out of memory: raise spark.driver.memory, or let the workflow collect less"
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return (
            "it was killed (SIGKILL), as the system does when memory runs out: lower "
            "spark.driver.memory, or run less at the same time"
        )
    return ""


def _exit_code() -> int | None:
    """Returns the exit code of this process's JVM; None: it was not started here, or has not ended."""
    process = getattr(SparkContext._gateway, "proc", None)
    try:
        return None if process is None else int(process.wait(_ENDS_WITHIN_SECONDS))
    except subprocess.TimeoutExpired:
        return None


def _asked(error: BaseException) -> list[str] | None:
    """Returns its messages; None: the JVM ended before they were read."""
    try:
        return list(_messages(error))
    except (*SPARK_ERRORS, OSError):
        return None


def _messages(error: BaseException) -> Iterator[str]:
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause is not None:
            yield cause.getMessage() or cause.getClass().getSimpleName()
            cause = cause.getCause()
    elif isinstance(error, PySparkException):
        yield error.getMessage() or str(error)
        if isinstance(error, SparkConnectGrpcException):  # its causes come as text only
            yield from _CAUSE.findall(error.getStackTrace() or "")
    else:
        yield str(error)


def _sentence(message: str) -> str:
    if "Traceback (most recent call last)" in message:
        return python_failure(message)
    refused = _RPC.search(message)  # gRPC itself, before Spark: no or a wrong token, no server any more
    if refused:
        return refused[1]
    text = _STATE.sub("", _ABORTED.sub("", message.strip()))
    return text.strip().splitlines()[0].strip() if text.strip() else ""


def python_failure(message: str) -> str:
    lines = [line for line in _STATE.sub("", message).strip().splitlines() if line and not line.startswith(" ")]
    frames = [(file, f"{file}:{line}") for file, line in _FRAME.findall(message) if "/pyspark" not in file]
    own = [where for file, where in frames if "/site-packages/" not in file] or [where for _, where in frames]
    text = _CAPTURED.sub("", lines[-1])
    return f"{text} ({own[-1]})" if own else text


def log_stack(error: BaseException | None) -> None:
    """Writes the stacks of Python and of the JVM to the log of the run, if it is a failure of Spark."""
    if not isinstance(error, (*SPARK_ERRORS, ConnectionError)):
        return
    text = "".join(traceback.format_exception(error))
    with suppress(Exception):  # a JVM that died has no stack
        text += getattr(error, "getStackTrace", str)() or ""
    sys.stderr.write(f"{hidden(text)}\n")


def logged_stack(error: BaseException) -> str:
    """Returns the stack of an unexpected error as it is recorded; writes a long one to the log of the run in full."""
    text = "".join(traceback.format_exception(error))
    if is_long(text):
        sys.stderr.write(f"{hidden(text)}\n")
    return recorded(text)


def own_line(error: BaseException, file: str) -> str:
    """Returns ``file:line`` of the innermost frame of ``error`` in ``file``; ``file``: it has none."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{file}:{frames[-1].lineno}" if frames else file
