"""The engine ``spark-submit``: a program of its own, told where to read and write."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.find_spark_home import _find_spark_home

from falcon_assets.errors import ExpressionError, WorkflowError
from falcon_assets.model.instant import format_instant
from falcon_assets.model.workflow import SparkSubmitWorkflow
from falcon_assets.planning.interpolate import interpolate
from falcon_assets.spark.confs import cluster_confs, is_connect
from falcon_assets.spark.engines.task import WorkflowResult, WorkflowTask
from falcon_assets.spark.failures import SPARK_ERRORS, condition_of, explain
from falcon_assets.spark.reach import require_reachable
from falcon_assets.spark.session import application_id
from falcon_assets.spark.writing import count_records

_TAIL_LINES = 20
_GRACE_SECONDS = 10
_SECRET = re.compile(r"(?i)secret|password|token|access[.]?key|credential")  # Spark's spark.redaction.regex, and ours
_NOTHING_WRITTEN = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")

_lock = threading.Lock()
_running: set[subprocess.Popen[bytes]] = set()


def submit(task: WorkflowTask, workflow: SparkSubmitWorkflow) -> WorkflowResult:
    """Runs the program with Spark's own ``spark-submit`` and waits for it.

    It gets the cluster's endpoint as master and the cluster's ``spark.*`` properties. In its arguments ``${input}`` is
    the input's folders, joined by commas, ``${output}`` the folder to write, ``${nominalTime}`` the nominal time, and
    properties and expressions work as everywhere. Its output goes to a log in the working folder.

    Raises:
        WorkflowError: it cannot be started, it failed (with the end of its log), or it left an output out.
    """
    path = task.entity_root / workflow.path
    if not path.is_file():
        raise WorkflowError(f"{path}: the workflow's program cannot be read: no such file")
    require_reachable(task.cluster.name, task.cluster.interfaces.execute.endpoint)
    folder = _log_folder(task)
    events = Path(tempfile.mkdtemp(prefix="events-", dir=folder))
    command = _command(task, workflow, path, events)
    log = folder / f"{events.name.replace('events-', 'spark-submit-')}.log"
    code = _run(command, log)
    if code != 0:
        ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        raise WorkflowError(f"{path}: spark-submit {ended}; its log is {log} and ends with:\n{_tail(log, task)}")
    records = {}
    for data in task.outputs:
        try:
            session = task.session()
            records[data.name] = count_records(session, data)
        except SPARK_ERRORS as error:
            raise WorkflowError(f"output {data.name!r}: {explain(error)}") from error
        except WorkflowError as error:
            if error.__cause__ is None or condition_of(error.__cause__) not in _NOTHING_WRITTEN:
                raise
            raise WorkflowError(
                f"{path}: the program ended well but did not write output {data.name!r} to {data.url}; its log is {log}"
            ) from error
    return WorkflowResult(records, _application(task, events))


def stop_programs() -> None:
    """Ends every program that this process has started and that still runs; their instances fail.

    For whoever is told to stop while other threads wait for programs.
    """
    with _lock:
        running = list(_running)
    for child in running:
        _end(child)


def _command(task: WorkflowTask, workflow: SparkSubmitWorkflow, path: Path, events: Path) -> list[str]:
    endpoint = task.cluster.interfaces.execute.endpoint
    confs = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.pyspark.python": sys.executable,
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",  # publishing says what is complete
        "spark.eventLog.enabled": "true",  # its file is named after the application
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        **cluster_confs(task.cluster),
    }
    if is_connect(endpoint):
        confs = {key: value for key, value in confs.items() if key.startswith("spark.sql.")}
    command = [str(Path(_find_spark_home(), "bin", "spark-submit"))]
    command += ["--remote" if is_connect(endpoint) else "--master", endpoint]
    command += ["--name", f"{task.process} {format_instant(task.nominal)}"]
    for key, value in confs.items():
        command += ["--conf", f"{key}={value}"]
    if workflow.class_:
        command += ["--class", workflow.class_]
    return [*command, str(path), *_arguments(task, workflow, path)]


def _arguments(task: WorkflowTask, workflow: SparkSubmitWorkflow, path: Path) -> list[str]:
    values = {
        **task.properties,
        "nominalTime": format_instant(task.nominal),
        **{data.name: ",".join(data.urls) for data in task.inputs},
        **{data.name: data.url for data in task.outputs},
    }
    try:
        return [interpolate(text, values, task.nominal, task.timezone, task.user) for text in workflow.args]
    except ExpressionError as error:
        raise WorkflowError(f"process {task.process!r}: args of {path}: {error}") from error


def _log_folder(task: WorkflowTask) -> Path:
    """Where this run may leave files: below ``working`` where that is on this machine."""
    url = urlsplit(task.working)
    if url.scheme not in ("", "file"):
        return Path(tempfile.mkdtemp(prefix="falcon-"))
    stamp = f"{task.nominal:%Y%m%dT%H%M}"
    folder = Path(unquote(url.path) if url.scheme else task.working).absolute() / "spark-submit" / task.process / stamp
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(command: list[str], log: Path) -> int:
    with log.open("wb") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    with _lock:
        _running.add(child)
    try:
        return child.wait()
    finally:  # also when this thread is interrupted
        _end(child)
        with _lock:
            _running.discard(child)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ends the program and whatever it started: gently first."""
    if child.poll() is not None:
        return
    os.killpg(child.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_SECONDS)
    with suppress(ProcessLookupError):  # whoever did not listen
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _tail(log: Path, task: WorkflowTask) -> str:
    text = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:])
    for key, value in {**task.cluster.properties, **task.properties}.items():
        if _SECRET.search(key) and value:
            text = text.replace(value, "*****")
    return text


def _application(task: WorkflowTask, events: Path) -> str:
    if is_connect(task.cluster.interfaces.execute.endpoint):
        return application_id(task.session())
    logs = sorted(events.iterdir(), key=lambda log: log.stat().st_mtime)
    return logs[-1].name.removesuffix(".inprogress") if logs else ""
