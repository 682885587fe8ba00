"""Spark sessions of clusters, and those of instances, with settings and libraries of their own."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from falcon_assets.compute.spark.cancelling import cancellable_jobs, ended_quietly
from falcon_assets.compute.spark.capture.capturing import listen
from falcon_assets.compute.spark.capture.listener_jar import INSTANCE, NOBODY, loading
from falcon_assets.compute.spark.connect_server import authenticated
from falcon_assets.compute.spark.endpoints.confs import is_connect, session_confs, without_secrets
from falcon_assets.compute.spark.endpoints.connect import (
    connect_child,
    interrupt_connect,
    is_served,
    leave_connect,
    start_connect,
    stop_connect,
)
from falcon_assets.compute.spark.endpoints.load import has_workers
from falcon_assets.compute.spark.endpoints.reachable import CONNECT_SECONDS, require_reachable
from falcon_assets.compute.spark.endpoints.server_watch import ServerWatch
from falcon_assets.compute.spark.endpoints.standalone import is_standalone, watch_cluster
from falcon_assets.compute.spark.failures import SPARK_ERRORS, condition_of, explain
from falcon_assets.compute.spark.jvm import jvm_starts
from falcon_assets.compute.spark.provisioned import provisioned_confs
from falcon_assets.errors import WorkflowError
from falcon_assets.model.cluster import Cluster
from falcon_assets.model.secret_values import is_secret

_SHELL = "pyspark-shell"
_KILL_SECONDS = 10


@contextmanager
def ended_with_its_start() -> Iterator[None]:
    """Ends the JVM that the block was starting, if the block is left before PySpark has a handle of it.

    PySpark removes the folder in which such a JVM reports its port, and forgets it; the JVM would stay for ever.
    Only one start at a time in a process.
    """
    before = set(_jvms())
    try:
        yield
    except BaseException:
        if SparkContext._gateway is None:
            for orphan in set(_jvms()) - before:
                with suppress(psutil.Error):
                    orphan.kill()
                    orphan.wait(_KILL_SECONDS)
        raise


def _jvms() -> Iterator[psutil.Process]:
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if _SHELL in child.cmdline():
                yield child


_HADOOP = "spark.hadoop."
_FIXED = ("CANNOT_MODIFY_CONFIG", "CANNOT_MODIFY_STATIC_CONFIG")


def apply_settings(child: SparkSession, settings: Mapping[str, str], process: str) -> None:
    """Sets them for this session; raises WorkflowError for those that Spark refuses or reads only at its start."""
    for key, value in settings.items():
        try:
            if child.conf.get(key, None) != value:
                child.conf.set(key.removeprefix(_HADOOP), value)
        except SPARK_ERRORS as error:
            if condition_of(error) in _FIXED or "CANNOT_MODIFY_" in str(error):
                why = "Spark reads it when it starts: declare it in the properties of the cluster, or run a program"
                raise WorkflowError(f"process {process!r}: property {key}: {why} (engine: spark-submit)") from None
            raise WorkflowError(f"process {process!r}: property {key}: {explain(error)}") from error


_JVM_EXIT_SECONDS = 20


@dataclass(frozen=True)
class _Target:
    endpoint: str  # with the token, where it needs one: a server that was started anew has another
    confs: tuple[tuple[str, str], ...]
    listens: bool  # a session with the listener does for who does not ask for it

    def does_for(self, other: _Target) -> bool:
        return (self.endpoint, self.confs) == (other.endpoint, other.confs) and self.listens >= other.listens


class SparkSessions:
    """Keeps the session of the last requested cluster.

    Spark allows one context in a process, and PySpark decides once per process whether its functions use a context or
    a Connect server. So there is one session at a time: requesting another cluster (or the same with other properties)
    stops it. Instances that run side by side in one process are therefore of one cluster.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._target: _Target | None = None
        self._session: SparkSession | None = None

    def session_for(self, cluster: Cluster, working: str, home: Path | None = None) -> SparkSession:
        """Returns the session on the cluster's execute endpoint; the present one if it is alive and set up alike.

        The cluster's ``spark.*`` properties are set in it, over our defaults (UTC, no UI on ``local``). ``home`` is for
        the server of ``falcon spark start`` and the listener that captures reads and writes; None: there is neither.

        Raises:
            WorkflowError: nothing answers at the endpoint, or Spark does not start; within a minute.
        """
        endpoint = cluster.interfaces.execute.endpoint
        known = endpoint if home is None else authenticated(endpoint, home)
        confs = session_confs(cluster, working) | provisioned_confs(endpoint, home)
        target = _Target(known, tuple(sorted(confs.items())), home is not None)
        with self._lock:
            present, made_for = self._session, self._target
            if present is not None and made_for is not None and made_for.does_for(target) and _is_alive(present):
                return present
            self.stop()
            require_reachable(cluster.name, endpoint, cluster.declared_endpoint)
            try:
                session = _start(target.endpoint, dict(target.confs), home, cluster.ui)
            except (*SPARK_ERRORS, OSError) as error:
                why = explain(error)  # asks the JVM, so before that goes
                _stop_jvm()
                leave_connect()
                raise WorkflowError(
                    f"cluster {cluster.name!r}: Spark at {without_secrets(endpoint)} did not start: {why}"
                ) from None
            self._target, self._session = target, session
            return session

    def stop(self) -> None:
        """Stops the session, if there is one, and its JVM in this process; jobs of other threads fail."""
        with self._lock:
            session, target = self._session, self._target
            self._session = self._target = None
            if session is not None and target is not None:
                _stop(session, target.endpoint)
            if SparkContext._active_spark_context is not None:  # somebody else's: Spark would hand it to us as it is
                try:
                    SparkContext._active_spark_context.stop()
                except (*SPARK_ERRORS, OSError):  # it was just starting, or its JVM is gone
                    SparkContext._active_spark_context = None
            _stop_jvm()

    def interrupt(self) -> None:
        session = self._session
        if session is None:
            return
        if is_classic(session):
            with suppress(*SPARK_ERRORS, OSError):
                session.sparkContext.cancelAllJobs()
        else:
            interrupt_connect(session)

    @property
    def application(self) -> str:
        """The id of the application whose cores this process has; "": it has none of its own."""
        session = self._session
        if session is None or not is_classic(session):
            return ""
        with suppress(*SPARK_ERRORS, OSError, AttributeError):
            return str(session.sparkContext.applicationId)
        return ""


_process = SparkSessions()
session_for = _process.session_for
stop_sessions = _process.stop
interrupt_sessions = _process.interrupt


def own_application() -> str:
    """As :attr:`SparkSessions.application`, of the sessions of this process."""
    return _process.application


@contextmanager
def isolated(session: SparkSession) -> Iterator[SparkSession]:
    """Yields a child of ``session`` with its own temporary views, functions and settings, for one process instance.

    Raises:
        CancelledError: the computation is cancelled already; later, that ends its jobs.
        WorkflowError: the server or the cluster behind it does not answer any more.
    """
    if is_classic(session):
        child = session.newSession()  # about 2 ms; the JVM's garbage collection takes it away
        watch = _watch_of(session)
        child.conf.set(INSTANCE, NOBODY)  # until it is said for whom
        with watch.watching(child) if watch else nullcontext(), cancellable_jobs(session):
            yield child
        return
    with connect_child(session) as child, ended_quietly(child.interruptAll):
        yield child


def application_id(session: SparkSession) -> str:
    return session.sparkContext.applicationId if is_classic(session) else session.conf.get("spark.app.id") or ""


def is_classic(session: SparkSession) -> bool:
    return isinstance(session, SparkSession)  # Connect's is a class of its own


def _start(endpoint: str, confs: dict[str, str], home: Path | None, ui: str | None) -> SparkSession:
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        # PySpark prints every failed query with its JVM stack as one line of JSON; our exceptions say it in words.
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    leave_connect()  # the cluster says where, whatever the shell does
    if is_connect(endpoint):
        return start_connect(endpoint, confs)
    builder = SparkSession.builder.master(endpoint)
    for key, value in confs.items():
        builder = builder.config(key, value)
    with jvm_starts(lambda environ: loading(home, environ, confs).environ), ended_with_its_start():
        if any(map(is_secret, confs)):
            # PySpark would start the JVM with all of it on its command line, which every user of the machine can read.
            shown = SparkConf().setMaster(endpoint)
            shown.setAll([(key, value) for key, value in confs.items() if not is_secret(key)])
            SparkContext._ensure_initialized(conf=shown)
        session = builder.getOrCreate()
    listen(session)
    if is_standalone(endpoint):
        watch = watch_cluster(session, endpoint, partial(has_workers, endpoint, ui))
        session.falcon_watch = watch  # type: ignore[attr-defined]  # as Connect's have it
    context = session.sparkContext
    declared = confs.get("spark.pyspark.python")
    if declared or context.pythonExec == "python3":  # what PySpark takes where PYSPARK_PYTHON is not set
        context.pythonExec = declared or sys.executable
    return session


def _stop(session: SparkSession, endpoint: str) -> None:
    if not is_classic(session):
        stop_connect(session, endpoint, CONNECT_SECONDS)
        return
    if watch := _watch_of(session):
        watch.stop()
    try:
        session.stop()
    except (*SPARK_ERRORS, OSError):  # its JVM died before it
        SparkSession._instantiatedSession = SparkSession._activeSession = None


def _watch_of(session: SparkSession) -> ServerWatch | None:
    return getattr(session, "falcon_watch", None)


def _is_alive(session: SparkSession) -> bool:
    if not is_classic(session):
        return is_served(session)
    watch = _watch_of(session)
    if watch and watch.is_gone:
        return False
    try:
        context = session.sparkContext._jsc
        return context is not None and not context.sc().isStopped()
    except (Py4JError, OSError):
        return False


def _stop_jvm() -> None:
    """Ends the JVM of the session, because memory, class path and packages are set when it starts."""
    gateway = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    if gateway is None:
        return
    with suppress(*SPARK_ERRORS, OSError):  # it was ended before it had started, or is gone
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    with suppress(OSError):
        process.stdin.close()  # what PySpark's JVM waits for
    try:
        process.wait(_JVM_EXIT_SECONDS)
    except subprocess.TimeoutExpired:  # a busy machine: nobody needs it any more
        process.kill()
        process.wait(_JVM_EXIT_SECONDS)


PYTHON = (".py", ".zip", ".egg")


@dataclass(frozen=True)
class Libs:
    jars: tuple[Path, ...]
    python: tuple[Path, ...]


def libs_of(root: Path, lib: Sequence[str]) -> Libs:
    """Returns the files below ``root``; of folders their jars and Python files. Raises WorkflowError if missing."""
    files: list[Path] = []
    for name in lib:
        path = (root / name).absolute()
        if not path.exists():
            raise WorkflowError(f"{path}: what the workflow brings along cannot be read: no such file")
        files += sorted(path.iterdir()) if path.is_dir() else [path]
    jars = tuple(path for path in files if path.suffix == ".jar")
    return Libs(jars, tuple(path for path in files if path.suffix in PYTHON))


def add_libs(child: SparkSession, libs: Libs) -> None:
    """Adds libraries to the session and this process, and to other classic sessions of it; raises WorkflowError."""
    try:
        if libs.python:
            child.addArtifacts(*map(str, libs.python), pyfile=True)
        if libs.jars and not is_classic(child):
            child.addArtifacts(*map(str, libs.jars))
        for jar in libs.jars if is_classic(child) else ():
            quote = next((one for one in "'\"`" if one not in str(jar)), "'")  # Spark unescapes nothing here
            child.sql(f"ADD JAR {quote}{jar}{quote}")
    except (*SPARK_ERRORS, OSError, ValueError) as error:
        raise WorkflowError(f"what the workflow brings along (lib): {explain(error)}") from error
    for entry in map(importable, libs.python):
        if entry not in sys.path:
            sys.path.append(entry)


def importable(lib: Path) -> str:
    return str(lib.parent if lib.suffix == ".py" else lib)
