"""Computation of the engine ``spark-submit``: a program that receives the paths to read and write."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from pyspark.find_spark_home import _find_spark_home

from falcon_assets.base.texts import hides
from falcon_assets.compute.engines.computing import connect_client
from falcon_assets.compute.engines.computing.program_files import log_folder, log_name
from falcon_assets.compute.engines.computing.programs import cause_in, run_program
from falcon_assets.compute.engines.computing.task import WorkflowResult, WorkflowTask
from falcon_assets.compute.spark.capture.capturing import captured_by_server
from falcon_assets.compute.spark.capture.listener_jar import FILE, INSTANCE, Loading, loading
from falcon_assets.compute.spark.data.dataset import InputData, OutputData
from falcon_assets.compute.spark.data.input_files import literal, require_names, require_visible, utf8
from falcon_assets.compute.spark.data.writing import count_records
from falcon_assets.compute.spark.endpoints.confs import executor_environ, is_connect
from falcon_assets.compute.spark.endpoints.connect import child_environ, token_of
from falcon_assets.compute.spark.endpoints.connect_endpoint import without_token
from falcon_assets.compute.spark.failures import SPARK_ERRORS, condition_of, explain, memory_hint
from falcon_assets.compute.spark.sessions import application_id, libs_of
from falcon_assets.errors import ExpressionError, WorkflowError
from falcon_assets.model.instant import format_instant
from falcon_assets.model.secret_values import is_secret
from falcon_assets.planning.captured import Captured, parse_captured
from falcon_assets.planning.interpolate import interpolate

_TAIL_BYTES = 1 << 20
_NOTHING_WRITTEN = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA")


def submit(task: WorkflowTask, file: str, args: Sequence[str], main_class: str | None) -> WorkflowResult:
    """Runs the program with Spark's own ``spark-submit`` and waits for it.

    The cluster's endpoint is its master; it has the ``spark.*`` properties of cluster and process. In its arguments
    ``${input}`` is the input's folders, joined by commas and with Spark's pattern characters escaped, ``${output}`` the
    folder to write, ``${nominalTime}`` the nominal time; properties and expressions work as everywhere. Its output is
    written to a log in the working folder.

    Raises:
        WorkflowError: it cannot be started, no program could read all files of the inputs, it failed (with the reason
            in its log), or it did not write an output.
    """
    path = task.entity_root / file
    if not path.is_file():
        raise WorkflowError(f"{path}: the workflow's program cannot be read: no such file")
    endpoint = task.executor.endpoint
    task.executor.require_reachable()
    for data in task.inputs:
        require_names(data)
    arguments = _arguments(task, args, path)
    token = _checked_token(task) if is_connect(endpoint) else None
    folder = _log_folder(task)
    with tempfile.TemporaryDirectory(prefix="events-", dir=folder) as made:
        events = Path(made, "events")  # what is made so is its owner's only
        events.mkdir()
        secrets = _properties_file(task, Path(made, "secrets.conf"))
        instance_id, capture = uuid4().hex, Path(made, "captured.json")
        confs = _confs(task, events) | {INSTANCE: instance_id, FILE: str(capture)}
        environ = child_environ(token)
        listener = Loading() if is_connect(endpoint) else loading(task.executor.home, environ, confs)
        log = folder / log_name(task.run_id, Path(made).name.removeprefix("events-"))
        program = [str(path), *arguments]
        if is_connect(endpoint) and path.suffix == ".py":
            program.insert(0, connect_client.__file__)
        command = _command(task, main_class, {**confs, **listener.confs}, secrets)
        code = run_program([*command, *program], log, {**environ, **listener.environ})
        application, captured = _application(events), _captured(capture)
    if code != 0:
        ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        if hint := memory_hint(code):
            ended += f" ({hint})"
        said = _cause(log, token)
        raise WorkflowError(f"{path}: spark-submit {ended}; its log is {log}" + (f" and says:\n{said}" if said else ""))
    records = {data.name: _count(task, data, f"{path}: the program succeeded", log) for data in task.outputs}
    if is_connect(endpoint):
        session = task.executor.session()
        application, captured = application_id(session), captured_by_server(session, instance_id)
    return WorkflowResult(records, application, captured)


def _count(task: WorkflowTask, data: OutputData, ended: str, log: Path) -> int:
    try:
        return count_records(task.executor.session(), data)
    except (*SPARK_ERRORS, WorkflowError) as error:
        cause = error.__cause__ if isinstance(error, WorkflowError) else error
        if cause is None:
            raise
        if condition_of(cause) in _NOTHING_WRITTEN:
            raise WorkflowError(
                f"{ended} but did not write output {data.name!r} to {data.url}; its log is {log}"
            ) from None
        raise WorkflowError(
            f"{ended} but output {data.name!r} cannot be read: {explain(cause)}; its log is {log}"
        ) from error


def _captured(file: Path) -> Captured:
    try:
        return parse_captured(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Captured(problem="the program ran without the listener, or did not end its Spark application")
    except ValueError as error:
        return Captured(problem=str(error))


def _confs(task: WorkflowTask, events: Path) -> dict[str, str]:
    endpoint = task.executor.endpoint
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
        **({} if is_connect(endpoint) else executor_environ()),
        **task.executor.properties,
        **task.settings,
    }
    if is_connect(endpoint):
        confs["spark.api.mode"] = "connect"  # --remote alone leaves a Python program with a session of its own
    return confs


def _command(task: WorkflowTask, main_class: str | None, confs: Mapping[str, str], secrets: Path) -> list[str]:
    endpoint = task.executor.endpoint
    command = [str(Path(_find_spark_home(), "bin", "spark-submit"))]
    # A token goes by the environment: command lines can be read by every user of the machine.
    command += ["--remote", without_token(endpoint)] if is_connect(endpoint) else ["--master", endpoint]
    command += ["--name", f"{task.process} {format_instant(task.nominal)}"]
    command += ["--load-spark-defaults", "--properties-file", str(secrets)]
    for key, value in confs.items():
        command += [] if is_secret(key) else ["--conf", f"{key}={value}"]
    libs = libs_of(task.entity_root, task.workflow.lib)
    if is_connect(endpoint) and libs.jars:
        jars = ", ".join(jar.name for jar in libs.jars)
        raise WorkflowError(f"{jars}: a program cannot add jars to a Spark Connect server: install them on the server")
    for option, files in (("--jars", libs.jars), ("--py-files", libs.python)):
        command += [option, ",".join(map(str, files))] if files else []
    if main_class:
        command += ["--class", main_class]
    return command


def _properties_file(task: WorkflowTask, file: Path) -> Path:
    confs = {**task.executor.properties, **task.settings}
    lines = [f"{_escaped(key)}={_escaped(value)}" for key, value in confs.items() if is_secret(key)]
    file.touch(mode=0o600)
    file.write_text("\n".join(lines), encoding="ascii")
    return file


def _escaped(text: str) -> str:
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _arguments(task: WorkflowTask, args: Sequence[str], path: Path) -> list[str]:
    inputs = {name: one for data in task.inputs for name, one in data.by_name.items()}
    values = {
        **task.properties,
        "nominalTime": format_instant(task.nominal),
        **{name: _folders(one) for name, one in inputs.items() if any(name in text for text in args)},
        **{data.name: utf8(data.url) for data in task.outputs},
    }
    try:
        return [interpolate(text, values, task.nominal, task.timezone, task.user) for text in args]
    except ExpressionError as error:
        raise WorkflowError(f"process {task.process!r}: args of {path}: {error}") from error


def _folders(data: InputData) -> str:
    if table := next((one.layout.name for one in data.partitions if one.columns), None):
        raise WorkflowError(
            f"input {data.name!r} (feed {data.feed.name!r}): files of {table} have other column names than the table, "
            "which a program that reads files cannot map: rewrite the data files of the table, or use another engine"
        )
    if wrong := [url for url in data.urls if "," in url]:
        raise WorkflowError(
            f"input {data.name!r} (feed {data.feed.name!r}): {wrong[0]} holds a comma, which separates the folders in "
            f"${{{data.name}}}: rename the folder, or use another engine"
        )
    return ",".join(map(literal, data.urls))


def _checked_token(task: WorkflowTask) -> str | None:
    """Returns the token for a Connect server, after checking that the server sees every file of the inputs."""
    session = task.executor.session()
    for data in task.inputs:
        try:
            require_visible(session, data)
        except SPARK_ERRORS as error:
            raise WorkflowError(f"input {data.name!r} (feed {data.feed.name!r}): {explain(error)}") from error
    return token_of(session)


def _log_folder(task: WorkflowTask) -> Path:
    folder = log_folder(task.working, task.process, task.nominal)
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="falcon-"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _cause(log: Path, token: str | None) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        text = "\n".join(cause_in(file.read().decode(errors="replace")))
    return hides([token or ""])(text)


def _application(events: Path) -> str:
    """Returns the application id, which is the event log's name; "": the cluster logs events elsewhere."""
    logs = sorted(events.iterdir(), key=lambda log: log.stat().st_mtime)
    return logs[-1].name.removesuffix(".inprogress") if logs else ""
